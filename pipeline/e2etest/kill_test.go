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

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

// moment is when a run is killed.
type moment struct {
	after   float64       // share of the requests of an uninterrupted run
	then    time.Duration // and so long after that
	runner  string
	forced  bool
	another bool // kill the second try as well, a little later
}

func (m moment) String() string {
	return fmt.Sprintf("%s_%.0f%%_%v_forced=%t_twice=%t", m.runner, m.after*100, m.then, m.forced, m.another)
}

func TestKilledRunEndsAsAnUninterruptedOne(t *testing.T) {
	var moments []moment
	for i := range 26 {
		m := moment{after: float64(i-3) / 20, runner: []string{"direct", "prism"}[i%2], forced: i%3 == 2, another: i%5 == 4}
		switch { // also before the first request and after the last one
		case i < 3:
			m.after, m.then = 0, time.Duration(i*30)*time.Millisecond
		case i > 22:
			m.after, m.then = 1, time.Duration((i-23)*8)*time.Millisecond
		}
		moments = append(moments, m)
	}
	b := generate(90, steadyKinds)
	killing(t, b, moments, func(t *testing.T, files map[string][]byte) string { return directory(t, files) })
}

func TestKilledRunEndsAsAnUninterruptedOneOnS3(t *testing.T) {
	s3 := storetest.StartVersity(t)
	n := 0
	moments := []moment{{0, 40 * time.Millisecond, "direct", false, false}, {.1, 0, "prism", false, false}, {.3, 0, "direct", true, false},
		{.6, 0, "direct", false, true}, {.9, 0, "prism", true, false}, {1, 10 * time.Millisecond, "direct", false, false}, {1, 60 * time.Millisecond, "prism", false, false}}
	killing(t, generate(40, steadyKinds), moments, func(t *testing.T, files map[string][]byte) string {
		n++
		url := "s3://" + s3.Bucket + "/s" + strconv.Itoa(n) + "?endpoint=" + s3.Endpoint + "&region=us-east-1"
		put(t, url, files)
		return url
	})
}

func killing(t *testing.T, b bucket, moments []moment, lay func(*testing.T, map[string][]byte) string) {
	w := startWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	reference := lay(t, b.files)
	w.run(t, reference)
	want := objects(t, reference)
	requests := len(w.Requests())
	done := map[string][]byte{} // the input of a forced run: a bucket that is complete
	for k, v := range want {
		done[k] = []byte(v)
	}
	checked := 0
	for _, m := range moments {
		t.Run(m.String(), func(t *testing.T) {
			files := b.files
			args := []string{"--runner=" + m.runner}
			if m.forced {
				files, args = done, append(args, "--force")
			}
			url := lay(t, files)
			kills := 1
			if m.another {
				kills = 2
			}
			for range kills {
				w.ResetLog()
				c := w.start(t, url, args...)
				until := int(m.after * float64(requests) / float64(kills))
				eventually(t, "the requests before the kill", time.Minute, func() bool {
					return len(w.Requests()) >= until || c.ended()
				})
				time.Sleep(m.then)
				_ = c.cmd.Process.Kill() // it may be through already
				c.wait(t, 10*time.Second)
				time.Sleep(50 * time.Millisecond) // what it sent last may still be on its way into the server
			}
			at := time.Now()
			marked := marks(t, url, m.forced)
			for file, domains := range b.inFile {
				if !marked[file+".success"] {
					continue
				}
				for _, mark := range domains {
					if !marked[mark] {
						t.Errorf("%s was marked at the kill, though %s was not", file, mark)
					}
				}
			}
			w.run(t, url, args...)
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
						t.Errorf("%s was done at the kill and asked again for %s", domain, r.Path)
					}
				}
			}
			same(t, objects(t, url), want)
			w.ResetLog()
			w.run(t, url, "--runner="+m.runner)
			if again := w.Requests(); len(again) > 0 {
				t.Errorf("a run of the complete bucket asked %d times, first %s%s", len(again), again[0].Host, again[0].Path)
			}
		})
	}
	if checked == 0 {
		t.Error("no kill came between two domains: the moments prove nothing")
	}
}

func (c *child) ended() bool {
	select {
	case err := <-c.exited:
		c.exited <- err
		return true
	default:
		return false
	}
}

