//go:build e2e

package e2etest

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

const (
	agent = "Newsfork-SeedEngine/1.0"
	// victim ends the user agent of a process that will be killed: its site may work on for it, or
	// read only after its death what it had sent.
	victim = " (killed)"
)

// politenessKinds are the steady kinds of hosts and those that make the client
// try again. Kinds whose answer is cut off are left out, because the server sees
// the end of such an answer later than the client does.
var politenessKinds = append(slices.Clone(steadyKinds), "robots-503-then-ok", "rate-limited", "always-503", "reset", "reset-once",
	"index", "many-sitemaps", "big-urlset")

func TestPoliteness(t *testing.T) {
	for _, c := range []struct {
		name  string
		delay time.Duration
		args  []string
		most  int // requests in flight
		rate  int // requests a second, 0: not checked
	}{
		{"direct", 50 * time.Millisecond, []string{"--concurrency=8"}, 8, 0},
		{"sixteen lanes on prism", 50 * time.Millisecond, []string{"--runner=prism", "--lanes=16", "--concurrency=4"}, 4, 0},
		{"rate", 5 * time.Millisecond, []string{"--rate=60"}, 64, 60},
		{"rate over sixteen lanes on prism", 5 * time.Millisecond, []string{"--runner=prism", "--lanes=16", "--rate=60"}, 64, 60},
		{"everything on", 20 * time.Millisecond, []string{"--feeds", "--homepage", "--follow-index"}, 64, 0},
		{"in parallel", 20 * time.Millisecond, []string{"--parallel-fetch", "--concurrency=8"}, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := rig.StartWeb(t, webtest.Options{Seed: 3, Latency: 3 * time.Millisecond})
			b := generate(2*len(politenessKinds), politenessKinds)
			dir := rig.Directory(t, b.files)
			run(t, w, dir, append(c.args, "--host-delay="+c.delay.String())...)
			log := w.Requests()
			n := w.MaxInFlight()
			assert.True(t, n <= c.most, "%d requests in flight, want at most %d", n, c.most)
			parallel := slices.Contains(c.args, "--parallel-fetch")
			fetchedOnce(t, log)
			rig.PausesKept(t, log, c.delay, parallel)
			if c.rate > 0 {
				rig.RateKept(t, log, c.rate)
			}
			for _, r := range log {
				if r.Method != "" && (r.UserAgent != agent || r.Method != http.MethodGet) {
					t.Errorf("%s %s%s was sent as %q", r.Method, r.Host, r.Path, r.UserAgent)
				}
			}
			if !parallel { // in parallel, the default sitemap is requested before robots.txt is known
				rig.RobotsObeyed(t, w, log)
			}
		})
	}
}

// fetchedOnce checks that nothing is fetched twice, except after a transient failure.
func fetchedOnce(t *testing.T, log []webtest.LoggedRequest) {
	t.Helper()
	type resource struct{ scheme, host, path string }
	before := map[resource][]int{}
	for _, r := range log {
		if r.Method == "" {
			continue // a handshake
		}
		at := resource{r.Scheme, r.Host, r.Path}
		if earlier := before[at]; len(earlier) > 0 {
			if last := earlier[len(earlier)-1]; len(earlier) > 1 || !slices.Contains([]int{0, 429, 502, 503, 504}, last) {
				t.Errorf("%v was fetched again after %v", at, earlier)
			}
		}
		before[at] = append(before[at], r.Status)
	}
	assert.NotEqual(t, 0, len(before), "no request was sent")
}

func TestCrawlDelayIsObeyed(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 3})
	b := generate(3, []string{"crawl-delay", "crawl-delay-long", "disallow-all"})
	dir := rig.Directory(t, b.files)
	run(t, w, dir, "--feeds", "--homepage")
	log := w.Requests()
	fetchedOnce(t, log)
	rig.PausesKept(t, log, 5*time.Millisecond, false)
	rig.RobotsObeyed(t, w, log)
	asked := map[string]int{}
	for _, r := range log {
		asked[r.Host]++
	}
	if asked["crawl-delay-1.com"] < 2 {
		t.Errorf("crawl-delay-1.com got %d requests, want more than the one for robots.txt", asked["crawl-delay-1.com"])
	}
	assert.EqualValues(t, 1, asked["crawl-delay-long-2.com"])
}

