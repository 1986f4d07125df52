package seed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

func TestStoreFailed(t *testing.T) {
	j := newJob(t, webtest.Options{})
	raw, other := day+"raw_0001.json", day+"raw_0002.json"
	j.put(raw, rawFile("https://kind-urlset-1.com", "https://kind-urlset-2.com"))
	j.put(other, rawFile("https://kind-urlset-2.com"))
	mend := j.spoil(out(raw, "kind-urlset-1.com", "domain_metadata.json"))
	total := j.run()
	letters := j.deadLetters()
	if len(letters) != 1 || letters[0].Kind != "store_failed" || letters[0].Input.DomainID != "com:sg:kind-urlset-1.com" || letters[0].Input.Key != out(raw, "kind-urlset-1.com", "domain_metadata.json") {
		t.Fatalf("dead letters %+v", letters)
	}
	if j.done(raw, "kind-urlset-1.com") || j.exists(raw+".success") || !j.done(raw, "kind-urlset-2.com") || !j.exists(other+".success") {
		t.Error("what could not be stored, and its file, must stay open; the rest must be done")
	}
	if c := total.Counts; c["domains_failed"] != 1 || c["domains_collected"] != 1 || c["files_open"] != 1 || c["files_completed"] != 1 {
		t.Errorf("counts %v", c)
	}
	mend()
	j.web.ResetLog()
	j.run()
	if l := j.deadLetters(); len(l) != 0 || !j.exists(raw+".success") || !j.done(raw, "kind-urlset-1.com") {
		t.Errorf("after the store was mended: dead letters %+v", l)
	}
	assert.Empty(t, j.asked("kind-urlset-2.com"), "the next run does just the unfinished domains")
}

// A raw file whose own mark the store does not take stays open, with a dead letter.
func TestFileMarkFails(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.put(raw, rawFile("https://kind-urlset-1.com"))
	mend := j.spoil(raw + ".success")
	total := j.run()
	l := j.deadLetters()
	require.True(t, len(l) == 1 && l[0].Kind == "store_failed" && l[0].Stage == "complete" && l[0].Retryable && l[0].Input.File == raw,
		"dead letters %+v", l)
	c := total.Counts
	assert.True(t, c["files_open"] == 1 && c["files_completed"] == 0 && c["dead_letters"] == 1, "counts %v", c)
	mend()
	if total = j.run(); total.Counts["files_completed"] != 1 || len(j.deadLetters()) != 0 {
		t.Errorf("counts %v, dead letters %+v after the store was mended", total.Counts, j.deadLetters())
	}
}

// A store that permanently refuses results and dead letters (a full disk, a revoked
// permission) ends the run, because all later requests would be in vain.
func TestStoreRefusesEverything(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.cfg.Lane.Web.Concurrency = 1
	raw, names := j.hosts(200)
	for _, name := range names {
		j.spoil(out(raw, name, "domain_metadata.json"))
	}
	j.put("dead-letters/seed", "a file where the folder should be")
	j.run()
	assert.True(t, j.cause != nil && strings.Contains(j.cause.Error(), "run the same command again"),
		"cause %v, want one that says what to do", j.cause)
	n := len(j.web.Requests())
	assert.True(t, n != 0 && n <= 20, "%d requests were sent, want those of the first few domains", n)
	assert.False(t, j.exists(raw+".success"), "the file is complete")
}

func TestEvidenceIsBestEffort(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.put(raw, rawFile("https://kind-urlset-1.com"))
	j.spoil(out(raw, "kind-urlset-1.com", "robots.txt"))
	j.run()
	assert.True(t, j.done(raw, "kind-urlset-1.com") && len(j.deadLetters()) == 0 && len(j.events("evidence_file_save_failed")) == 1,
		"dead letters %+v, log %v", j.deadLetters(), j.log)
}

// Evidence of an earlier try that was killed is removed if this try has none.
func TestOldEvidenceIsRemoved(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.put(raw, rawFile("https://kind-reset-1.com"))
	for _, name := range []string{"robots.txt", "sitemap.xml"} {
		j.put(out(raw, "kind-reset-1.com", name), "old")
	}
	j.run()
	if j.exists(out(raw, "kind-reset-1.com", "robots.txt")) || j.exists(out(raw, "kind-reset-1.com", "sitemap.xml")) || !j.done(raw, "kind-reset-1.com") {
		t.Error("old evidence stays")
	}
}

