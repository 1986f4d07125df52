//go:build e2e

package e2etest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// interval is the interval of the watches.
const interval = 2 * time.Second

// ways are the ways to watch a store in one process.
var ways = []string{"direct", "prism", "prism --streaming"}

func watch(t *testing.T, w rig.Web, dir, way string, more ...string) *rig.Child {
	t.Helper()
	args := append(strings.Fields("--runner="+way), "--watch="+interval.String(), "--log-format=text")
	return start(t, w, dir, append(args, more...)...)
}

// batches returns the reports of a store's batches, by run id.
func batches(t *testing.T, dir string) map[string]ledger.Report {
	t.Helper()
	s := rig.Open(t, dir)
	out := map[string]ledger.Report{}
	for o, err := range s.List(t.Context(), "runs/") {
		require.NoError(t, err)
		id, ok := strings.CutSuffix(strings.TrimPrefix(o.Key, "runs/"), "/report.json")
		if !ok || !strings.Contains(id, "-b0") {
			continue
		}
		var r ledger.Report
		require.NoError(t, json.Unmarshal(rig.Get(t, s, o.Key), &r))
		out[id] = r
	}
	return out
}

// there reports whether a store has an object.
func there(t *testing.T, s store.Store, key string) func() bool {
	return func() bool { _, err := s.Head(t.Context(), key); return err == nil }
}

// raw puts a raw file with these domains, and returns its key.
func raw(t *testing.T, dir string, n int, domains ...string) string {
	t.Helper()
	key := fmt.Sprintf("datasets/country=sg/category=news/date=2026-02-02/raw_%04d.json", n)
	var records []string
	for _, d := range domains {
		records = append(records, `{"raw_url":"https://`+d+`/"}`)
	}
	rig.Put(t, dir, map[string]string{key: `{"records":[` + strings.Join(records, ",") + `]}`})
	return key
}

// interrupt sends Ctrl-C and checks how the program ends.
func interrupt(t *testing.T, c *rig.Child) {
	t.Helper()
	begin := time.Now()
	require.NoError(t, c.Cmd.Process.Signal(syscall.SIGINT))
	code := c.Wait(t, 20*time.Second)
	if took := time.Since(begin); code != 130 || took > 5*time.Second {
		t.Errorf("Ctrl-C: exit code %d after %v, want 130 within 5 s\n%s", code, took, rig.Tail(c.Output(t)))
	}
}

// A file that cannot be read stays open, and is tried again after pauses that
// double each time. A file that appears meanwhile is read alone, within two
// intervals.
func TestWatch(t *testing.T) {
	t.Parallel()
	for _, runner := range []string{"direct", "prism"} {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			w := rig.StartWeb(t, webtest.Options{Seed: 7})
			const broken = "datasets/country=gb/category=news/date=2026-01-30/raw_0001.json"
			dir := rig.Directory(t, map[string]string{broken: `{"records":[{"raw_url":"https://urlset-1.com/"},{"raw_`})
			c := watch(t, w, dir, runner)
			rig.Eventually(t, "three tries of the open file", 30*time.Second, func() bool { return c.Ended() || len(batches(t, dir)) >= 3 })
			if c.Ended() {
				t.Fatalf("the watch ended:\n%s", rig.Tail(c.Output(t)))
			}
			tries := batches(t, dir)
			ids := slices.Sorted(maps.Keys(tries))
			for i, id := range ids {
				r := tries[id]
				assert.True(t, r.Counts["files_bad"] == 1 && r.Counts["files_read"] == 0, "%s: %v, want the open file alone", id, r.Counts)
				if i == 0 {
					continue
				}
				// The next poll begins an interval after the end of the last one, so a
				// pause can only be longer.
				gap, least := r.StartedAt.Sub(tries[ids[i-1]].StartedAt), interval<<i
				assert.True(t, gap >= least-interval/4, "try %d of the open file %v after the one before, want %v", i+1, gap, least)
			}
			begin := time.Now()
			key := raw(t, dir, 1, "urlset-2.com", "euckr-3.com", "no-robots-4.com")
			rig.Eventually(t, "the new file's .success", 15*time.Second, there(t, rig.Open(t, dir), key+".success"))
			t.Logf(".success %v after the file", time.Since(begin))
			rig.Eventually(t, "the new file's batch", 15*time.Second, func() bool { return len(batches(t, dir)) > len(tries) })
			for id, r := range batches(t, dir) {
				if _, old := tries[id]; old {
					continue
				}
				if r.Counts["files_bad"] != 0 || r.Counts["files_read"] != 1 || r.Counts["files_completed"] != 1 || r.Counts["domains_collected"] != 3 {
					t.Errorf("the new file's batch: %v, want that file alone and its 3 domains", r.Counts)
				}
				took := r.StartedAt.Sub(begin)
				assert.True(t, took <= 2*interval, "the new file was picked up after %v, want two intervals", took)
			}
			interrupt(t, c)
			assert.Equal(t, "interrupted", rig.LastReport(t, dir).State)
		})
	}
}

