//go:build e2e

// Package safety runs crawlers against the web of package judge, kills them in the middle, and
// prints what its judge finds. docs/politeness.md shows the table. No promise: see docs/library.md.
package safety

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/pipeline/e2etest/safety/judge"
)

// Crawler is a crawler on a web. What it keeps outlives a kill.
type Crawler struct {
	Start   func() *rig.Child               // the first time, and after a kill
	Kill    func(c *rig.Child) (again bool) // again: it must be started again; nil: kills the process with its children
	Reasons func() map[string]bool          // HOST/PATH of pages that it says it did not fetch
}

// Run lets a crawler crawl the web, kills it after these numbers of requests, and judges it.
func Run(t testing.TB, web *judge.Web, c Crawler, kills ...int) judge.Verdict {
	t.Helper()
	child := c.Start()
	for _, n := range kills {
		rig.Eventually(t, "requests before the kill", 5*time.Minute, func() bool {
			log, _ := web.Log()
			return len(log) >= n || child.Ended()
		})
		if child.Ended() {
			break
		}
		again := true
		if c.Kill != nil {
			again = c.Kill(child)
		} else {
			child.KillAll(t)
		}
		web.Killed()
		if again {
			child = c.Start()
		}
	}
	if code := child.Wait(t, 12*time.Minute); code != 0 {
		t.Errorf("exit code %d:\n%s", code, rig.Tail(child.Output(t)))
	}
	log, killed := web.Log()
	return judge.Judge(web.Sites, log, killed, c.Reasons())
}

// Kills are the requests after which a crawler of all sites is killed.
var Kills = []int{50, 100}

// Polite checks that ours broke no rule but one on purpose: it crawls on slowly where robots.txt
// answers 5xx. After a kill it may request a page for each of three hosts again.
func Polite(t testing.TB, v judge.Verdict, kills int) {
	t.Helper()
	for _, r := range judge.All {
		for _, e := range v.Broken[r] {
			if r != judge.Unread || e.Host != "broken.test" {
				t.Errorf("%s: %s%s at %v", r, e.Host, e.Path, e.Start)
			}
		}
	}
	assert.Empty(t, v.Lost)
	assert.LessOrEqual(t, len(v.Again), 3*kills)
	assert.Greater(t, v.Requests, 60)
}

// Row prints a crawler's row of the table, and the faults.
func Row(t testing.TB, name string, v judge.Verdict) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %s |", name)
	for _, r := range judge.All {
		fmt.Fprintf(&b, " %d |", len(v.Broken[r]))
	}
	fmt.Fprintf(&b, " %d | %d | %d | %.0f |\n", len(v.Again), len(v.Lost), v.Requests, v.Seconds)
	faults := maps.Clone(v.Broken)
	faults["again"] = v.Again
	faults["sent"] = slices.DeleteFunc(v.Read, func(read judge.Entry) bool { // what the sites of disallowed pages had sent
		return !slices.ContainsFunc(append(v.Broken[judge.Disallowed], v.Broken[judge.Unread]...), func(e judge.Entry) bool { return e.Host == read.Host })
	})
	for _, r := range append(slices.Clone(judge.All), "again", "sent") {
		for _, e := range faults[r][:min(len(faults[r]), 12)] {
			fmt.Fprintf(&b, "%s: %s %s%s from %s to %s, life %d: %d %s\n", r, e.Method, e.Host, e.Path, e.Start.Format("04:05.000"), e.End.Format("04:05.000"), e.Life, e.Status, e.Agent)
		}
	}
	fmt.Fprintf(&b, "lost: %v\n", v.Lost)
	t.Log(b.String())
}

// StartWeb starts the web of the bench.
func StartWeb(t testing.TB, small bool) *judge.Web {
	t.Helper()
	web, err := judge.Serve(judge.Standard(small))
	require.NoError(t, err)
	t.Cleanup(func() { _ = web.Close() }) // connections of killed crawlers
	return web
}