// Metadata that breaks its schema: a person must look at it, and its file is done.
func TestInvalidMetadata(t *testing.T) {
	mend := seed.Spoil(t, "site.com")
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", pages(nil))
	j.crawl("https://site.com")
	letters := j.deadLetters()
	if len(letters) != 1 || letters[0].Kind != "invalid_metadata" || letters[0].Retryable || !strings.Contains(letters[0].Error, "/robots/status_code") {
		t.Fatalf("dead letters %+v", letters)
	}
	assert.True(t, !j.done(raw, "site.com") && !j.exists(out(raw, "site.com", "domain_metadata.json")) && j.exists(raw+".success"),
		"invalid metadata is not written, and does not keep its file open")
	mend()
	must(t, j.store.Delete(t.Context(), raw+".success"))
	j.run()
	l := j.deadLetters()
	assert.True(t, len(l) == 0 && j.done(raw, "site.com"), "a success leaves %+v", l)
}

// A raw file that is replaced while its domains are visited is read again.
func TestReplacedFileStaysOpen(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.web.Handle("site.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		j.put(raw, rawFile("https://site.com", "https://kind-urlset-1.com"))
		http.NotFound(w, r)
	}))
	j.crawl("https://site.com")
	assert.True(t, !j.exists(raw+".success") && len(j.events("file_replaced")) == 1,
		"the version that was read is gone: the file must stay open")
	j.run()
	assert.True(t, j.exists(raw+".success") && j.done(raw, "kind-urlset-1.com"), "the new version is not done")
}

// A stop leaves what was not begun, and every file that waits for it, open.
func TestStopLeavesFilesOpen(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.cfg.Lane.Web.Concurrency, j.cfg.Lane.Grace = 1, 10*time.Second
	raw, one := day+"raw_0001.json", day+"raw_0002.json"
	j.web.Handle("site.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if w, ok := lane.Find(j.runID); ok {
			w.Stop(nil)
		}
		http.NotFound(w, r)
	}))
	j.put(raw, rawFile("https://site.com", "https://kind-urlset-1.com", "https://kind-urlset-2.com"))
	j.put(one, rawFile("https://site.com"))
	j.run()
	assert.True(t, j.done(raw, "site.com") && j.exists(one+".success"), "what was begun must end within the grace time")
	if j.exists(raw+".success") || len(j.asked("kind-urlset-2.com")) != 0 || len(j.events("file_left_open")) != 1 || len(j.deadLetters()) != 0 {
		t.Error("what was not begun must stay open, without a dead letter")
	}
	j.run()
	assert.True(t, j.exists(raw+".success") && j.done(raw, "kind-urlset-2.com"), "the next run must do the rest")
}

// A run that was stopped, perhaps because this machine lacks something, says of no host that it cannot be reached.
func TestStopMarksNoUnreachableHost(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.cfg.Lane.Grace = 10 * time.Second
	j.web.Become("dead.com", webtest.KindRefused)
	j.web.Handle("site.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Eventually(t, func() bool { return j.exists(out(raw, "dead.com", hive.Metadata)) }, 10*time.Second, time.Millisecond)
		if w, ok := lane.Find(j.runID); ok {
			w.Stop(nil)
		}
		http.NotFound(w, r)
	}))
	j.crawl("https://site.com", "https://dead.com")
	require.True(t, j.done(raw, "site.com"))
	require.False(t, j.done(raw, "dead.com"))
	require.Empty(t, j.deadLetters())
	j.web.Become("site.com", webtest.KindURLSet)
	j.run()
	require.True(t, j.done(raw, "dead.com"))
	require.True(t, j.exists(raw+".success"))
}

func TestForcedRunDoesAllOnce(t *testing.T) {
	j := newJob(t, webtest.Options{})
	raw, name := day+"raw_0001.json", "kind-urlset-1.com"
	j.crawl("https://" + name)
	for _, tt := range []struct {
		force string
		asked int
	}{{"", 2}, {"a", 4}, {"a", 4}, {"b", 6}, {"", 6}} {
		j.cfg.ForceID = tt.force
		j.run()
		assert.Equal(t, tt.asked, len(j.asked(name)), "force %q", tt.force)
	}
	for _, key := range []string{raw + ".success", out(raw, name, "domain_metadata.json.success")} {
		o, err := j.store.Head(t.Context(), key)
		assert.True(t, err == nil && o.Metadata["forced-by"] == "b", "%s: %v, %v", key, o.Metadata, err)
	}
}

// door is in front of the simulated web. When it is shut, connections are refused.
type door struct {
	t    *testing.T
	to   string
	at   string
	ln   net.Listener
	left atomic.Int64 // connections until it shuts by itself
}

