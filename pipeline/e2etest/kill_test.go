//go:build e2e

package e2etest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// moment is the time at which a run is killed.
type moment struct {
	after   float64       // share of the requests of an uninterrupted run
	then    time.Duration // additional time after that
	runner  string
	forced  bool
	another bool // the second try is killed too, a little later
	packed  bool // in segments
}

func (m moment) String() string {
	return fmt.Sprintf("%s_%.0f%%_%v_forced=%t_twice=%t_packed=%t", m.runner, m.after*100, m.then, m.forced, m.another, m.packed)
}

func TestKilledRunEndsAsAnUninterruptedOne(t *testing.T) {
	t.Parallel()
	var moments []moment
	for i := range 26 {
		if !rig.Nightly && i/2%2 == 1 {
			continue
		}
		m := moment{after: float64(i-3) / 20, runner: []string{"direct", "prism"}[i%2], forced: i%3 == 2, another: i%5 == 4}
		switch { // also before the first request and after the last one
		case i < 3:
			m.after, m.then = 0, time.Duration(i*30)*time.Millisecond
		case i > 22:
			m.after, m.then = 1, time.Duration((i-23)*8)*time.Millisecond
		}
		moments = append(moments, m)
		if i%2 == i/4%2 { // half of them, of both runners
			m.packed = true
			moments = append(moments, m)
		}
	}
	b := generate(90, steadyKinds)
	killing(t, b, moments, func(t *testing.T, files map[string]string) string { return rig.Directory(t, files) })
}

func TestKilledRunEndsAsAnUninterruptedOneOnS3(t *testing.T) {
	t.Parallel()
	s3 := buckettest.StartVersity(t)
	n := 0
	moments := []moment{{0, 40 * time.Millisecond, "direct", false, false, false}, {.1, 0, "prism", false, false, false}, {.3, 0, "direct", true, false, false},
		{.6, 0, "direct", false, true, false}, {.9, 0, "prism", true, false, false}, {1, 10 * time.Millisecond, "direct", false, false, false}, {1, 60 * time.Millisecond, "prism", false, false, false},
		{.5, 0, "direct", false, false, true}, {.9, 0, "prism", true, true, true}, {1, 10 * time.Millisecond, "direct", false, false, true}}
	killing(t, generate(40, steadyKinds), moments, func(t *testing.T, files map[string]string) string {
		n++
		url := "s3://" + s3.Bucket + "/s" + strconv.Itoa(n) + "?endpoint=" + s3.Endpoint + "&region=us-east-1"
		rig.Put(t, url, files)
		return url
	})
}

func killing(t *testing.T, b bucket, moments []moment, lay func(*testing.T, map[string]string) string) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	reference := lay(t, b.files)
	run(t, w, reference)
	want := rig.Objects(t, reference)
	requests := len(w.Requests())
	done := map[string]string{} // the input of a forced run: a complete bucket
	for k, v := range want {
		done[k] = v
	}
	checked := 0
	for _, m := range moments {
		t.Run(m.String(), func(t *testing.T) {
			files := b.files
			args := []string{"--runner=" + m.runner}
			if m.forced {
				files, args = done, append(args, "--force")
			}
			if m.packed {
				args = append(args, packed...)
			}
			url := lay(t, files)
			kills := 1
			if m.another {
				kills = 2
			}
			for range kills {
				w.ResetLog()
				c := start(t, w, url, args...)
				until := int(m.after * float64(requests) / float64(kills))
				rig.Eventually(t, "the requests before the kill", time.Minute, func() bool {
					return len(w.Requests()) >= until || c.Ended()
				})
				time.Sleep(m.then)
				_ = c.Cmd.Process.Kill() // it may have ended already
				c.Wait(t, 10*time.Second)
				time.Sleep(50 * time.Millisecond) // its last request may still be on the way to the server
			}
			at := time.Now()
			marked := marks(t, url, m.forced)
			for file, domains := range b.inFile {
				if !marked[file+".success"] {
					continue
				}
				for _, mark := range domains {
					assert.True(t, marked[mark], "%s was marked at the kill, though %s was not", file, mark)
				}
			}
			out := run(t, w, url, args...).Output(t)
			assert.NotContains(t, out, "lease_waits", "the run waited for the lease of a dead process, which is taken over at once")
			for domain, asks := range b.domains {
				all := true
				for _, mark := range asks {
					all = all && marked[mark]
				}
				if !all {
					continue
				}
				checked++
				for _, r := range w.Requests() {
					if r.Start.After(at) && strings.TrimPrefix(r.Host, "www.") == domain {
						t.Errorf("%s was done at the kill, and got another request for %s", domain, r.Path)
					}
				}
			}
			if m.packed {
				rig.Materialize(t, url)
			}
			rig.Same(t, rig.Objects(t, url), want)
			w.ResetLog()
			run(t, w, url, "--runner="+m.runner)
			if again := w.Requests(); len(again) > 0 {
				t.Errorf("a run of the complete bucket sent %d requests, first %s%s", len(again), again[0].Host, again[0].Path)
			}
		})
	}
	assert.NotEqual(t, 0, checked, "no kill came between two domains, so the test proves nothing")
}

