package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

var day = time.Date(2026, 1, 28, 9, 30, 0, 0, time.UTC)

func aRun(id string) Run {
	return Run{RunID: id, Job: "seed", Runner: "prism", StartedAt: day, Options: map[string]any{"country": "sg"}}
}

// aJob is the job of aRun, by the counts that the goldens have.
func aJob() Job {
	return Job{Name: "seed", Counts: []string{"files_listed", "files_ignored", "files_skipped", "files_read", "files_bad", "records", "records_bad",
		"domains_unique", "domains_already_done", "domains_collected", "domains_failed", "robots_found", "sitemaps_found", "dead_letters"}}
}

func TestNewRunID(t *testing.T) {
	a, b := NewRunID(day), NewRunID(day.Add(time.Millisecond))
	assert.Less(t, a, b)
	assert.True(t, strings.HasPrefix(a, "20260128-093000-000-") && NewRunID(day) != a, "%s, %s", a, NewRunID(day))
	must(t, checkName("run id", a))
}

func TestRunLife(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	must(t, Start(ctx, s, aRun("r1")))
	another := aRun("r1")
	another.StartedAt = another.StartedAt.Add(1)
	assert.ErrorIs(t, Start(ctx, s, another), store.ErrExist, "starting another of that id")
	want := aRun("r1")
	want.State = Running
	got, err := Load(ctx, s, "r1")
	must(t, err)
	assert.Equal(t, want, got)
	got, err = Finish(ctx, s, "r1", Done, nil, day.Add(time.Minute))
	must(t, err)
	want.State, want.FinishedAt = Done, day.Add(time.Minute)
	assert.Equal(t, want, got)
	got, err = Load(ctx, s, "r1")
	must(t, err)
	assert.Equal(t, want, got)
	_, err = Finish(ctx, s, "r1", "asleep", nil, day)
	assert.Error(t, err, "an unknown state")
	_, err = Load(ctx, s, "none")
	assert.ErrorIs(t, err, store.ErrNotExist)
	_, err = Load(ctx, s, "../r1")
	assert.Error(t, err)
	assert.NotErrorIs(t, err, store.ErrNotExist)
}

func TestListIsNewestFirstAndLazy(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	for _, id := range []string{"r2", "r10", "r3", "r1"} {
		must(t, Start(ctx, s, aRun(id)))
		must(t, WriteProgress(ctx, s, id, "p", Progress{}))
	}
	s.M["runs/r3/state.json"] = "{"
	s.M["runs/r9/control.json"] = "{}"
	var got []string
	for r, err := range List(ctx, s) {
		assert.EqualValues(t, (r.RunID == "r3"), (err != nil), "%s: %v", r.RunID, err)
		got = append(got, r.RunID)
	}
	assert.Equal(t, []string{"r3", "r2", "r10", "r1"}, got, "listed")
	s.Opens = 0
	for range List(ctx, s) {
		break
	}
	assert.EqualValues(t, 1, s.Opens)
}