func newDoor(t *testing.T, to string, left int64) *door {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	d := &door{t: t, to: to, at: ln.Addr().String(), ln: ln}
	d.left.Store(left)
	go d.serve(ln)
	t.Cleanup(func() { _ = d.ln.Close() }) // it may be shut already
	return d
}

func (d *door) serve(ln net.Listener) {
	for {
		in, err := ln.Accept()
		if err != nil {
			return
		}
		if d.left.Add(-1) == 0 {
			_ = ln.Close() // in time: its client has one connection only
		}
		go func() {
			outward, err := net.Dial("tcp4", d.to)
			if err != nil {
				_ = in.Close()
				return
			}
			go func() { _, _ = io.Copy(outward, in); _ = outward.(*net.TCPConn).CloseWrite() }()
			_, _ = io.Copy(in, outward)
			_, _ = in.Close(), outward.Close()
		}()
	}
}

func (j *job) hosts(n int) (raw string, names []string) {
	j.t.Helper()
	var urls []string
	for i := range n {
		names = append(names, fmt.Sprintf("kind-no-sitemap-%d.com", i))
		urls = append(urls, "https://"+names[i])
	}
	raw = day + "raw_0001.json"
	j.put(raw, rawFile(urls...))
	return raw, names
}

func (j *job) marks() (n int) {
	j.t.Helper()
	for o, err := range j.store.List(j.t.Context(), "processing/") {
		must(j.t, err)
		if strings.HasSuffix(o.Key, "domain_metadata.json.success") {
			n++
		}
	}
	return n
}

// Fewer than a window, and all of them fail: nothing is marked.
func TestOutageOfAll(t *testing.T) {
	j := newJob(t, webtest.Options{})
	d := newDoor(t, j.web.Addr(), 1)
	must(t, d.ln.Close())
	j.cfg.Lane.Web.ConnectTo = d.at
	raw, names := j.hosts(20)
	total := j.run()
	assert.True(t, total.Counts["outage"] != 0 && total.Counts["files_open"] == 1, "the launcher gets no word of the outage: %v", total.Counts)
	if n := j.marks(); n != 0 || j.exists(raw+".success") || len(j.deadLetters()) != 0 {
		t.Errorf("%d domains marked, file done %v, letters %v", n, j.exists(raw+".success"), j.deadLetters())
	}
	// The network is back: the same command does it all.
	j.cfg.Lane.Web.ConnectTo = j.web.Addr()
	j.run()
	if n := j.marks(); n != len(names) || !j.exists(raw+".success") || !j.metadata(raw, names[0]).Robots.Exists {
		t.Errorf("after the outage %d domains marked, want %d", n, len(names))
	}
}

// A mark that the outage guard has delayed resolves the dead letter of an earlier run,
// whether Complete writes it, the lane at its end, or the lane when the window is clear.
func TestDelayedMarkResolvesItsDeadLetter(t *testing.T) {
	for who, others := range map[string]int{"Complete": 10, "the lane": 30, "the window": 220} {
		j := newJob(t, webtest.Options{})
		dead, raw, more := "kind-no-such-host-1.com", day+"raw_0001.json", day+"raw_0002.json"
		j.put(raw, rawFile("https://"+dead))
		mend := j.spoil(out(raw, dead, "domain_metadata.json"))
		j.run()
		l := j.deadLetters()
		require.True(t, len(l) == 1 && l[0].Kind == "store_failed" && !j.exists(raw+".success"), "%s: dead letters %+v", who, l)
		mend()
		var urls []string
		for i := range others {
			urls = append(urls, fmt.Sprintf("https://kind-no-sitemap-%d.com", i))
		}
		j.put(more, rawFile(urls...))
		j.run()
		if l := j.deadLetters(); len(l) != 0 || !j.done(raw, dead) || !j.exists(raw+".success") || !j.exists(more+".success") {
			t.Errorf("%s let the mark go: done %v, dead letters left %+v", who, j.done(raw, dead), l)
		}
	}
}

// A whole window fails: the run stops early, by a clear error.
func TestOutageStopsTheRun(t *testing.T) {
	j := newJob(t, webtest.Options{})
	d := newDoor(t, j.web.Addr(), 1)
	must(t, d.ln.Close())
	j.cfg.Lane.Web.ConnectTo = d.at
	raw, _ := j.hosts(1000)
	total := j.run()
	assert.True(t, j.cause != nil && strings.Contains(j.cause.Error(), "network"), "cause %v", j.cause)
	n := j.marks()
	assert.True(t, n == 0 && !j.exists(raw+".success"), "%d domains marked", n)
	if n := total.HTTP.Failures["connect"] / 4; n < 200 || n > 300 { // each with www. and http
		t.Errorf("%d domains were tried, want little more than the window of 200", n)
	}
}

