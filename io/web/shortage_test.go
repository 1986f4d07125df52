package web_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/web"
)

func dialed(addr net.IP, e syscall.Errno) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: addr, Port: 443}, Err: os.NewSyscallError("connect", e)}
}

func lookedUp(text string) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: text, Name: "a.example", Server: "127.0.0.53:53"}}
}

// What this machine lacks is no failure of a site: the request waits, and after a minute the
// run is told. What a site or its names lack stays its failure.
func TestShortage(t *testing.T) {
	ours := map[string]error{
		"files":              dialed(net.IPv4(8, 8, 8, 8), syscall.EMFILE),
		"files of a machine": dialed(net.IPv4(8, 8, 8, 8), syscall.ENFILE),
		"ports":              dialed(net.IPv4(8, 8, 8, 8), syscall.EADDRNOTAVAIL),
		"buffers":            dialed(net.IPv4(8, 8, 8, 8), syscall.ENOBUFS),
		"memory":             dialed(net.IPv4(8, 8, 8, 8), syscall.ENOMEM),
		"firewall":           dialed(net.IPv4(8, 8, 8, 8), syscall.EPERM),
		"look-up, files":     lookedUp("dial udp 127.0.0.53:53: socket: too many open files"),
		"look-up, refused":   lookedUp("read udp 127.0.0.1:40000->127.0.0.53:53: read: connection refused"),
		"look-up, no route":  lookedUp("dial udp 192.0.2.1:53: connect: network is unreachable"),
	}
	// Others are reached at the same time: no site can stop a run.
	for _, e := range []syscall.Errno{syscall.EPERM, syscall.EADDRNOTAVAIL} {
		synctest.Test(t, func(t *testing.T) {
			last := false
			c := shortClient(t, func() error {
				if last = !last; last {
					return dialed(net.IPv4(8, 8, 8, 8), e)
				}
				return nil
			})
			c.Shortages.Short = func(lack *fault.Shortage) { t.Errorf("stopped by %v", lack) }
			web.SetConnected(c)
			_, err := c.Try(t.Context(), web.Request{URL: "http://a.example/"})
			require.NoError(t, err)
			web.SetFailing(c, func() error { web.SetConnected(c); return dialed(net.IPv4(8, 8, 8, 8), e) }, answers{})
			_, err = c.Try(t.Context(), web.Request{URL: "http://a.example/"})
			var failed *web.Error
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, web.KindConnect, failed.Kind)
		})
	}
	theirs := map[string]error{
		"dns":     lookedUp("server misbehaving"),
		"timeout": dialed(net.IPv4(8, 8, 8, 8), syscall.ETIMEDOUT),
		"connect": dialed(net.IPv4(8, 8, 8, 8), syscall.ECONNREFUSED),
		"IPv6":    dialed(net.ParseIP("2001:db8::1"), syscall.EADDRNOTAVAIL),
	}
	for name, failure := range ours {
		t.Run(name, func(t *testing.T) {
			for _, lasts := range []time.Duration{30 * time.Second, time.Hour} {
				synctest.Test(t, func(t *testing.T) { shortFor(t, failure, lasts) })
			}
		})
	}
	for name, failure := range theirs {
		t.Run(name, func(t *testing.T) {
			c := shortClient(t, func() error { return failure })
			c.Shortages.Short = func(lack *fault.Shortage) { t.Errorf("stopped by %v", lack) }
			_, err := c.Try(t.Context(), web.Request{URL: "http://a.example/"})
			var failed *web.Error
			require.ErrorAs(t, err, &failed)
		})
	}
}

// A resolver that has just come back is not believed at once that a name is unknown, and later it is.
func TestResolverComesBack(t *testing.T) {
	for name, unknownFor := range map[string]time.Duration{"for a moment": 4 * time.Second, "for good": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c := shortClient(t, func() error {
					switch d := time.Since(began); {
					case d < 5*time.Second:
						return lookedUp("read udp 127.0.0.1:40000->127.0.0.53:53: read: connection refused")
					case d < 5*time.Second+unknownFor:
						return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true}}
					}
					return nil
				})
				c.Shortages.Short = func(lack *fault.Shortage) { t.Errorf("stopped by %v", lack) }
				resp, err := c.Try(t.Context(), web.Request{URL: "http://a.example/"})
				if unknownFor < time.Hour {
					require.NoError(t, err)
					assert.Equal(t, http.StatusNoContent, resp.Status)
					return
				}
				var failed *web.Error
				require.ErrorAs(t, err, &failed)
				assert.Equal(t, web.KindDNS, failed.Kind)
				assert.Less(t, time.Since(began), 40*time.Second)
			})
		})
	}
}

func shortClient(t *testing.T, fails func() error) *web.Client {
	t.Helper()
	c, err := web.New(web.Config{UserAgent: "test", Offline: true, AllowPrivate: true})
	require.NoError(t, err)
	web.SetLookup(c, func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	})
	web.SetFailing(c, fails, answers{})
	return c
}

type answers struct{}

func (answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func shortFor(t *testing.T, failure error, lasts time.Duration) {
	t.Helper()
	began := time.Now()
	var told []error
	c := shortClient(t, func() error {
		if time.Since(began) < lasts {
			return failure
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Shortages.Short = func(lack *fault.Shortage) { told = append(told, lack); cancel() }
	resp, err := c.Try(ctx, web.Request{URL: "http://a.example/"})
	if lasts < time.Minute {
		require.NoError(t, err)
		assert.Equal(t, http.StatusNoContent, resp.Status)
		assert.Empty(t, told)
		assert.EqualValues(t, 1, c.Stats().Requests)
		return
	}
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, errors.As(err, new(*web.Error)), "a kind would become a fact about the site")
	assert.Len(t, told, 1)
	assert.Less(t, time.Since(began), 70*time.Second)
}

// A shortage of all requests halves how many are in flight, not more often than every five
// seconds; connections that can be made again double it up to the limit.
func TestShortageLowersConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := shortClient(t, func() error {
			if time.Since(began) < 20*time.Second {
				return dialed(net.IPv4(8, 8, 8, 8), syscall.EMFILE)
			}
			return nil
		})
		c.SetLimits(8, 0)
		var lowered [][2]int
		c.Lowered = func(from, to int, _ string) { lowered = append(lowered, [2]int{from, to}) }
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				_, err := c.Try(t.Context(), web.Request{URL: "http://a.example/"})
				assert.NoError(t, err)
			})
		}
		time.Sleep(10 * time.Second)
		all.Go(func() {
			_, err := c.Try(t.Context(), web.Request{URL: "http://b.example/"})
			assert.NoError(t, err)
		})
		all.Wait()
		assert.Equal(t, [][2]int{{8, 4}, {4, 2}}, lowered)
		require.Equal(t, 4, web.Slots(c), "the requests' own connections have doubled it once")
		for range 2 {
			time.Sleep(6 * time.Second)
			web.RaiseSlots(c)
		}
		require.Equal(t, 8, web.Slots(c))
	})
}
