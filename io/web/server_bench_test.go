//go:build unix

package web_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// BenchmarkServers compares the CPU that requests to hosts of one server each need, 256
// at once and two a visit over plain HTTP, with the server's part in it: without
// --server-delay, with it, and where all hosts are in a network with a rate.
func BenchmarkServers(b *testing.B) {
	const atOnce = 256
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer s.Close()
	for name, servers := range map[string]polite.Servers{
		"hosts":    {},
		"servers":  {Delay: 1},
		"networks": {Delay: 1, Rate: 1e9, CDNs: []polite.CDN{{Name: "all", Prefixes: []netip.Prefix{netip.MustParsePrefix("93.0.0.0/8")}}}},
	} {
		b.Run(name, func(b *testing.B) {
			c, err := web.New(web.Config{Concurrency: atOnce, Offline: true})
			require.NoError(b, err)
			defer c.Close()
			web.SetLookup(c, func(_ context.Context, _, host string) ([]netip.Addr, error) {
				var n uint32
				_, err := fmt.Sscanf(host, "h%d.test", &n)
				return []netip.Addr{netip.AddrFrom4([4]byte{93, byte(n >> 16), byte(n >> 8), byte(n)})}, err
			})
			web.SetDial(c, func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
			})
			pacer := &polite.Pacer{Servers: servers}
			noRobots := polite.Policy{Robots: polite.Robots{For: func(*url.URL) *url.URL { return nil }}}
			cpu := func() int64 {
				var r syscall.Rusage
				require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
				return r.Utime.Nano() + r.Stime.Nano()
			}
			begin := cpu()
			var visits sync.WaitGroup
			for first := range atOnce {
				visits.Go(func() {
					for n := first; n < b.N; n += atOnce {
						visit := &polite.Client{Web: c, Pacer: pacer, Policy: noRobots}
						for range 2 {
							_, err := visit.Get(b.Context(), polite.Request{URL: fmt.Sprintf("http://h%d.test/", n)})
							assert.NoError(b, err)
						}
						visit.Close()
					}
				})
			}
			visits.Wait()
			b.ReportMetric(float64(cpu()-begin)/float64(2*b.N), "cpu-ns/request")
		})
	}
}