// Runs on two stores, as of two jobs, ask the same hosts. One of them is killed and started
// again; its requests until then have a name of their own.
func TestJobsTakeTurns(t *testing.T) {
	const delay = 50 * time.Millisecond
	w := rig.StartWeb(t, webtest.Options{Seed: 3, Latency: 20 * time.Millisecond})
	b := generate(4*len(steadyKinds), steadyKinds)
	turns := []string{"--turns=" + filepath.Join(t.TempDir(), "turns"), "--feeds", "--homepage", "--host-delay=" + delay.String()}
	dirs := []string{rig.Directory(t, b.files), rig.Directory(t, b.files)}
	one := start(t, w, dirs[0], append(turns, politenessFile(t, "user_agent: \""+agent+victim+"\""))...)
	two := start(t, w, dirs[1], append(turns, "--runner=prism")...)
	rig.Eventually(t, "50 requests", time.Minute, func() bool { return len(w.Requests()) >= 50 })
	killed := time.Now()
	one.Kill(t)
	one = start(t, w, dirs[0], turns...)
	for _, c := range []*rig.Child{one, two} {
		if code := c.Wait(t, 3*time.Minute); code != 0 {
			t.Fatalf("exit code %d, want 0:\n%s", code, rig.Tail(c.Output(t)))
		}
	}
	rig.Same(t, rig.Objects(t, dirs[0]), rig.Objects(t, dirs[1]))
	log := slices.DeleteFunc(w.Requests(), func(r webtest.LoggedRequest) bool { return r.UserAgent == agent+victim && r.End.After(killed) })
	rig.PausesKept(t, log, delay, false)
}

// politenessFile writes a file of --politeness that says this about all hosts, and returns the flag.
func politenessFile(t *testing.T, settings string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "hosts.yaml")
	require.NoError(t, os.WriteFile(at, []byte("hosts:\n  \"*\": {"+settings+"}\n"), 0o600))
	return "--politeness=" + at
}

// Each job keeps the file's hours, pause, requests in flight and user agent, also over a kill. Outside
// the hours no host gets a request, nothing is concluded, and the next run does the work.
func TestPolitenessFile(t *testing.T) {
	const ours = "OurBot/9 (+https://bot.example)"
	begin := time.Now().UTC().Add(2 * time.Hour)
	closed := begin.Format("15:04-") + begin.Add(time.Hour).Format("15:04") + " UTC"
	b := generate(2*len(steadyKinds), steadyKinds)
	for name, make := range map[string]func(*testing.T, rig.Web) (rig.Job, rig.Left){
		"seed": func(t *testing.T, _ rig.Web) (rig.Job, rig.Left) {
			return rig.Job{Args: []string{"--job=seed", "--host-delay=1ms", "--runner=prism", "--lanes=4"}}, rig.Left{Store: rig.Directory(t, b.files)}
		},
		"catalog": func(t *testing.T, w rig.Web) (rig.Job, rig.Left) { return rig.Catalog(w), rig.Left{Store: t.TempDir()} },
		"docs":    func(t *testing.T, w rig.Web) (rig.Job, rig.Left) { return rig.Docs(t, w), rig.Left{Store: t.TempDir()} },
		"news":    func(t *testing.T, w rig.Web) (rig.Job, rig.Left) { return rig.News(t, w), rig.Left{Store: t.TempDir()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			delay := 150 * time.Millisecond
			if name == "docs" {
				delay = 1200 * time.Millisecond
			}
			w := rig.StartWeb(t, webtest.Options{Seed: 3, Latency: 5 * time.Millisecond})
			j, on := make(t, w)
			if name != "seed" {
				on.DSN = "sqlite://" + filepath.Join(t.TempDir(), "job.db")
			}
			run := func(settings string) *rig.Child { return j.Start(t, w, on.Store, on.DSN, politenessFile(t, settings)) }
			wait := func(c *rig.Child) string {
				if code := c.Wait(t, 5*time.Minute); code != 0 {
					t.Fatalf("exit code %d, want 0:\n%s", code, rig.Tail(c.Output(t)))
				}
				return c.Output(t)
			}
			said := wait(run("hours: \"" + closed + "\""))
			assert.Contains(t, said, `"event":"outside_hours"`)
			assert.Empty(t, w.Requests(), "outside the hours")
			r := rig.LastReport(t, on.Store).Counted()
			assert.Positive(t, r["sites_outside_hours"])
			if name != "seed" { // whose bucket has a broken file
				assert.Zero(t, r["dead_letters"])
			}
			for _, c := range []string{"hosts_visited", "sites_failed", "sites_crawled", "domains_failed", "domains_collected", "files_completed", "providers_stopped"} {
				assert.Zero(t, r[c], c)
			}

			open := "hours: any, delay: " + delay.String() + ", concurrency: 2, user_agent: \"" + ours
			one := run(open + victim + "\"")
			rig.Eventually(t, "12 requests", 2*time.Minute, func() bool { return len(w.Requests()) >= 12 })
			killed := time.Now()
			one.Kill(t)
			wait(run(open + "\""))
			assert.LessOrEqual(t, w.MaxInFlight(), 2)
			log := slices.DeleteFunc(w.Requests(), func(r webtest.LoggedRequest) bool { return r.UserAgent == ours+victim && r.End.After(killed) })
			rig.PausesKept(t, log, delay, false)
			for _, r := range log {
				if r.Method != "" && strings.TrimSuffix(r.UserAgent, victim) != ours {
					t.Errorf("%s%s was sent as %q", r.Host, r.Path, r.UserAgent)
				}
			}
			if j.Queries != nil {
				j.SameRows(t, on, on, j.Queries) // there are enough
				return
			}
			assert.Positive(t, rig.LastReport(t, on.Store).Counted()["files_completed"])
		})
	}
}