// packed are the arguments of a run whose results are in segments, several of them.
var packed = []string{"--layout=table", "--segment-age=20ms"}

// slowWeb keeps a run busy: its hosts answer only after release is called.
func slowWeb(t *testing.T) (w rig.Web, release func()) {
	t.Helper()
	w = rig.StartWeb(t, webtest.Options{Seed: 7})
	var open atomic.Bool
	gate := make(chan struct{})
	for i := range 6 {
		w.Handle(fmt.Sprintf("gated-%d.com", i), http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			select {
			case <-gate:
				http.NotFound(rw, r)
			case <-r.Context().Done():
			}
		}))
	}
	release = func() {
		if open.CompareAndSwap(false, true) {
			close(gate)
		}
	}
	t.Cleanup(release)
	return w, release
}

// gated returns a bucket with hosts of slowWeb and others.
func gated() bucket {
	b := generate(20, steadyKinds)
	var records []string
	for i := range 6 {
		records = append(records, fmt.Sprintf(`{"raw_url":"https://gated-%d.com/"}`, i))
	}
	b.files["datasets/country=sg/category=news/date=2026-02-01/raw_0001.json"] = `{"records":[` + strings.Join(records, ",") + `]}`
	return b
}

func asked(w rig.Web, n int) func() bool { return func() bool { return w.MaxInFlight() >= n } }

func TestSecondRunIsRefusedWhileTheFirstLives(t *testing.T) {
	w, release := slowWeb(t)
	dir := rig.Directory(t, gated().files)
	first := start(t, w, dir)
	rig.Eventually(t, "the first run at its hosts", 20*time.Second, asked(w, 6))
	second := start(t, w, dir)
	assert.EqualValues(t, 1, second.Wait(t, 10*time.Second))
	if out := second.Output(t); !strings.Contains(out, fmt.Sprintf("pid %d", first.Cmd.Process.Pid)) || !strings.Contains(out, "runs cancel") {
		t.Errorf("the second run does not say who holds the lease and what to do:\n%s", out)
	}
	release()
	if code := first.Wait(t, time.Minute); code != 0 {
		t.Errorf("the first run: exit code %d\n%s", code, rig.Tail(first.Output(t)))
	}
}

func TestChildOfAKilledLauncherKeepsItsLease(t *testing.T) {
	w, release := slowWeb(t)
	b := gated()
	dir := rig.Directory(t, b.files)
	args := args(w, dir)
	launcher := startChild(t, exec.Command("sh", append([]string{"-c", `"$@" & echo "child $!"; wait`, "sh", rig.Program}, args...)...), w.CA)
	rig.Eventually(t, "the child at its hosts", 20*time.Second, asked(w, 6))
	_, line, _ := strings.Cut(launcher.Output(t), "child ")
	line, _, _ = strings.Cut(line, "\n")
	pid, err := strconv.Atoi(line)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // it may have ended already
	require.NoError(t, launcher.Cmd.Process.Kill())
	launcher.Wait(t, 10*time.Second)
	second := start(t, w, dir)
	if code := second.Wait(t, 10*time.Second); code != 1 || !strings.Contains(second.Output(t), fmt.Sprintf("pid %d", pid)) {
		t.Errorf("with the launcher's child alive: exit code %d, want 1 and pid %d\n%s", code, pid, rig.Tail(second.Output(t)))
	}
	release()
	rig.Eventually(t, "the child's end", time.Minute, func() bool { return syscall.Kill(pid, 0) != nil })

	rig.Same(t, rig.Objects(t, dir), uninterrupted(t, w, b))
	w.ResetLog()
	run(t, w, dir)
	assert.EqualValues(t, 0, len(w.Requests()))
}