// Ours is the docs job on the web, with a database ("": SQLite) and more arguments. Each site is
// a provider with one request a second.
func Ours(t testing.TB, web *judge.Web, dsn string, more ...string) Crawler {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"policies", "store"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	if dsn == "" {
		dsn = "sqlite://" + filepath.Join(dir, "docs.db")
	}
	for host := range web.Sites {
		id := strings.ReplaceAll(host, ".", "-")
		policy := fmt.Sprintf("provider_id: %s\nname: %[1]s\nseed_urls: [%q]\nallowed_path_patterns: [\"/**\"]\nrequest_delay_ms: 1000\nmax_depth: 3\nsources: [html]\n",
			id, web.URL(host, "/"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "policies", id+".yaml"), []byte(policy), 0o600))
	}
	polite := filepath.Join(dir, "hosts.yaml")
	require.NoError(t, os.WriteFile(polite, fmt.Appendf(nil, "hosts:\n  \"*\": {user_agent: %q}\n", judge.Agent), 0o600))
	args := append([]string{"--job=docs", "--fallback", "--policies=" + filepath.Join(dir, "policies"), "--politeness=" + polite, "--lease-ttl=3s",
		"--connect-to=" + web.Addr, "--store=" + filepath.Join(dir, "store"), "--progress=off", "--log-level=warn"}, more...)
	return Crawler{
		Start: func() *rig.Child {
			cmd := exec.Command(rig.Program, args...)
			cmd.Env = append(os.Environ(), "SEED_DB="+dsn)
			return rig.Start(t, cmd)
		},
		Reasons: func() map[string]bool { return recorded(t, web, dsn) },
	}
}

// SharedServer is the flag by which ours takes the names of one address for one server.
const SharedServer = "--server-delay=100ms"

// recorded returns the pages of which the job's database says why it does not have them; all
// pages of a site that was not crawled to its end.
func recorded(t testing.TB, web *judge.Web, dsn string) map[string]bool {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = d.Close() }() // nothing was written
	found, err := d.QueryContext(t.Context(), `SELECT address FROM docs_pages WHERE reason <> '' UNION ALL
		SELECT provider || '/' FROM docs_runs WHERE state <> 'done' AND reason <> ''`)
	require.NoError(t, err)
	out := map[string]bool{}
	for found.Next() {
		var page string
		require.NoError(t, found.Scan(&page))
		if provider, front := strings.CutSuffix(page, "/"); front && !strings.Contains(provider, ":") {
			page = strings.ReplaceAll(provider, "-", ".") + "/"
		}
		noted(web, out, web.Plain(page))
	}
	require.NoError(t, errors.Join(found.Err(), found.Close()))
	return out
}

// Script is a crawler of another project. Its program finds the start URLs in SEEDS, may keep
// state in STATE, and appends "URL<tab>why" to REASONS.
func Script(t testing.TB, web *judge.Web, dir string, command []string) Crawler {
	t.Helper()
	var seeds []string
	for _, host := range slices.Sorted(maps.Keys(web.Sites)) {
		seeds = append(seeds, web.URL(host, "/"))
	}
	state, reasons := filepath.Join(dir, "state"), filepath.Join(dir, "reasons")
	require.NoError(t, os.Mkdir(state, 0o755))
	return Crawler{
		Start: func() *rig.Child {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "HOME="+dir, "SEEDS="+strings.Join(seeds, " "), "STATE="+state, "REASONS="+reasons)
			return rig.Start(t, cmd)
		},
		Reasons: func() map[string]bool {
			text, err := os.ReadFile(reasons)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			out := map[string]bool{}
			for line := range bytes.Lines(text) {
				url, _, _ := strings.Cut(string(line), "\t")
				noted(web, out, web.Plain(url))
			}
			return out
		},
	}
}

// noted adds a page that has a reason. Without its front page a site has no pages.
func noted(web *judge.Web, out map[string]bool, page string) {
	out[page] = true
	if host, front := strings.CutSuffix(page, "/"); front && web.Sites[host] != nil {
		for _, path := range web.Sites[host].Pages {
			out[host+path] = true
		}
	}
}