func TestProgressAndControl(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	counted := func(n int64) (t Tally) { t.Count("records", n); t.Timings.Observe(time.Second); return t }
	lane := func(n int, epoch, done int64) LaneProgress {
		return LaneProgress{Lane: n, Epoch: epoch, Hosts: 50, HostsDone: done, Finished: done == 50, UpdatedAt: day, Tally: counted(done)}
	}
	// Lane 2 was cut off in process a, lane 3 was done again after its end, lane 4 was lost by process a, which does not know it yet.
	must(t, WriteProgress(ctx, s, "r1", "a", Progress{Tally: Tally{HTTP: HTTP{Requests: 7}}, Lanes: []LaneProgress{lane(10, 1, 5), lane(2, 1, 30), lane(3, 1, 50), lane(4, 3, 9)}}))
	must(t, WriteProgress(ctx, s, "r1", "b", Progress{Tally: Tally{HTTP: HTTP{Requests: 9}}, Lanes: []LaneProgress{lane(2, 2, 20), lane(3, 2, 50), lane(4, 2, 8)}}))
	got, err := ReadProgress(ctx, s, "r1")
	must(t, err)
	assert.Equal(t, []LaneProgress{lane(2, 2, 20), lane(3, 2, 50), lane(4, 3, 9), lane(10, 1, 5)}, got.Lanes)
	assert.Equal(t, []int64{16, 84, 4}, []int64{got.Tally.HTTP.Requests, got.Tally.Counts["records"], got.Tally.Timings.Count})

	c, err := ReadControl(ctx, s, "r1")
	must(t, err)
	assert.Equal(t, Control{Action: ActionRun}, c, "an undisturbed run")
	asked := Control{Action: ActionCancel, At: day, By: "cli"}
	must(t, WriteControl(ctx, s, "r1", asked))
	c, err = ReadControl(ctx, s, "r1")
	must(t, err)
	assert.Equal(t, asked, c)
	assert.Error(t, WriteControl(ctx, s, "r1", Control{Action: "explode"}), "an unknown action is accepted")
	for _, a := range []Action{ActionRun, ActionPause} {
		assert.ErrorIs(t, WriteControl(ctx, s, "r1", Control{Action: a, At: day}), ErrCancelled, "%s after a cancel", a)
	}
	again := Control{Action: ActionCancel, At: day.Add(1), By: "next"}
	must(t, WriteControl(ctx, s, "r1", again))
	c, err = ReadControl(ctx, s, "r1")
	must(t, err)
	assert.Equal(t, again, c)
}

// The report of a run with 30,000 lanes is made of few calls of the store, while it is at work and from one object for each process.
func TestManyLanes(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	var calls store.Calls
	const processes, lanes = 16, 30_000
	run := aRun("r1")
	must(t, Start(ctx, s, run))
	run.State = Running
	all := make([]Progress, processes)
	for n := range lanes {
		var ta Tally
		for i := range 20 {
			ta.Count(fmt.Sprintf("count_%d", i), int64(n%7+i))
		}
		for i := range 12 {
			ta.Timings.Observe(time.Duration(n%100+i*i) * 10 * time.Millisecond)
		}
		p := &all[n%processes]
		p.Lanes = append(p.Lanes, LaneProgress{Lane: n, Epoch: 1, Hosts: 12, HostsDone: 12, Finished: true, UpdatedAt: day, Tally: ta})
	}
	for i, p := range all {
		must(t, WriteProgress(ctx, s, "r1", fmt.Sprint("p", i), p))
		l, err := NewLog(s, "r1", fmt.Sprint("p", i))
		must(t, err)
		_, err = l.Write([]byte("{}\n"))
		must(t, errors.Join(err, l.Flush(ctx)))
		size := len(s.M[fmt.Sprintf("runs/r1/progress/p%d.json.gz", i)])
		assert.Less(t, size, len(p.Lanes)*130, "bytes of an object with %d lanes", len(p.Lanes))
	}
	report, err := ReportSoFar(ctx, store.Counted(s, &calls), Job{}, run, day)
	must(t, err)
	logs, err := ReadLogs(ctx, store.Counted(s, &calls), "r1")
	must(t, err)
	assert.Len(t, logs, processes)
	assert.Equal(t, []int64{lanes, lanes * 12, lanes * 12}, []int64{int64(len(report.Lanes)), report.Timings.Domains, report.Count(LaneHostsDone)})
	var n int64
	for _, k := range calls.Snapshot() {
		n += k
	}
	assert.LessOrEqual(t, n, int64(50), "calls of the store: %v", calls.Snapshot())
}