// A share of failures below the threshold is the sites' own, and recorded.
func TestFewFailuresAreMarked(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.cfg.Lane.Web.Concurrency = 1
	d := newDoor(t, j.web.Addr(), 4)
	j.cfg.Lane.Web.ConnectTo = d.at
	raw, names := j.hosts(10)
	total := j.run()
	assert.EqualValues(t, 0, total.Counts["outage"], "an outage is reported: %v", total.Counts)
	n := j.marks()
	assert.True(t, n == len(names) && j.exists(raw+".success"), "%d domains marked, want %d", n, len(names))
	assert.EqualValues(t, 6*4, total.HTTP.Failures["connect"]) // with www. and http
	m := j.metadata(raw, names[9])
	if m.Robots.StatusCode != 0 || m.Robots.Error != "connect" || m.Robots.Exists || m.Robots.ContentLength != 0 || m.Sitemap.StatusCode != 404 || m.Sitemap.Error != "connect" || m.Sitemap.URL != "https://"+names[9]+"/sitemap.xml" {
		t.Errorf("%+v", m)
	}
}

// Without the guard every failure is recorded.
func TestOutageGuardOff(t *testing.T) {
	j := newJob(t, webtest.Options{})
	d := newDoor(t, j.web.Addr(), 1)
	must(t, d.ln.Close())
	j.cfg.Lane.Web.ConnectTo, j.cfg.OutageThreshold = d.at, 0
	raw, names := j.hosts(5)
	j.run()
	n := j.marks()
	assert.True(t, n == len(names) && j.exists(raw+".success"), "%d domains marked, want %d", n, len(names))
}

// More than one lane, files and partitions: all is done, and each host once.
func TestLanes(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.cfg.Lanes, j.cfg.Lane.Slots = 7, 2
	raw, names := j.hosts(60)
	kr := "datasets/country=kr/category=news/date=2026-01-28/raw_0001.json" // names them all again
	j.put(kr, string(j.read(raw)))
	total := j.run()
	assert.True(t, j.marks() == 120 && j.exists(raw+".success") && j.exists(kr+".success") && total.Counts["domains_collected"] == 120,
		"%d marked, %v", j.marks(), total.Counts)
	for _, n := range names {
		got := j.asked(n)
		assert.True(t, slices.Index(got, "/robots.txt") == 0 && len(got) == 4, "%s was asked for %q", n, got)
	}
	assert.True(t, total.HTTP.Requests == 240 && total.HTTP.ByStatus["200"] == 60 && total.HTTP.ByStatus["404"] == 180,
		"the total is exact: %+v", total.HTTP)
	_, err := j.store.Head(t.Context(), raw)
	assert.True(t, err == nil && total.Store["put"] != 0, "store calls %v, %v", total.Store, err)
}

// keeping is a store that does not let go of dead letters.
type keeping struct{ store.Store }

func (s keeping) Delete(ctx context.Context, key string) error {
	if strings.HasPrefix(key, "dead-letters/") {
		return errors.New("not permitted")
	}
	return s.Store.Delete(ctx, key)
}

// A mark says that nothing is left to do: where the dead letter of an earlier
// failure cannot be removed, the domain stays open, and the next run removes it.
func TestDeadLetterThatCannotBeRemoved(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.put(raw, rawFile("https://kind-urlset-1.com"))
	mend := j.spoil(out(raw, "kind-urlset-1.com", "domain_metadata.json"))
	j.run()
	mend()
	j.wrap = func(s store.Store) store.Store { return keeping{s} }
	j.run()
	if l := j.deadLetters(); len(l) != 1 || l[0].Kind != "store_failed" || j.done(raw, "kind-urlset-1.com") || j.exists(raw+".success") {
		t.Fatalf("done %v with dead letters %+v, want it open", j.done(raw, "kind-urlset-1.com"), l)
	}
	j.wrap = nil
	j.run()
	if l := j.deadLetters(); len(l) != 0 || !j.done(raw, "kind-urlset-1.com") || !j.exists(raw+".success") {
		t.Errorf("dead letters left %+v, done %v", l, j.done(raw, "kind-urlset-1.com"))
	}
}