// logged is a line of the program's log.
type logged struct {
	Time     time.Time
	Event    string
	FilePath string `json:"file_path"`
}

// events returns the lines of the program's log, so far, with this event and file.
func events(t *testing.T, c *rig.Child, event, file string) (out []logged) {
	t.Helper()
	for line := range strings.Lines(c.Output(t)) {
		var l logged
		if json.Unmarshal([]byte(line), &l) == nil && l.Event == event && l.FilePath == file {
			out = append(out, l)
		}
	}
	return out
}

// One unbounded graph does what the loop does, with a file that cannot be read
// and with files that appear, are replaced or are being written.
func TestWatchStreaming(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"Ctrl-C", "runs cancel"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			w := rig.StartWeb(t, webtest.Options{Seed: 7})
			const broken = "datasets/country=gb/category=news/date=2026-01-30/raw_0001.json"
			dir := rig.Directory(t, map[string]string{broken: `{"records":[{"raw_url":"https://urlset-1.com/"},{"raw_`})
			s := rig.Open(t, dir)
			c := watch(t, w, dir, "prism --streaming", "--log-format=json", "--log-level=info")
			rig.Eventually(t, "the first try of the open file", 30*time.Second, func() bool {
				return c.Ended() || len(events(t, c, "file_processing_failed", broken)) > 0
			})

			half := filepath.Join(dir, filepath.FromSlash(strings.Replace(broken, "0001", "0002", 1)))
			f, err := os.Create(half)
			require.NoError(t, err)
			write := func(text string) {
				if _, err := f.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			write(`{"records":[{"raw_url":"https://urlset-9.com/"}`)
			begin := time.Now()
			key := raw(t, dir, 1, "urlset-2.com", "euckr-3.com", "no-robots-4.com")
			more := 0
			rig.Eventually(t, "the new file's .success", 15*time.Second, func() bool {
				if n := int(time.Since(begin) / (interval / 8)); n > more { // the other one grows meanwhile
					write(fmt.Sprintf(`,{"raw_url":"https://urlset-%d.com/"}`, 10+more))
					more++
				}
				return c.Ended() || there(t, s, key+".success")()
			})
			t.Logf(".success %v after the file", time.Since(begin))
			write(`]}`)
			require.NoError(t, f.Close())
			if read := events(t, c, "file_processor_start", key); len(read) != 1 || read[0].Time.Sub(begin) > 2*interval {
				t.Errorf("the new file was read %v after %v, want once within two intervals", read, begin)
			}

			rig.Put(t, dir, map[string]string{key: `{"records":[{"raw_url":"https://urlset-5.com/"}]}`})
			require.NoError(t, s.Delete(t.Context(), key+".success"))
			rig.Eventually(t, "the replaced file's .success", 15*time.Second, func() bool { return c.Ended() || there(t, s, key+".success")() })
			grown, err := filepath.Rel(dir, half)
			require.NoError(t, err)
			grown = filepath.ToSlash(grown)
			rig.Eventually(t, "the grown file's .success", 15*time.Second, func() bool { return c.Ended() || there(t, s, grown+".success")() })
			if c.Ended() {
				t.Fatalf("the watch ended:\n%s", rig.Tail(c.Output(t)))
			}
			bad := events(t, c, "file_processing_failed", grown)
			assert.True(t, len(bad) <= 0, "the growing file was read before it was complete: %v", bad)
			_, err = s.Head(t.Context(), broken+".success")
			assert.Error(t, err, "the broken file has its .success")
			tries := events(t, c, "file_processing_failed", broken)
			for i := range tries[1:] {
				gap, least := tries[i+1].Time.Sub(tries[i].Time), interval<<(i+1)
				assert.True(t, gap >= least-interval/4, "try %d of the open file %v after the one before, want %v", i+2, gap, least)
			}
			asked := map[string]int{}
			for _, r := range w.Requests() {
				asked[r.Host+r.Path]++
				assert.True(t, asked[r.Host+r.Path] <= 1, "%s%s was requested again", r.Host, r.Path)
			}

			state := "interrupted"
			if by == "Ctrl-C" {
				interrupt(t, c)
			} else {
				state = "cancelled"
				id, _ := newest(t, dir)
				runs(t, dir, "cancel", id)
				if code := c.Wait(t, 20*time.Second); code != 130 {
					t.Errorf("cancelled: exit code %d, want 130\n%s", code, rig.Tail(c.Output(t)))
				}
			}
			r := rig.LastReport(t, dir)
			if r.State != state || r.Counts["files_completed"] != 3 || r.Counts["domains_collected"] != int64(3+1+1+more) {
				t.Errorf("state %v, want %s; counts %v, want 3 files and %d domains", r.State, state, r.Counts, 5+more)
			}
			left := marks(t, dir, false)
			assert.Len(t, left, 2+5+more, "%d marks, want %d: %v", len(left), 7+more, left)
		})
	}
}