func TestTallyAdd(t *testing.T) {
	a := Tally{Counts: Counts{"records": 1}, HTTP: HTTP{Requests: 1, Bytes: 10, Retries: 1, ByStatus: Counts{"200": 1}, Failures: Counts{"dns": 1}},
		Store: Counts{"put": 1}, DeadLetters: Counts{"bad_file": 1}}
	a.Timings.Observe(time.Second)
	b := Tally{Counts: Counts{"records": 2, "files_read": 1}, HTTP: HTTP{Requests: 2, ByStatus: Counts{"404": 1}}}
	b.Timings.Observe(2 * time.Second)

	var ab, ba Tally
	ab.Add(a)
	ab.Add(b)
	ba.Add(b)
	ba.Add(a)
	want := Tally{Counts: Counts{"records": 3, "files_read": 1},
		HTTP:  HTTP{Requests: 3, Bytes: 10, Retries: 1, ByStatus: Counts{"200": 1, "404": 1}, Failures: Counts{"dns": 1}},
		Store: Counts{"put": 1}, DeadLetters: Counts{"bad_file": 1},
		Timings: Histogram{Count: 2, Sum: 3, Max: 2, Buckets: map[int]int64{80: 1, 88: 1}}}
	assert.True(t, reflect.DeepEqual(ab, want) && reflect.DeepEqual(ba, want), "a+b %+v\nb+a %+v\nwant %+v", ab, ba, want)
	assert.True(t, a.Counts["records"] == 1 && a.Timings.Buckets[88] == 0, "adding changed what was added: %+v", a)

	enc, err := ab.MarshalBinary()
	must(t, err)
	var back Tally
	must(t, back.UnmarshalBinary(enc))
	assert.Equal(t, want, back, "decoded")
}

func TestHistogramQuantiles(t *testing.T) {
	var h Histogram
	assert.True(t, h.mean() == 0 && h.quantile(0.5) == 0, "empty: mean %v, p50 %v, want 0", h.mean(), h.quantile(0.5))
	for i := 1; i <= 1000; i++ {
		h.Observe(time.Duration(i) * 10 * time.Millisecond)
	}
	assert.LessOrEqual(t, math.Abs(h.mean()-5.005), 1e-9, "mean %v, want 5.005", h.mean())
	for q, want := range map[float64]float64{0.01: 0.1, 0.5: 5, 0.95: 9.5, 1: 10} {
		got := h.quantile(q)
		assert.LessOrEqual(t, math.Abs(got/want-1), 0.05, "p%v is %v, want %v within 5 %%", 100*q, got, want)
	}
	var edge Histogram
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, 100 * time.Hour} {
		edge.Observe(d)
	}
	assert.Equal(t, map[int]int64{0: 3, lastBucket: 1}, edge.Buckets, "edges fall in")
}

func sample() Report {
	r := aRun("20260128-093000-000-0a1b2c3d")
	r.State, r.FinishedAt = Done, day.Add(83*time.Second+456*time.Millisecond)
	t := Tally{
		Counts: Counts{"files_listed": 7, "files_read": 6, "files_bad": 1, "records": 1234567, "domains_unique": 40, "robots_cached": 4},
		HTTP:   HTTP{Requests: 120, Bytes: 3 << 20, Retries: 2, ByStatus: Counts{"200": 100, "404": 17}, Failures: Counts{"dns": 2, "timeout": 1}},
		Store:  Counts{"list": 3, "put": 90},
	}
	t.DeadLetter("bad_file")
	for i := range 40 {
		t.Timings.Observe(time.Duration(i+1) * 50 * time.Millisecond)
	}
	rep := BuildReport(aJob(), r, t, day.Add(time.Hour), LaneProgress{Lane: 0, Hosts: 40, HostsDone: 40, Finished: true, UpdatedAt: day.Add(80 * time.Second)})
	rep.Alerts = append(rep.Alerts, "3 % of requests failed")
	return rep
}

func TestReportGoldens(t *testing.T) {
	rep := sample()
	var js, table bytes.Buffer
	must(t, printable.JSON(&js, rep))
	golden(t, "report.json", js.Bytes())
	must(t, rep.WriteTable(&table, aJob().Counts))
	golden(t, "report.txt", table.Bytes())

	s, ctx := storetest.NewMemory(), t.Context()
	_, err := ReadReport(ctx, s, rep.RunID)
	assert.ErrorIs(t, err, store.ErrNotExist)
	must(t, WriteReport(ctx, s, rep))
	back, err := ReadReport(ctx, s, rep.RunID)
	must(t, err)
	assert.Equal(t, rep, back)
}

