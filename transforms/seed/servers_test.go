package seed_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

const serverDelay = 20 * time.Millisecond

// newServers is a job that tells servers apart, and a web with them.
func newServers(t *testing.T, lanes int) *job {
	t.Helper()
	j := newJob(t, webtest.Options{Mix: map[webtest.Kind]int{webtest.KindURLSet: 1}})
	j.cfg.Lanes = lanes
	j.cfg.Lane.Polite.Servers = polite.Servers{Delay: serverDelay}
	return j
}

// place puts n hosts at an address and returns their URLs.
func (j *job) place(at string, name string, n int) (urls []string) {
	j.t.Helper()
	for i := range n {
		host := fmt.Sprintf("%s-%d.com", name, i)
		must(j.t, j.web.Place(host, netip.MustParseAddr(at)))
		urls = append(urls, "https://"+host+"/")
	}
	return urls
}

// turns fails the test if a server had two requests at once, or less than the pause between two.
func (j *job) turns(server string, of func(host string) bool) {
	j.t.Helper()
	var all []webtest.LoggedRequest
	for _, r := range j.web.Requests() {
		if of(r.Host) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b webtest.LoggedRequest) int { return a.Start.Compare(b.Start) })
	require.NotEmpty(j.t, all, server)
	for i, r := range all[1:] {
		require.GreaterOrEqual(j.t, r.Start.Sub(all[i].End), serverDelay, "%s: %s%s after %s%s", server, r.Host, r.Path, all[i].Host, all[i].Path)
	}
}

// What the servers see of several lanes: one request at a time and the pause between two,
// targets of redirects too.
func TestByServer(t *testing.T) {
	j := newServers(t, 5)
	urls := slices.Concat(j.place("127.0.0.2", "two", 6), j.place("127.0.0.3", "three", 3))
	for _, host := range []string{"to-0.com", "to-1.com"} {
		must(t, j.web.Place(host, netip.MustParseAddr("127.0.0.3")))
		j.web.Handle(host, http.RedirectHandler("https://two-0.com/robots.txt", http.StatusFound))
		urls = append(urls, "https://"+host+"/")
	}
	dead := []string{"kind-no-such-host-1.com", "kind-no-such-host-2.com"}
	total := j.crawl(append(urls, "https://"+dead[0], "https://"+dead[1], "https://kind-refused-1.com")...)
	require.EqualValues(t, len(urls)+3, total.Counts["domains_collected"])
	require.EqualValues(t, 2, total.Counts["hosts_unreachable_dns"])
	require.EqualValues(t, 1, total.Counts["hosts_unreachable_connect"])
	require.True(t, j.exists(raw+hive.Success))
	j.turns("127.0.0.2", func(host string) bool { return strings.HasPrefix(host, "two-") })
	j.turns("127.0.0.3", func(host string) bool { return strings.HasPrefix(host, "three-") || strings.HasPrefix(host, "to-") })
	for _, host := range dead {
		m := j.metadata(raw, host)
		require.Equal(t, "dns", m.Robots.Error)
		require.Equal(t, "dns", m.Sitemap.Error)
	}
	require.Equal(t, "connect", j.metadata(raw, "kind-refused-1.com").Robots.Error)
}

// Two worker processes on one server, one of them by redirects: one request at a time and
// the pause between two.
func TestByServerInTwoProcesses(t *testing.T) {
	j := newServers(t, 0)
	j.put(day+"raw_0001.json", rawFile(j.place("127.0.0.2", "one", 6)...))
	two := slices.Concat(j.place("127.0.0.2", "two", 2), j.place("127.0.0.3", "to", 4))
	for i := range 4 {
		j.web.Handle(fmt.Sprintf("to-%d.com", i), http.RedirectHandler(fmt.Sprintf("https://one-%d.com/robots.txt", i), http.StatusFound))
	}
	j.put(strings.Replace(day, "news", "policy", 1)+"raw_0001.json", rawFile(two...))
	var both sync.WaitGroup
	for i, category := range []string{"news", "policy"} {
		cfg := j.cfg
		cfg.Category, cfg.Lanes = category, 3+2*i // lanes of another number have other leases
		cfg.Lane.RunID, cfg.Lane.Leases, cfg.Lane.LogLevel = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), i), true, 12
		both.Go(func() {
			p, s := beam.NewPipelineWithRoot()
			graph(s, cfg, seed.Promoted)
			_, err := beam.Run(t.Context(), "direct", p)
			assert.NoError(t, errors.Join(err, lane.Close(cfg.Lane.RunID)))
			total, err := ledger.ReadTotal(t.Context(), j.store, cfg.Lane.RunID)
			assert.True(t, err == nil && total.Counts["domains_collected"] == 6, "%v, %v", total.Counts, err)
		})
	}
	both.Wait()
	j.turns("127.0.0.2", func(host string) bool { return !strings.HasPrefix(host, "to-") })
	j.turns("127.0.0.3", func(host string) bool { return strings.HasPrefix(host, "to-") })
	for o, err := range j.store.List(t.Context(), "lease/servers/") {
		t.Errorf("%s stays, %v", o.Key, err)
	}
}
