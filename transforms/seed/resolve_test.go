package seed_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/passert"
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
// targets of redirects too. Each name is looked up once, also one that does not exist.
func TestByServer(t *testing.T) {
	j := newServers(t, 5)
	urls := slices.Concat(j.place("127.0.0.2", "two", 6), j.place("127.0.0.3", "three", 3))
	for _, host := range []string{"to-0.com", "to-1.com"} {
		must(t, j.web.Place(host, netip.MustParseAddr("127.0.0.3")))
		j.web.Handle(host, http.RedirectHandler("https://two-0.com/robots.txt", http.StatusFound))
		urls = append(urls, "https://"+host+"/")
	}
	dead := []string{"kind-no-such-host-1.com", "kind-no-such-host-2.com"}
	raw := day + "raw_0001.json"
	j.put(raw, rawFile(append(urls, "https://"+dead[0], "https://"+dead[1], "https://kind-refused-1.com")...))
	total := j.run()
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
		require.Equal(t, 1, j.web.Lookups(host), host)
	}
	require.Equal(t, 1, j.web.Lookups("three-0.com"))
	require.Equal(t, "connect", j.metadata(raw, "kind-refused-1.com").Robots.Error)

	for _, host := range dead { // a finished domain is not looked up
		j.put(day+"raw_0002.json", rawFile("https://"+host))
	}
	total = j.run()
	require.EqualValues(t, 1, total.Counts["domains_already_done"])
	require.Equal(t, 1, j.web.Lookups(dead[1]))
}

// The names of one server are in one lane, those of a network with a rate in the lanes of
// their names, and those of a broken file in none.
func TestResolveStage(t *testing.T) {
	j := newServers(t, 7)
	j.place("127.0.0.2", "two", 5)
	j.place("127.9.0.1", "cdn", 2)
	j.cfg.Lane.Polite.Servers.CDNs = []polite.CDN{{Name: "here", Prefixes: []netip.Prefix{netip.MustParsePrefix("127.9.0.0/16")}}}
	one, broken := day+"raw_0001.json", day+"raw_0002.json"
	var in, want []any
	at := lane.Of("server 127.0.0.2", 7)
	for i := range 5 {
		in = append(in, fmt.Sprintf("%s two-%d.com", one, i), fmt.Sprintf("%s two-%d.com", broken, i))
		want = append(want, fmt.Sprintf("%d %s com:sg:two-%d.com 0", at, one, i))
	}
	for _, host := range []string{"cdn-0.com", "cdn-1.com", "kind-no-such-host-1.com"} {
		in = append(in, one+" "+host)
		want = append(want, fmt.Sprintf("%d %s com:sg:%s 0", lane.Of(host, 7), one, host))
	}
	in = append(in, broken)
	j.stage(func(s beam.Scope, cfg seed.Config) {
		batches := beam.ParDo(s, batchOfText, beam.Create(s, in...))
		passert.Equals(s, beam.ParDo(s, batchText, seed.Resolve(s, cfg, batches)), want...)
	})
	require.Empty(t, j.web.Requests())
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
			graph(s, cfg)
			_, err := beam.Run(t.Context(), "direct", p)
			if err := errors.Join(err, lane.Close(cfg.Lane.RunID)); err != nil {
				t.Error(err)
			}
			total, err := ledger.ReadTotal(t.Context(), j.store, cfg.Lane.RunID)
			if err != nil || total.Counts["domains_collected"] != 6 {
				t.Errorf("%v, %v", total.Counts, err)
			}
		})
	}
	both.Wait()
	j.turns("127.0.0.2", func(host string) bool { return !strings.HasPrefix(host, "to-") })
	j.turns("127.0.0.3", func(host string) bool { return strings.HasPrefix(host, "to-") })
	for o, err := range j.store.List(t.Context(), "lease/servers/") {
		t.Errorf("%s stays, %v", o.Key, err)
	}
}

// A run that was killed is resumed with the same result, although its hosts are on other
// servers by then, in other lanes. What was finished is not fetched again.
func TestServersMoveBetweenRuns(t *testing.T) {
	for _, layout := range []seed.Layout{seed.Objects, seed.Packed} {
		for _, then := range []string{"by server", "other lanes", "by name"} {
			t.Run(string(layout)+", "+then, func(t *testing.T) {
				j := newServers(t, 3)
				j.cfg.Layout, j.cfg.SegmentAge, j.cfg.Lane.Grace = layout, time.Millisecond, time.Hour
				j.cfg.Lane.Web.Concurrency = 2
				var kill atomic.Int64
				fetched := map[string]int{}
				var mu sync.Mutex
				hosts := slices.Concat(j.place("127.0.0.2", "two", 8), j.place("127.0.0.3", "three", 4))
				for _, u := range hosts {
					host := strings.Trim(strings.TrimPrefix(u, "https:"), "/")
					j.web.Handle(host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/robots.txt" {
							mu.Lock()
							fetched[host]++
							mu.Unlock()
							if w, ok := lane.Find(j.runID); ok && kill.Add(1) == 5 {
								w.Stop(nil)
							}
						}
						http.NotFound(rw, r)
					}))
				}
				raw := day + "raw_0001.json"
				j.put(raw, rawFile(hosts...))
				first := j.run()
				require.False(t, j.exists(raw+hive.Success))
				require.Positive(t, first.Counts["domains_collected"])
				require.Less(t, first.Counts["domains_collected"], int64(12))
				j.place("127.0.0.3", "two", 5)
				j.place("127.0.0.4", "three", 4)
				switch then {
				case "other lanes":
					j.cfg.Lanes = 4
				case "by name":
					j.cfg.Lane.Polite.Servers.Delay = 0
				}
				second := j.run()
				require.True(t, j.exists(raw+hive.Success))
				require.EqualValues(t, 12, first.Counts["domains_collected"]+second.Counts["domains_collected"])
				require.Equal(t, first.Counts["domains_collected"], second.Counts["domains_already_done"])
				require.Len(t, fetched, 12)
				for host, n := range fetched {
					require.Equal(t, 1, n, host)
				}
				j.cfg.Lane.Polite.Servers.Delay = serverDelay // and once more, after a run by name
				j.put(day+"raw_0002.json", rawFile(hosts...))
				require.EqualValues(t, 12, j.run().Counts["domains_already_done"])
				require.False(t, bytes.Contains(fmt.Append(nil, fetched), []byte(":2")))
			})
		}
	}
}