// A report always has every key that its readers rely on.
func TestEmptyReportHasAllKeys(t *testing.T) {
	r := aRun("r1")
	r.State = Running
	rep := BuildReport(aJob(), r, Tally{}, day.Add(90*time.Second))
	assert.True(t, rep.Duration == 90 && rep.FinishedAt == nil,
		"a going run: duration %v, finished %v; want 90, null", rep.Duration, rep.FinishedAt)
	for _, k := range aJob().Counts {
		n, ok := rep.Counts[k]
		assert.True(t, ok && n == 0, "count %s: %d, %v; want 0, there", k, n, ok)
	}
	assert.ElementsMatch(t, failures, slices.Collect(maps.Keys(rep.HTTP.Failures)))
	b, err := json.Marshal(rep)
	must(t, err)
	var fields map[string]json.RawMessage
	must(t, json.Unmarshal(b, &fields))
	for _, k := range []string{"run_id", "job", "runner", "state", "started_at", "duration_s", "options", "counts", "http", "store",
		"timings", "dead_letters", "alerts", "lanes"} {
		v, ok := fields[k]
		assert.True(t, ok && string(v) != "null", "%s is %s, want a value", k, v)
	}
	assert.True(t, bytes.Contains(fields["http"], []byte(`"by_status":{}`)), "http is %s, want an empty by_status in it", fields["http"])
}

// A table has timings only if a domain was timed.
func TestTimesOnlyWhereThereAreSome(t *testing.T) {
	r := aRun("r1")
	r.State, r.FinishedAt = Done, r.StartedAt.Add(24*time.Hour)
	var one Tally
	one.Timings.Observe(2 * time.Second)
	for _, tt := range []struct {
		tally Tally
		want  bool
	}{{Tally{}, false}, {one, true}} {
		rep := BuildReport(aJob(), r, tt.tally, r.FinishedAt)
		var table bytes.Buffer
		must(t, rep.WriteTable(&table, aJob().Counts))
		assert.Equal(t, tt.want, strings.Contains(table.String(), "p50"), "%d domains timed: the table has a p50", rep.Timings.Domains)
	}
}

func TestGroupedAndSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		assert.Equal(t, want, FormatCount(n), n)
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 40: "5.0 TiB", 5 << 50: "5120.0 TiB"} {
		assert.Equal(t, want, FormatBytes(n), n)
	}
}

func testDeadLetter(kind, run string) DeadLetter {
	i := 4
	return DeadLetter{Job: "seed", RunID: run, Stage: "collect", Kind: kind, Retryable: true, LastAt: day,
		Input: Input{File: "datasets/raw_0001.json", Index: &i, Key: "processing/a", DomainID: "com:sg:a.com"}, Error: "writing https://u:p@h/x: broken"}
}

func TestDeadLetterIsUpdatedNotDoubled(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	first := testDeadLetter("store_failed", "r1")
	must(t, Put(ctx, s, first))
	second := testDeadLetter("invalid_metadata", "r2")
	second.LastAt, second.Error, second.Input.File = day.Add(time.Hour), "something else", "datasets/raw_0009.json"
	must(t, Put(ctx, s, second))
	got, err := Get(ctx, s, "seed", first.ID())
	must(t, err)
	want := second
	want.Attempts, want.FirstAt, want.Earlier = 2, day, []string{"r1"}
	assert.Equal(t, want, got, "got")
	wantKeys(t, s, "dead-letters/seed/"+first.ID()+".json")
	must(t, Remove(ctx, s, "seed", second.ID()))
	must(t, Remove(ctx, s, "seed", second.ID()))
	wantKeys(t, s)
}

func TestDeadLetterID(t *testing.T) {
	i, j := 1, 2
	id := func(kind string, in Input) string { return DeadLetter{Job: "seed", Kind: kind, Input: in}.ID() }
	file := Input{File: "f"}
	assert.Equal(t, id("bad_records", Input{File: "f", Indices: []int{2, 3}}), id("bad_records", Input{File: "f", Indices: []int{1}}))
	assert.NotEqual(t, id("bad_file", file), id("bad_records", file), "bad records and a bad file share an id")
	assert.NotEqual(t, id("x", Input{File: "f", Index: &j}), id("x", Input{File: "f", Index: &i}), "two records share an id")
	assert.NotEqual(t, id("x", Input{Key: "https://a"}), id("x", Input{URL: "https://a"}), "a URL and a key share an id")
	u := Input{URL: "https://a/?X-Amz-Signature=1"}
	r := (Input{URL: Redact(u.URL)})
	assert.Equal(t, id("x", r), id("x", u), "the id changes when the URL is redacted")
	// The id must not change: stores have objects with such names.
	assert.Equal(t, "2007bcd1cbb6e8e482108030", id("bad_file", file))
}

