package seed_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/sockets"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
	"github.com/newsfork/seed-engine/transforms/seed"
)

func init() {
	register.Function1x1(fileText)
	register.Function2x1(readText)
	register.Function3x0(batchText)
	register.Function2x1(outcomeText)
	register.Function1x1(networkText)
	register.Function1x2(batchOfText)
	register.Function1x2(readOfText)
	register.Function1x2(outcomeOfText)
	register.Emitter1[string]()
}

// What stages emit, as text that lanetest.Equals compares.
func fileText(f seed.File) string { return fmt.Sprintf("%s %d", f.Key, f.Size) }

func readText(key string, r seed.FileSummary) string { return fmt.Sprintf("%s %d", key, r.Domains) }

func batchText(n int, b lane.Batch, emit func(string)) {
	if b.Broken {
		emit(fmt.Sprintf("%d %s broken", n, b.File))
	}
	records, err := b.Records()
	if err != nil {
		panic(err)
	}
	for _, r := range records {
		emit(fmt.Sprintf("%d %s %s:%s %d", n, b.File, r.Label, r.Host, r.Index))
	}
}

func outcomeText(key string, o seed.FileOutcome) string {
	return fmt.Sprintf("%s %d %d", key, o.Finished, len(o.Unmarked))
}

func networkText(n seed.Network) string {
	return fmt.Sprintf("%d visits, %d failed", n.Visits, n.Failed)
}

// batchOfText, readOfText and outcomeOfText make inputs of "file rest".
func batchOfText(line string) (int, lane.Batch) {
	file, host, ok := strings.Cut(line, " ")
	if !ok {
		return 0, lane.Batch{File: file, Broken: true}
	}
	return 0, lane.NewBatch(file, []lane.URLRecord{{Host: host, Label: "com:sg"}})
}

func readOfText(line string) (string, seed.FileSummary) {
	f := strings.Fields(line)
	return f[0], seed.FileSummary{ETag: f[1], Domains: int64(len(f[2]))}
}

func outcomeOfText(line string) (string, seed.FileOutcome) {
	f := strings.Fields(line)
	return f[0], seed.FileOutcome{Finished: int64(len(f[1]))}
}

// stage runs a part of the graph on its own.
func (j *job) stage(build func(beam.Scope, seed.Config)) {
	j.t.Helper()
	j.runs++
	cfg := j.cfg
	j.runID = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), j.runs)
	cfg.Lane.RunID, cfg.Lane.LogLevel = j.runID, 12
	ptest.BuildAndRun(j.t, func(s beam.Scope) { build(s, cfg) })
	must(j.t, lane.Close(j.runID))
}

// Anybody who reaches a prism can run commands, also the one of these tests.
func TestPrismListensOnLoopback(t *testing.T) {
	ptest.BuildAndRun(t, func(s beam.Scope) { lanetest.Equals(s, beam.Create(s, "a"), "a") })
	listening, err := sockets.Of(os.Getpid())
	must(t, err)
	assert.NotEmpty(t, listening, "no socket found")
	for _, s := range listening {
		assert.False(t, s.Open(), "%s is open to other machines", s)
	}
}

func TestListStage(t *testing.T) {
	j := newJob(t, webtest.Options{})
	raw := rawFile("https://a.com/")
	for _, key := range []string{day + "raw_0001.json", day + "raw_0002.json", day + "raw_3.json"} {
		j.put(key, raw)
	}
	j.put(day+"raw_0002.json"+hive.Success, "")
	j.stage(func(s beam.Scope, cfg seed.Config) {
		files, tallies := seed.List(s, cfg)
		lanetest.Equals(s, beam.ParDo(s, fileText, files), fmt.Sprintf("%sraw_0001.json %d", day, len(raw)))
		lanetest.Equals(s, lanetest.Counts(s, tallies), "files_listed 2", "files_ignored 2", "files_skipped 1")
	})
}