func uninterrupted(t *testing.T, w rig.Web, b bucket) map[string]string {
	t.Helper()
	reference := rig.Directory(t, b.files)
	run(t, w, reference)
	return rig.Objects(t, reference)
}

func TestLeaseOfAKilledHolderOnAnotherMachineExpires(t *testing.T) {
	w, release := slowWeb(t)
	b := gated()
	dir := rig.Directory(t, b.files)
	first := start(t, w, dir, "--lease-ttl=3s")
	rig.Eventually(t, "the first run at its hosts", 20*time.Second, asked(w, 6))
	require.NoError(t, first.Cmd.Process.Kill())
	first.Wait(t, 10*time.Second)
	s := rig.Open(t, dir)
	var expires time.Time
	for o, err := range s.List(t.Context(), "lease/seed/") {
		require.NoError(t, err)
		var l map[string]any
		require.NoError(t, json.Unmarshal(rig.Get(t, s, o.Key), &l))
		holder := l["holder"].(map[string]any)
		holder["host"], holder["boot_id"] = "elsewhere", "another-boot"
		expires = time.Now().Add(3 * time.Second)
		l["expires_at"] = expires.UTC()
		body, err := json.Marshal(l)
		require.NoError(t, err)
		require.NoError(t, s.Put(t.Context(), o.Key, bytes.NewReader(body), store.PutOptions{}))
	}
	require.False(t, expires.IsZero(), "there is no lease")
	early := start(t, w, dir)
	if code := early.Wait(t, 10*time.Second); code != 1 || !strings.Contains(early.Output(t), "host elsewhere") {
		t.Errorf("before the lease expired: exit code %d, want 1 and the holder's host\n%s", code, rig.Tail(early.Output(t)))
	}
	release()
	time.Sleep(time.Until(expires))
	run(t, w, dir)
	rig.Same(t, rig.Objects(t, dir), uninterrupted(t, w, b))
}

func TestInterrupt(t *testing.T) {
	for _, row := range []struct {
		runner string
		signal syscall.Signal
	}{{"direct", syscall.SIGINT}, {"prism", syscall.SIGTERM}, {"direct", syscall.SIGHUP}} {
		runner := row.runner
		t.Run(runner+" "+row.signal.String(), func(t *testing.T) {
			w, release := slowWeb(t)
			b := gated()
			dir := rig.Directory(t, b.files)
			c := start(t, w, dir, "--runner="+runner)
			rig.Eventually(t, "the run at its hosts", 20*time.Second, asked(w, 6))
			begin := time.Now()
			require.NoError(t, c.Cmd.Process.Signal(row.signal))
			code := c.Wait(t, 20*time.Second)
			if took := time.Since(begin); code != 130 || took > 5*time.Second {
				t.Errorf("%s: exit code %d after %v, want 130 within 5 s\n%s", row.signal, code, took, rig.Tail(c.Output(t)))
			}
			assert.Equal(t, "interrupted", rig.LastReport(t, dir).State)
			release()
			at := time.Now()
			marked := marks(t, dir, false)
			run(t, w, dir, "--runner="+runner)
			for domain, asks := range b.domains {
				all := true
				for _, mark := range asks {
					all = all && marked[mark]
				}
				for _, r := range w.Requests() {
					if all && r.Start.After(at) && strings.TrimPrefix(r.Host, "www.") == domain {
						t.Errorf("%s was done at the interrupt, and got another request for %s", domain, r.Path)
					}
				}
			}
			rig.Same(t, rig.Objects(t, dir), uninterrupted(t, w, b))
		})
	}
}