// After Ctrl-C in the middle of a batch the visits in flight are completed.
func TestWatchDrains(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 100 * time.Millisecond})
			b := generate(48, steadyKinds)
			dir := rig.Directory(t, b.files)
			c := watch(t, w, dir, way, "--concurrency=6")
			rig.Eventually(t, "the watch in the middle", 20*time.Second, func() bool { return len(marks(t, dir, false)) > 5 })
			begin, before := time.Now(), len(marks(t, dir, false))
			interrupt(t, c)
			done := 0
			for _, r := range w.Requests() {
				late := r.Start.Sub(begin)
				assert.True(t, late <= 3*time.Second, "%s got a request %v after Ctrl-C", r.Host, late)
			}
			marked := marks(t, dir, false)
			if len(marked) <= before {
				t.Errorf("%d marks before Ctrl-C and %d after it: no visit in flight was completed", before, len(marked))
			}
			for _, asks := range b.domains {
				if slices.ContainsFunc(asks, func(m string) bool { return marked[m] }) {
					done++
				}
			}
			if done == 0 || done == len(b.domains) {
				t.Fatalf("%d of %d domains were done at Ctrl-C: it proves nothing", done, len(b.domains))
			}
			at := time.Now()
			run(t, w, dir)
			for domain, asks := range b.domains {
				if slices.ContainsFunc(asks, func(m string) bool { return !marked[m] }) {
					continue
				}
				for _, r := range w.Requests() {
					if r.Start.After(at) && strings.TrimPrefix(r.Host, "www.") == domain {
						t.Errorf("%s was done at Ctrl-C, and got another request for %s", domain, r.Path)
					}
				}
			}
			rig.Same(t, rig.Objects(t, dir), uninterrupted(t, w, b))
		})
	}
}

// The second watcher of a store waits for the first one, and continues its work
// when the first is killed.
func TestSecondWatcherTakesOver(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			w, release := slowWeb(t)
			b := gated()
			dir := rig.Directory(t, b.files)
			s := rig.Open(t, dir)
			first := watch(t, w, dir, way)
			rig.Eventually(t, "the first watcher at its hosts", 20*time.Second, asked(w, 6))
			second := watch(t, w, dir, way)
			rig.Eventually(t, "the second watcher waiting", 20*time.Second, func() bool {
				return second.Ended() || strings.Contains(second.Output(t), "waiting: ")
			})
			if out := second.Output(t); second.Ended() || !strings.Contains(out, fmt.Sprintf("pid %d", first.Cmd.Process.Pid)) {
				t.Fatalf("the second watcher does not say who works:\n%s", rig.Tail(out))
			}
			var id string
			for line := range strings.Lines(runs(t, dir, "list")) {
				if f := strings.Fields(line); len(f) > 3 && f[3] == "running" && !strings.Contains(f[0], "-b0") {
					id = f[0]
				}
			}
			asked := len(w.Requests())
			require.NoError(t, first.Cmd.Process.Kill())
			assert.EqualValues(t, -1, first.Wait(t, 10*time.Second))
			release()
			rig.Eventually(t, "all files' .success by the second watcher", 30*time.Second, func() bool {
				return second.Ended() || there(t, s, "datasets/country=sg/category=news/date=2026-02-01/raw_0001.json.success")()
			})
			key := raw(t, dir, 1, "urlset-1001.com")
			rig.Eventually(t, "a new file's .success", 30*time.Second, func() bool { return second.Ended() || there(t, s, key+".success")() })
			if second.Ended() {
				t.Fatalf("the second watcher ended:\n%s", rig.Tail(second.Output(t)))
			}
			assert.True(t, len(w.Requests()) > asked, "the second watcher sent no request, so the test proves nothing")
			r, err := ledger.Load(t.Context(), s, id)
			assert.True(t, err == nil && r.State.Over(), "the killed watch %q is %v (%v), want its run closed", id, r.State, err)
			interrupt(t, second)
			b.files[key] = `{"records":[{"raw_url":"https://urlset-1001.com/"}]}`
			rig.Same(t, rig.Objects(t, dir), uninterrupted(t, w, b))
		})
	}
}
