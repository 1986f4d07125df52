//go:build e2e

package flink

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// interval is the interval of the watches.
const interval = 4 * time.Second

// A raw file that appears while the program watches.
const (
	appears = "datasets/country=sg/category=news/date=2026-02-02/raw_0001.json"
	inIt    = `{"records":[{"raw_url":"https://urlset-1001.com/"},{"raw_url":"https://euckr-1002.com/"},{"raw_url":"https://no-robots-1003.com/"}]}`
)

// marked reports whether all these raw files have their .success.
func marked(t *testing.T, s store.Store, keys ...string) func() bool {
	return func() bool {
		for _, key := range keys {
			if _, err := s.Head(t.Context(), key+".success"); err != nil {
				return false
			}
		}
		return true
	}
}

// first returns the raw files of a bucket that can be read.
func first(files map[string]string) (keys []string) {
	for key, body := range files {
		if json.Valid([]byte(body)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// requestedOnce checks that no URL was requested twice.
func requestedOnce(t *testing.T, log []webtest.LoggedRequest) {
	t.Helper()
	requested := map[string]bool{}
	for _, r := range log {
		if at := r.Host + r.Path; r.Method != "" && requested[at] {
			t.Errorf("%s was requested again", at)
		} else {
			requested[at] = true
		}
	}
}

// running is the number of the server's Flink jobs that have not ended.
func (s server) running(t *testing.T) int {
	out := s.Output(t)
	return strings.Count(out, "StandaloneDispatcher - Submitting job ") - strings.Count(out, " reached terminal state ")
}

// control calls "runs VERB" for the newest run.
func control(t *testing.T, dir, verb string) {
	t.Helper()
	if out, err := exec.Command(rig.Program, "runs", verb, runID(t, dir), "--store="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// stop ends a watch as a person would, and checks the state of its run.
func stop(t *testing.T, c *rig.Child, dir, by string) {
	t.Helper()
	state := "interrupted"
	if by == "runs cancel" {
		state = "cancelled"
		control(t, dir, "cancel")
	} else if err := c.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if code := c.Wait(t, time.Minute); code != 130 {
		t.Errorf("exit code %d, want 130:\n%s", code, rig.Tail(c.Output(t)))
	}
	t.Logf("ended %v after %s", time.Since(begin), by)
	if r := rig.LastReport(t, dir); r.State != state {
		t.Errorf("the watch is %s, want %s", r.State, state)
	}
}

// newFile waits until a watch has done the first files, adds another file, waits
// until that is done too, and returns the time at which it was added.
func newFile(t *testing.T, watch *rig.Child, dir string, files map[string]string) time.Time {
	t.Helper()
	objects := rig.Open(t, dir)
	rig.Eventually(t, "the first files' .success", 2*time.Minute, func() bool { return watch.Ended() || marked(t, objects, first(files)...)() })
	begin := time.Now()
	rig.Put(t, dir, map[string]string{appears: inIt})
	rig.Eventually(t, "the new file's .success", time.Minute, func() bool { return watch.Ended() || marked(t, objects, appears)() })
	if watch.Ended() {
		t.Fatalf("the watch ended:\n%s", rig.Tail(watch.Output(t)))
	}
	t.Logf(".success %v after the file", time.Since(begin))
	return begin
}

// One unbounded job, which Flink runs as a stream.
func TestWatchStreaming(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 5 * time.Millisecond})
	files := rig.Bucket(60)
	reference := rig.Directory(t, files)
	rig.Put(t, reference, map[string]string{appears: inIt})
	w.Run(t, reference, "--runner=prism")
	want := rig.Objects(t, reference)
	s := startServer(t, w)
	for _, c := range []struct{ environment, by string }{{"LOOPBACK", "Ctrl-C"}, {"PROCESS", "runs cancel"}} {
		t.Run(c.environment+"/"+c.by, func(t *testing.T) {
			w.ResetLog()
			dir := rig.Directory(t, files)
			watch := w.Start(t, dir, s.args(c.environment, 2, "--watch="+interval.String(), "--streaming", "--concurrency=6", "--log-level=info")...)
			begin := newFile(t, watch, dir, files)
			if c.environment == "LOOPBACK" { // whose workers' log is the program's
				if read := reads(watch.Output(t), appears); len(read) != 1 || read[0].Sub(begin) > 2*interval {
					t.Errorf("the new file was read %v after %v, want once within two intervals", read, begin)
				}
			}
			stop(t, watch, dir, c.by)
			rig.Eventually(t, "no Flink job and no worker is left", 30*time.Second, func() bool { return s.running(t) == 0 && len(s.workers(t)) == 0 })
			rig.Same(t, rig.Objects(t, dir), want)
			requestedOnce(t, w.Requests())
			rig.OneAtATime(t, w.Requests())
			if n := w.MaxInFlight(); n > 6 || n < 2 {
				t.Errorf("%d requests in flight, want up to 6 over all lanes", n)
			}
			if r := rig.LastReport(t, dir); r.Counts["files_completed"] != int64(len(first(files))+1) || r.HTTP.Requests != int64(len(w.Requests())) {
				t.Errorf("the report has %v and %d requests, the web's log %d", r.Counts, r.HTTP.Requests, len(w.Requests()))
			}
		})
	}
}

// reads returns the times at which the program read a raw file, by its log.
func reads(log, file string) (at []time.Time) {
	lines := bufio.NewScanner(strings.NewReader(log))
	for lines.Scan() {
		var l struct {
			Time     time.Time
			Event    string
			FilePath string `json:"file_path"`
		}
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Event == "file_processor_start" && l.FilePath == file {
			at = append(at, l.Time)
		}
	}
	return at
}