func TestPutRedactsAndCuts(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	d := testDeadLetter("store_failed", "r1")
	d.Error += strings.Repeat("é", 3000)
	must(t, Put(ctx, s, d))
	got, err := Get(ctx, s, "seed", d.ID())
	must(t, err)
	assert.Regexp(t, `(?s)^writing https://REDACTED@h/x: broken.*é …$`, got.Error)
	assert.LessOrEqual(t, len(got.Error), maxError+5)
}

func TestPutReplacesABrokenOne(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	d := testDeadLetter("store_failed", "r1")
	s.M["dead-letters/seed/"+d.ID()+".json"] = "{"
	must(t, Put(ctx, s, d))
	got, err := Get(ctx, s, "seed", d.ID())
	must(t, err)
	assert.EqualValues(t, 1, got.Attempts)
	s.Fail(errors.New("down"))
	assert.ErrorContains(t, Put(ctx, s, d), "down")
}

func TestListDeadLetters(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	for i, job := range []string{"docs", "seed", "seed", "seeds"} {
		d := testDeadLetter("store_failed", "r"+string(rune('1'+i)))
		d.Job, d.Input.Key = job, "k"+d.RunID
		must(t, Put(ctx, s, d))
	}
	s.M["dead-letters/seed/zz.json"] = "{}"
	for _, c := range []struct {
		job, run string
		want     []string
		errs     int
	}{
		{"", "", []string{"r1", "r2", "r3", "r4"}, 1},
		{"seed", "", []string{"r2", "r3"}, 1},
		{"seed", "r3", []string{"r3"}, 1},
		{"docs", "", []string{"r1"}, 0},
		{"../x", "", nil, 1},
	} {
		var got []string
		errs := 0
		for d, err := range ListDeadLetters(ctx, s, c.job, c.run) {
			if err != nil {
				errs++
				continue
			}
			got = append(got, d.RunID)
		}
		slices.Sort(got)
		assert.True(t, slices.Equal(got, c.want) && errs == c.errs,
			"job %q, run %q: %v and %d errors, want %v and %d", c.job, c.run, got, errs, c.want, c.errs)
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"dial https://user:pa@ss@h.com/a@b":                        "dial https://REDACTED@h.com/a@b",
		"https://h.com/@user?x=1":                                  "https://h.com/@user?x=1",
		"postgres://u:p/w@db:5432/x?sslmode=off":                   "postgres://REDACTED@db:5432/x?sslmode=off",
		"host=db user=u password=hunter2 dbname=x":                 "host=db user=u password=REDACTED dbname=x",
		`host=db password='a b' dbname=x`:                          "host=db password=REDACTED dbname=x",
		"/o?X-Amz-Credential=AKIA%2Fx&X-Amz-Signature=ab&part=1":   "/o?X-Amz-Credential=REDACTED&X-Amz-Signature=REDACTED&part=1",
		"https://h/?q=1&key=abc#f":                                 "https://h/?q=1&key=REDACTED#f",
		"https://h/?access_token=abc&a=b":                          "https://h/?access_token=REDACTED&a=b",
		"the key AKIAIOSFODNN7EXAMPLE is unknown":                  "the key REDACTED is unknown",
		"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY":     "AWS_SECRET_ACCESS_KEY=REDACTED",
		`{"client_secret": "s3 cr", "a": 1}`:                       `{"client_secret": REDACTED, "a": 1}`,
		"get credentials: could not find default credentials. See": "get credentials: could not find default credentials. See",
		`{"credentials": "abc"} credentials=abc credential:abc`:    `{"credentials": REDACTED} credentials=REDACTED credential:REDACTED`,
		"Authorization: Bearer abcdefgh.ijk":                       "Authorization: Bearer REDACTED",
		"A://token=?&@0":                                           "A://REDACTED@0",
		"reading key datasets/country=sg/raw_0001.json: EOF":       "reading key datasets/country=sg/raw_0001.json: EOF",
		"putting key=datasets/date=2026-01-28/raw_0001.json: EOF":  "putting key=datasets/date=2026-01-28/raw_0001.json: EOF",
	} {
		assert.Equal(t, want, Redact(in), in)
	}
}