// slowWeb keeps a run busy until release is called: its hosts answer then.
func slowWeb(t *testing.T) (w internet, release func()) {
	t.Helper()
	w = startWeb(t, webtest.Options{Seed: 7})
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

// gated is a bucket with hosts of slowWeb among others.
func gated() bucket {
	b := generate(20, steadyKinds)
	var records []string
	for i := range 6 {
		records = append(records, fmt.Sprintf(`{"raw_url":"https://gated-%d.com/"}`, i))
	}
	b.files["datasets/country=sg/category=news/date=2026-02-01/raw_0001.json"] = []byte(`{"records":[` + strings.Join(records, ",") + `]}`)
	return b
}

func asked(w internet, n int) func() bool { return func() bool { return w.MaxInFlight() >= n } }

func TestSecondRunIsRefusedWhileTheFirstLives(t *testing.T) {
	w, release := slowWeb(t)
	dir := directory(t, gated().files)
	first := w.start(t, dir)
	eventually(t, "the first run at its hosts", 20*time.Second, asked(w, 6))
	second := w.start(t, dir)
	if code := second.wait(t, 10*time.Second); code != 1 {
		t.Errorf("the second run: exit code %d, want 1", code)
	}
	if out := second.output(t); !strings.Contains(out, fmt.Sprintf("pid %d", first.cmd.Process.Pid)) || !strings.Contains(out, "runs cancel") {
		t.Errorf("the second run does not say who holds the lease and what to do:\n%s", out)
	}
	release()
	if code := first.wait(t, time.Minute); code != 0 {
		t.Errorf("the first run: exit code %d\n%s", code, tail(first.output(t)))
	}
}

func TestChildOfAKilledLauncherKeepsItsLease(t *testing.T) {
	w, release := slowWeb(t)
	b := gated()
	dir := directory(t, b.files)
	args := w.args(dir)
	launcher := startChild(t, exec.Command("sh", append([]string{"-c", `"$@" & echo "child $!"; wait`, "sh", program}, args...)...), w.ca)
	eventually(t, "the child at its hosts", 20*time.Second, asked(w, 6))
	_, line, _ := strings.Cut(launcher.output(t), "child ")
	line, _, _ = strings.Cut(line, "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // it has ended, or it must
	if err := launcher.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	launcher.wait(t, 10*time.Second)
	second := w.start(t, dir)
	if code := second.wait(t, 10*time.Second); code != 1 || !strings.Contains(second.output(t), fmt.Sprintf("pid %d", pid)) {
		t.Errorf("with the launcher's child alive: exit code %d, want 1 and pid %d\n%s", code, pid, tail(second.output(t)))
	}
	release()
	eventually(t, "the child's end", time.Minute, func() bool { return syscall.Kill(pid, 0) != nil })

	same(t, objects(t, dir), uninterrupted(t, w, b))
	w.ResetLog()
	w.run(t, dir)
	if n := len(w.Requests()); n != 0 {
		t.Errorf("a run after the child's end asked %d times", n)
	}
}

func uninterrupted(t *testing.T, w internet, b bucket) map[string]string {
	t.Helper()
	reference := directory(t, b.files)
	w.run(t, reference)
	return objects(t, reference)
}

func TestLeaseOfAKilledHolderOnAnotherMachineExpires(t *testing.T) {
	w, release := slowWeb(t)
	b := gated()
	dir := directory(t, b.files)
	first := w.start(t, dir, "--lease-ttl=3s")
	eventually(t, "the first run at its hosts", 20*time.Second, asked(w, 6))
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait(t, 10*time.Second)
	s := openStore(t, dir)
	var expires time.Time
	for o, err := range s.List(t.Context(), "lease/seed/") {
		if err != nil {
			t.Fatal(err)
		}
		var l map[string]any
		if err := json.Unmarshal(get(t, s, o.Key), &l); err != nil {
			t.Fatal(err)
		}
		holder := l["holder"].(map[string]any)
		holder["host"], holder["boot_id"] = "elsewhere", "another-boot"
		expires = time.Now().Add(3 * time.Second)
		l["expires_at"] = expires.UTC()
		body, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), o.Key, bytes.NewReader(body), store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if expires.IsZero() {
		t.Fatal("there is no lease")
	}
	early := w.start(t, dir)
	if code := early.wait(t, 10*time.Second); code != 1 || !strings.Contains(early.output(t), "host elsewhere") {
		t.Errorf("before the lease expired: exit code %d, want 1 and the holder's host\n%s", code, tail(early.output(t)))
	}
	release()
	time.Sleep(time.Until(expires))
	w.run(t, dir)
	same(t, objects(t, dir), uninterrupted(t, w, b))
}

func TestInterrupt(t *testing.T) {
	for _, runner := range []string{"direct", "prism"} {
		t.Run(runner, func(t *testing.T) {
			w, release := slowWeb(t)
			b := gated()
			dir := directory(t, b.files)
			c := w.start(t, dir, "--runner="+runner)
			eventually(t, "the run at its hosts", 20*time.Second, asked(w, 6))
			begin := time.Now()
			if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			code := c.wait(t, 20*time.Second)
			if took := time.Since(begin); code != 130 || took > 5*time.Second {
				t.Errorf("Ctrl-C: exit code %d after %v, want 130 within 5 s\n%s", code, took, tail(c.output(t)))
			}
			if state := lastReport(t, dir)["state"]; state != "interrupted" {
				t.Errorf("the report's state is %v, want interrupted", state)
			}
			release()
			at := time.Now()
			marked := marks(t, dir, false)
			w.run(t, dir, "--runner="+runner)
			for domain, asks := range b.domains {
				all := true
				for _, mark := range asks {
					all = all && marked[mark]
				}
				for _, r := range w.Requests() {
					if all && r.Start.After(at) && strings.TrimPrefix(r.Host, "www.") == domain {
						t.Errorf("%s was done at the interrupt and asked again for %s", domain, r.Path)
					}
				}
			}
			same(t, objects(t, dir), uninterrupted(t, w, b))
		})
	}
}