func TestExtractStage(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.cfg.Lanes = 3
	whole, broken := day+"raw_0001.json", day+"raw_0002.json"
	j.put(whole, rawFile("https://www.a.com/1", "https://b.com/", "https://a.com/2", "nothing"))
	j.put(broken, rawFile("https://a.com/")[:60])
	of := func(id, host string, index int) string {
		return fmt.Sprintf("%d %s %s:%s %d", lane.Of(host, 3), whole, id, host, index)
	}
	want := []string{of("com:sg", "a.com", 0), of("com:sg", "b.com", 1)} // of the broken file nothing had left its batch
	j.stage(func(s beam.Scope, cfg seed.Config) {
		read, records, tallies := seed.Extract(s, cfg, beam.CreateList(s, []seed.File{{Key: whole}, {Key: broken}}))
		lanetest.Equals(s, beam.ParDo(s, readText, read), whole+" 2")
		lanetest.Equals(s, beam.ParDo(s, batchText, records), want...)
		lanetest.Equals(s, lanetest.Counts(s, tallies), "files_read 1", "records 4", "records_bad 1", "files_bad 1", "dead_letters 1", "dead_letters 1")
	})
}

func TestVisitStage(t *testing.T) {
	j := newJob(t, webtest.Options{})
	one, two, broken := day+"raw_0001.json", day+"raw_0002.json", day+"raw_0003.json"
	j.stage(func(s beam.Scope, cfg seed.Config) {
		batches := beam.ParDo(s, batchOfText, beam.Create(s, one+" kind-urlset-1.com", two+" kind-urlset-1.com", broken+" kind-urlset-2.com", broken))
		outcomes, network, tallies := seed.Visit(s, cfg, batches)
		lanetest.Equals(s, beam.ParDo(s, outcomeText, outcomes), one+" 1 0", two+" 1 0")
		lanetest.Equals(s, beam.ParDo(s, networkText, network), "1 visits, 0 failed")
		lanetest.Equals(s, lanetest.Counts(s, tallies), "domains_unique 1", "domains_collected 1", "hosts_visited 1", "metadata_written 1",
			"robots_found 1", "sitemaps_found 1")
	})
	for _, r := range j.web.Requests() {
		assert.Equal(t, "kind-urlset-1.com", r.Host)
	}
}

func TestCompleteStage(t *testing.T) {
	j := newJob(t, webtest.Options{})
	whole, part, replaced, unread := day+"raw_0001.json", day+"raw_0002.json", day+"raw_0003.json", day+"raw_0004.json"
	var tags []string
	for _, key := range []string{whole, part, replaced, unread} {
		j.put(key, rawFile("https://a.com/"))
		o, err := j.store.Head(t.Context(), key)
		must(t, err)
		tags = append(tags, o.ETag)
	}
	j.stage(func(s beam.Scope, cfg seed.Config) {
		read := beam.ParDo(s, readOfText, beam.Create(s, whole+" "+tags[0]+" xx", part+" "+tags[1]+" xx", replaced+" another x"))
		outcomes := beam.ParDo(s, outcomeOfText, beam.Create(s, whole+" x", whole+" x", part+" x", replaced+" x", unread+" x"))
		tallies := seed.Complete(s, cfg, read, outcomes, beam.CreateList(s, []seed.Network{{Visits: 3}}))
		lanetest.Equals(s, lanetest.Counts(s, tallies), "files_completed 1", "files_open 1", "files_open 1", "files_open 1")
	})
	var marked []string
	for o, err := range j.store.List(t.Context(), day) {
		must(t, err)
		if strings.HasSuffix(o.Key, hive.Success) {
			marked = append(marked, o.Key)
		}
	}
	assert.Equal(t, []string{whole + hive.Success}, marked, "marked")
}

// The total is the sum of what all stages emit, coded and shuffled as on a cluster.
func TestTotalStage(t *testing.T) {
	j := newJob(t, webtest.Options{})
	var a, b ledger.Tally
	a.Count("files_read", 2)
	a.DeadLetter("bad_file")
	a.Timings.Observe(time.Second)
	b.Count("files_read", 3)
	b.HTTP = ledger.HTTP{Requests: 4, ByStatus: ledger.Counts{"200": 4}}
	b.Timings.Observe(time.Minute)
	j.stage(func(s beam.Scope, cfg seed.Config) {
		lane.Total(s, cfg.Lane, beam.CreateList(s, []ledger.Tally{a, b}), beam.CreateList(s, []ledger.Tally{a}))
	})
	total, err := ledger.ReadTotal(t.Context(), j.store, j.runID)
	must(t, err)
	if total.Counts["files_read"] != 7 || total.Counts["dead_letters"] != 2 || total.DeadLetters["bad_file"] != 2 ||
		total.HTTP.Requests != 4 || total.HTTP.ByStatus["200"] != 4 || total.Timings.Count != 3 || total.Timings.Max != 60 {
		t.Errorf("total %+v", total)
	}
}