func TestForceID(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	id, err := ForceID(ctx, s, "seed", "abc", false)
	assert.True(t, err == nil && id == "", "none going: %q (%v), want none", id, err)
	first, err := ForceID(ctx, s, "seed", "abc", true)
	must(t, err)
	require.NotEmpty(t, first)
	for _, start := range []bool{true, false} {
		id, err := ForceID(ctx, s, "seed", "abc", start)
		assert.True(t, err == nil && id == first, "resuming (start %v): %q (%v), want %q", start, id, err, first)
	}
	other, err := ForceID(ctx, s, "seed", "def", true)
	must(t, err)
	assert.NotEqual(t, first, other, "other filters share the id")
	must(t, ClearForce(ctx, s, "seed", first))
	must(t, ClearForce(ctx, s, "seed", "of-no-run"))
	wantKeys(t, s, "force/seed/def.json")
	id, err = ForceID(ctx, s, "seed", "abc", true)
	must(t, err)
	assert.NotEqual(t, first, id, "after completion")
	s.M["force/seed/def.json"] = "{}"
	_, err = ForceID(ctx, s, "seed", "def", true)
	assert.Error(t, err, "a broken object")
}

func TestPurge(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	finish := func(id, job string, st State, at time.Time) {
		r := aRun(id)
		r.Job = job
		must(t, Start(ctx, s, r))
		must(t, WriteProgress(ctx, s, id, "p", Progress{}))
		_, err := Finish(ctx, s, id, st, nil, at)
		must(t, err)
	}
	cut := day.Add(24 * time.Hour)
	finish("old", "seed", Done, cut.Add(-1))
	finish("new", "seed", Done, cut)
	finish("going", "seed", Running, day)
	finish("docs", "docs", Failed, day)
	old, fresh := testDeadLetter("store_failed", "old"), testDeadLetter("store_failed", "new")
	fresh.Input.Key, fresh.LastAt = "processing/b", cut
	must(t, Put(ctx, s, old))
	must(t, Put(ctx, s, fresh))
	s.M["runs/zz/state.json"] = "{"
	must(t, SayBegun(ctx, s, "seed", "unit", "died", false))
	must(t, SayBegun(ctx, s, "docs", "unit", "died", false))

	got, err := Purge(ctx, s, "seed", cut)
	assert.Equal(t, (PurgeResult{Runs: 1, DeadLetters: 1}), got, "purged")
	assert.True(t, err != nil && strings.Contains(err.Error(), "runs/zz/state.json"), "error %v, want one that names the broken run", err)
	wantKeys(t, s, "begun/docs/unit/died", "dead-letters/seed/"+fresh.ID()+".json", "runs/docs/progress/p.json.gz", "runs/docs/state.json",
		"runs/going/progress/p.json.gz", "runs/going/state.json", "runs/new/progress/p.json.gz", "runs/new/state.json", "runs/zz/state.json")

	dir, err := store.Open(ctx, t.TempDir())
	must(t, err)
	defer func() { must(t, dir.Close()) }()
	for after, want := range map[time.Duration]int{-time.Hour: 1, time.Hour: 0} { // from now
		must(t, SayBegun(ctx, dir, "seed", "unit", "died", false))
		_, err = Purge(ctx, dir, "", time.Now().Add(after))
		must(t, err)
		left, err := ListDeaths(ctx, dir, "seed", "")
		must(t, err)
		assert.Equal(t, want, len(left), after)
	}
}

