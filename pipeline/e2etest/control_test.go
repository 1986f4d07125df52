//go:build e2e

package e2etest

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// runs calls `pipeline runs` with these words, which must succeed.
func runs(t *testing.T, dir string, words ...string) string {
	t.Helper()
	out, err := exec.Command(rig.Program, append(append([]string{"runs"}, words...), "--store="+dir)...).CombinedOutput()
	require.NoError(t, err, "runs %v: %v\n%s", words, err, out)
	return string(out)
}

// newest returns the last run's id and state.
func newest(t *testing.T, dir string) (id, state string) {
	t.Helper()
	lines := strings.Split(runs(t, dir, "list"), "\n")
	if len(lines) < 2 || len(strings.Fields(lines[1])) < 4 {
		t.Fatalf("there is no run:\n%s", strings.Join(lines, "\n"))
	}
	row := strings.Fields(lines[1])
	return row[0], row[3]
}

// stoppedInTime checks that no request began later than five seconds after the
// command, except those of visits in flight, which may be completed.
func stoppedInTime(t *testing.T, w rig.Web, asked time.Time) {
	t.Helper()
	begun := map[string]bool{}
	for _, r := range w.Requests() {
		if r.Start.Before(asked.Add(5 * time.Second)) {
			begun[strings.TrimPrefix(r.Host, "www.")] = true
		} else if !begun[strings.TrimPrefix(r.Host, "www.")] {
			t.Errorf("a visit of %s began %v after the stop", r.Host, r.Start.Sub(asked))
		}
	}
}

func TestCancel(t *testing.T) {
	for _, runner := range []string{"direct", "prism"} {
		t.Run(runner, func(t *testing.T) {
			w, release := slowWeb(t)
			b := gated()
			dir := rig.Directory(t, b.files)
			c := start(t, w, dir, "--runner="+runner)
			rig.Eventually(t, "the run at its hosts", 20*time.Second, asked(w, 6))
			id, state := newest(t, dir)
			assert.Equal(t, "running", state, "the state of the live run is %s", state)
			begin := time.Now()
			out := runs(t, dir, "cancel", id)
			assert.Contains(t, out, id, "runs cancel says %q", out)
			code := c.Wait(t, 30*time.Second)
			// Two seconds until the workers read the control object, and the grace of the requests in flight.
			if took := time.Since(begin); code != 130 || took > 10*time.Second {
				t.Errorf("exit code %d after %v, want 130 within 10 s\n%s", code, took, rig.Tail(c.Output(t)))
			}
			stoppedInTime(t, w, begin)
			if _, state := newest(t, dir); state != "cancelled" || rig.LastReport(t, dir).State != "cancelled" {
				t.Errorf("state %s, the report's %v, want cancelled", state, rig.LastReport(t, dir).State)
			}
			if marks(t, dir, false)["datasets/country=sg/category=news/date=2026-02-01/raw_0001.json.success"] {
				t.Error("a file whose hosts were cut off is marked")
			}
			if out, err := exec.Command(rig.Program, "runs", "cancel", id, "--store="+dir).CombinedOutput(); err == nil {
				t.Errorf("a run that is over can be cancelled: %s", out)
			}
			release()
			run(t, w, dir, "--runner="+runner)
			rig.Same(t, rig.Objects(t, dir), uninterrupted(t, w, b))
		})
	}
}

// batchID matches the id of a batch of a watch.
var batchID = regexp.MustCompile(`-b[0-9]{6}$`)

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"direct", "prism", "direct --watch=2s", "prism --watch=2s", "prism --watch=2s --streaming"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := rig.StartWeb(t, webtest.Options{Seed: 7})
			b := generate(90, steadyKinds)
			want, done := uninterrupted(t, w, b), 0
			for key := range want {
				if strings.HasSuffix(key, hive.Success) {
					done++
				}
			}
			w.ResetLog()
			dir := rig.Directory(t, b.files)
			c := start(t, w, dir, append(strings.Fields("--runner="+way), "--concurrency=2", "--rate=15")...)
			rig.Eventually(t, "the first requests", 20*time.Second, func() bool { return len(w.Requests()) >= 10 })
			id, _ := newest(t, dir)
			id = batchID.ReplaceAllString(id, "") // the watch's own
			begin := time.Now()
			runs(t, dir, "pause", id)
			n, since := 0, time.Now()
			rig.Eventually(t, "the visits under way to end", 30*time.Second, func() bool {
				if now := len(w.Requests()); now != n {
					n, since = now, time.Now()
				}
				return time.Since(since) > 2500*time.Millisecond
			})
			if n := len(marks(t, dir, false)); c.Ended() || n == 0 || n >= len(b.domains) {
				t.Fatalf("paused with %d marks of at least %d, ended %v: the pause came too late to prove anything", n, len(b.domains), c.Ended())
			}
			stoppedInTime(t, w, begin)
			r, err := ledger.Load(t.Context(), rig.Open(t, dir), id)
			assert.True(t, err == nil && r.State == ledger.Paused, "the run is %s (%v), want paused", r.State, err)
			runs(t, dir, "resume", id)
			rig.Eventually(t, "the paused run to resume", 5*time.Second, func() bool { return len(w.Requests()) > n })
			code := 0
			if strings.Contains(way, "watch") {
				code = 130
				rig.Eventually(t, "every .success", time.Minute, func() bool { return c.Ended() || len(marks(t, dir, false)) == done })
				runs(t, dir, "cancel", id)
			}
			if got := c.Wait(t, time.Minute); got != code {
				t.Errorf("exit code %d after resume, want %d\n%s", got, code, rig.Tail(c.Output(t)))
			}
			rig.Same(t, rig.Objects(t, dir), want)
		})
	}
}