// Any bytes at the key of an object give an error, or a value that can be written and
// read again; never a panic.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "{", "[]", "null", `{"run_id":"r1","state":"done","finished_at":"x"}`,
		`{"run_id":"r1","job":"seed","state":"done","started_at":"2026-01-28T09:30:00Z"}`,
		`{"holder":{"pid":-1},"expires_at":"2026-01-28T09:30:00Z"}`, `{"job":"seed","kind":"bad_file","input":{"index":3}}`,
		`{"action":"pause"}`, `{"lanes":[{"lane":1,"tally":{"timings":{"count":1,"buckets":{"999":1}}}}]}`, `{"id":"a"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, decode[Run])
		again(t, b, decode[DeadLetter])
		again(t, b, decode[Progress])
		again(t, b, decode[Control])
		again(t, b, decode[forcedRun])
		again(t, b, decode[Report])
		d, err := decode[DeadLetter](b)
		assert.True(t, err != nil || d.ID() != "", "a dead letter has no id")
		if p, err := decode[Progress](b); err == nil {
			var buf bytes.Buffer
			rep := BuildReport(aJob(), aRun("r1"), p.Tally, day, p.Lanes...)
			must(t, rep.WriteTable(&buf, aJob().Counts))
		}
	})
}

func again[T any](t *testing.T, b []byte, decode func([]byte) (T, error)) {
	t.Helper()
	v, err := decode(b)
	if err != nil {
		assert.Contains(t, err.Error(), "it is damaged: ", "%T: error does not say what is wrong: %v", v, err)
		return
	}
	enc, err := json.Marshal(v)
	require.NoError(t, err, "%T: encoding what was decoded", v)
	_, err = decode(enc)
	assert.NoError(t, err, "%T: decoding it again: %s", v, enc)
}

func FuzzRedact(f *testing.F) {
	f.Add("https://u:p@h/?key=1&token=2", "Bearer abcdefghijk")
	f.Add("A://token=?&", "@0")
	f.Add("postgres://u:p/w@db?credentials=", "{'secret': \"AKIAIOSFODNN7EXAMPLE\"}")
	f.Fuzz(func(t *testing.T, a, b string) {
		s := a + b
		once := Redact(s)
		assert.Equal(t, once, Redact(once), s)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func wantKeys(t *testing.T, s *storetest.Memory, want ...string) {
	t.Helper()
	assert.Equal(t, want, s.Keys(), "keys")
}

// A store creates an object and its answer is lost. The retry gets "exists": the object
// is our own.
func TestLostAnswerOfACreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answer := range []error{store.ErrExist, io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: syscall.ECONNRESET}} {
			s, ctx := storetest.NewMemory(), t.Context()
			s.Ghost = func(op, _ string) error {
				if op != "create" {
					return nil
				}
				s.Ghost = nil
				return answer
			}
			err := Start(ctx, s, aRun("r1"))
			assert.Equal(t, err != nil, errors.Is(answer, io.ErrUnexpectedEOF), "start after %v: %v", answer, err) // a final error
			s = storetest.NewMemory()
			s.Ghost = func(op, _ string) error {
				if op != "create" {
					return nil
				}
				s.Ghost = nil
				return &net.OpError{Op: "read", Err: syscall.ECONNRESET}
			}
			id, err := ForceID(ctx, s, "seed", "all", true)
			must(t, err)
			assert.Contains(t, s.M["force/seed/all.json"], id)
		}
	})
}

// The duration of a run that was killed ends with the last sign of its lanes, however late somebody notices.
func TestDurationOfAKilledRun(t *testing.T) {
	for state, want := range map[State]float64{Interrupted: 60, Silent: 60, Failed: 7200} {
		r := aRun("r1")
		r.State, r.StartedAt, r.FinishedAt = state, day, day.Add(2*time.Hour)
		rep := BuildReport(aJob(), r, Tally{}, day.Add(3*time.Hour), LaneProgress{UpdatedAt: day.Add(time.Minute)}, LaneProgress{Lane: 1, UpdatedAt: day.Add(time.Second)})
		assert.InDelta(t, want, rep.Duration, 1e-9, state)
	}
}