// The real program works behind a proxy with its own CA, without --connect-to.
func TestProxyFromTheEnvironment(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7})
	b := generate(30, steadyKinds)
	want := uninterrupted(t, w, b)
	w.ResetLog()
	dir := rig.Directory(t, b.files)
	args := slices.DeleteFunc(args(w, dir), func(a string) bool { return strings.HasPrefix(a, "--connect-to=") })
	for name, value := range map[string]string{"HTTP_PROXY": "http://" + w.Addr(), "HTTPS_PROXY": "http://" + w.Addr(), "NO_PROXY": ""} {
		t.Setenv(name, value)
		t.Setenv(strings.ToLower(name), value)
	}
	c := startChild(t, exec.Command(rig.Program, args...), w.CA)
	if code := c.Wait(t, time.Minute); code != 0 {
		t.Fatalf("exit code %d\n%s", code, rig.Tail(c.Output(t)))
	}
	rig.Same(t, rig.Objects(t, dir), want)
	tunnels := 0
	for _, r := range w.Requests() {
		if r.Method == "CONNECT" {
			tunnels++
		}
	}
	assert.True(t, tunnels >= 20, "%d tunnels were requested, want one for each https host", tunnels)
	// With another CA every certificate is refused.
	other := rig.StartWeb(t, webtest.Options{Seed: 8})
	dir = rig.Directory(t, map[string]string{"datasets/country=sg/category=news/date=2026-02-01/raw_0001.json": `{"records":[{"raw_url":"https://urlset-1.com/"}]}`})
	args[slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--store=") })] = "--store=" + dir
	args = append(args, "--hosts=strict") // a site with a bad certificate may answer by http
	assert.EqualValues(t, 0, startChild(t, exec.Command(rig.Program, args...), other.CA).Wait(t, time.Minute))
	m := collected(t, dir, "urlset-1.com")
	assert.True(t, m.Robots.Error == "tls" && m.Robots.StatusCode == 0, "with another CA: %+v", m.Robots)
}

func collected(t *testing.T, dir, domain string) (m metadata.Domain) {
	t.Helper()
	key := "processing/country=sg/category=news/date=2026-02-01/" + domain + "/domain_metadata.json"
	require.NoError(t, json.Unmarshal(rig.Get(t, rig.Open(t, dir), key), &m))
	return m
}

// The demo has a name server, and hosts that do not exist.
func TestDemoOutages(t *testing.T) {
	want := map[string]string{"no-such-host-1.com": "dns", "refused-1.com": "connect", "hang-1.com": "timeout", "reset-1.com": "reset", "tls-wrong-name-1.com": "tls", "urlset-1.com": ""}
	var records []string
	for host := range want {
		records = append(records, `{"raw_url":"https://`+host+`/"}`)
	}
	dir := rig.Directory(t, map[string]string{"datasets/country=sg/category=news/date=2026-02-01/raw_0001.json": `{"records":[` + strings.Join(records, ",") + `]}`})
	c := startChild(t, exec.Command(rig.Program, "--web=demo", "--store="+dir, "--runner=direct", "--hosts=strict", "--progress=off", "--host-delay=5ms"), "")
	if code := c.Wait(t, 2*time.Minute); code != 0 {
		t.Fatalf("exit code %d\n%s", code, rig.Tail(c.Output(t)))
	}
	for host, failure := range want {
		m := collected(t, dir, host)
		if m.Robots.Error != failure || m.Robots.Exists != (failure == "") || (m.Robots.StatusCode == 0) != (failure != "") || m.Sitemap.Error != failure {
			t.Errorf("%s: %+v %+v, want %q", host, m.Robots, m.Sitemap, failure)
		}
	}
}
