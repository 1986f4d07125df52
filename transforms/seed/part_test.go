package seed_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// objects are the keys under a prefix.
func (j *job) objects(prefix string) (keys []string) {
	j.t.Helper()
	for o, err := range j.store.List(j.t.Context(), prefix) {
		must(j.t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

// parts are the parts of the table, the oldest first.
func (j *job) parts() []domaintable.Part {
	j.t.Helper()
	all, err := domaintable.All(j.t.Context(), j.store)
	must(j.t, err)
	slices.SortFunc(all, func(a, b domaintable.Part) int { return a.At.Compare(b.At) })
	return all
}

// files are the keys of the objects of the table's parts, without its log.
func (j *job) partFiles() []string {
	return slices.DeleteFunc(j.objects(domaintable.Root), func(key string) bool { _, ok := domaintable.IDOf(key); return !ok })
}

// rows are the rows of the table, with the bodies of their evidence by file.
func (j *job) rows() (rows []table.Row, evidence []map[string]string) {
	j.t.Helper()
	for _, p := range j.parts() {
		got, err := p.ReadRows(j.t.Context(), j.store)
		must(j.t, err)
		require.Len(j.t, got, int(p.Count))
		_, err = p.ReadWARC(j.t.Context(), j.store)
		must(j.t, err)
		for _, r := range got {
			bodies := map[string]string{}
			for _, e := range r.Evidence {
				rec, err := warc.Read(j.read(domaintable.Root + r.WARC)[e.Offset : e.Offset+e.Length])
				must(j.t, err)
				body, err := rec.Body()
				must(j.t, err)
				bodies[e.File] = string(body)
			}
			rows, evidence = append(rows, r), append(evidence, bodies)
		}
	}
	return rows, evidence
}

const otherDay = "datasets/country=sg/category=policy/date=2026-01-29/"

// packedJob is a job with two files that share a domain.
func packedJob(t *testing.T) *job {
	j := newJob(t, webtest.Options{Seed: 7})
	j.put(day+"raw_0001.json", rawFile("https://urlset-1.com/", "https://index-2.com/", "https://no-robots-3.com/", "https://sitemap-gz-4.com/"))
	j.put(otherDay+"raw_0001.json", rawFile("https://urlset-1.com/x", "https://gzip-5.com/"))
	j.cfg.Layout = seed.Table
	return j
}

func TestPacked(t *testing.T) {
	j := packedJob(t)
	total := j.run()
	require.EqualValues(t, 5, total.Counts["domains_collected"])
	require.EqualValues(t, 6, total.Counts["metadata_written"])
	require.EqualValues(t, 2, total.Counts["files_completed"])
	require.Empty(t, j.objects("processing/"))
	require.True(t, j.exists(day+"raw_0001.json.success"))
	require.Len(t, j.parts(), 1)

	rows, evidence := j.rows()
	require.Len(t, rows, 6)
	shared := map[int64]int{}
	o := newJob(t, webtest.Options{Seed: 7})
	for _, key := range []string{day, otherDay} {
		o.put(key+"raw_0001.json", string(j.read(key+"raw_0001.json")))
	}
	o.run()
	for i, r := range rows {
		dir := r.Partition().DomainDir(r.RegistrableDomain) + "/"
		if r.RegistrableDomain == "urlset-1.com" {
			shared[r.Evidence[0].Offset]++
		}
		for _, file := range []string{"robots.txt", "sitemap.xml"} {
			body, ok := evidence[i][file]
			require.Equal(t, o.exists(dir+file), ok, dir+file)
			if ok {
				require.Equal(t, string(o.read(dir+file)), body)
			}
		}
		require.Contains(t, r.Document, fmt.Sprintf("%q", r.DomainID))
	}
	require.Len(t, shared, 1, "evidence of one visit is kept once")

	j.web.ResetLog()
	must(t, j.store.Delete(t.Context(), day+"raw_0001.json.success"))
	j.cfg.Lanes = 3 // resumed with another number of lanes
	again := j.run()
	require.Empty(t, j.web.Requests())
	require.EqualValues(t, 4, again.Counts["domains_already_done"])
	require.True(t, j.exists(day+"raw_0001.json.success"))
}

// A forced run does everything again, once.
func TestPackedForced(t *testing.T) {
	j := packedJob(t)
	j.run()
	j.cfg.ForceID = "f1"
	j.web.ResetLog()
	j.run()
	first := len(j.web.Requests())
	require.NotZero(t, first)
	must(t, j.store.Delete(t.Context(), day+"raw_0001.json.success"))
	j.run()
	require.Len(t, j.web.Requests(), first)
	rows, _ := j.rows()
	require.Len(t, rows, 6)
}

// What the newest runs changed can be taken back, run by run, and then what is done again.
func TestRollback(t *testing.T) {
	j := packedJob(t)
	_, err := seed.Rollback(t.Context(), j.store, "r1")
	require.ErrorContains(t, err, "there is no table in this store")
	j.run()
	first, before := j.runID, j.content()
	j.cfg.ForceID = "f1"
	j.run()
	forced, after := j.runID, j.content()
	require.NotEqual(t, before, after)
	back := func(id string) error {
		_, err := seed.Rollback(t.Context(), j.store, id)
		return err
	}
	require.ErrorContains(t, back(first), "run "+forced+" has changed the table since (PROMOTE)")
	require.Equal(t, after, j.content())
	require.NoError(t, back(forced))
	require.Equal(t, before, j.content())
	require.ErrorContains(t, back(forced), "run "+forced+" has not changed the table")
	j.cfg.ForceID = "f2"
	j.run()
	again := j.runID
	require.NoError(t, back(again))
	require.Equal(t, before, j.content())
	require.NoError(t, back(first))
	require.Empty(t, j.parts())
}

// Each version can be listed and compared by its number, a time or the run that made it, until what it had is removed.
func TestVersions(t *testing.T) {
	j := packedJob(t)
	as := func(point string) (all map[string]string, err error) {
		all = map[string]string{}
		for d, err := range seed.Domains(t.Context(), j.store, seed.Filter{AsOf: point}) {
			if err != nil {
				return nil, err
			}
			all[d.Date+" "+d.RegistrableDomain] = string(d.Document)
		}
		return all, nil
	}
	between := func(earlier, later string) (all []string, err error) {
		for c, err := range seed.Changes(t.Context(), j.store, seed.Filter{Before: earlier, AsOf: later}) {
			if err != nil {
				return nil, err
			}
			all = append(all, strings.TrimSpace(strings.Join([]string{c.Kind, c.Date, c.RegistrableDomain, c.What}, " ")))
		}
		slices.Sort(all)
		return all, nil
	}
	refused := func(err error, says string) {
		t.Helper()
		require.ErrorAs(t, err, new(*explore.RefusedError))
		require.ErrorContains(t, err, says)
	}
	same := func(want map[string]string, point string) {
		t.Helper()
		got, err := as(point)
		must(t, err)
		require.Equal(t, want, got)
	}
	_, err := as("0")
	refused(err, "there is no table in this store")
	j.run()
	first := j.runID
	one, err := as(first)
	must(t, err)
	require.Len(t, one, 6)
	moment := time.Now().Format(time.RFC3339Nano)
	j.put(day+"raw_0002.json", rawFile("https://text-6.com/"))
	j.run()
	second := j.runID
	j.cfg.ForceID, j.cfg.Date = "f1", "2026-01-29"
	j.web.Handle("gzip-5.com", pages(map[string]string{
		"/robots.txt":  "Sitemap: https://gzip-5.com/sitemap.xml\nSitemap: https://gzip-5.com/a.xml\n",
		"/sitemap.xml": "<urlset><url><loc>https://gzip-5.com/a</loc></url></urlset>",
	}))
	j.run()
	now, err := as(j.runID)
	must(t, err)
	require.Len(t, now, 7)
	same(now, time.Now().Format(time.RFC3339Nano))
	same(one, moment)
	same(one, first)
	same(one, "2") // after the table itself and the BEGIN of its lane
	same(map[string]string{}, "0")
	for point, says := range map[string]string{"99": "its newest one is", "2020-01-01T00:00:00Z": "its oldest one is younger", "later": `"later" is neither a version`} {
		_, err := as(point)
		refused(err, says)
	}

	got, err := between(first, second)
	must(t, err)
	require.Equal(t, []string{"new 2026-01-28 text-6.com"}, got)
	forced := "changed 2026-01-29 gzip-5.com robots.txt: 200, 1 sitemaps -> 200, 2 sitemaps"
	got, err = between(second, j.runID)
	must(t, err)
	require.Equal(t, []string{forced}, got)
	got, err = between(moment, j.runID)
	must(t, err)
	require.Equal(t, []string{forced, "new 2026-01-28 text-6.com"}, got)
	_, err = between(second, moment)
	refused(err, "write the earlier one first")

	_, err = seed.Purge(t.Context(), j.store, "purge", []string{"text-6.com"})
	must(t, err)
	got, err = between(j.runID, "purge")
	refused(err, "the file was removed. Name another version")
	require.Empty(t, got)
}

// A forced run of a sample visits the same domains each time, and stages them until a person promotes or drops them.
func TestSampleIsStaged(t *testing.T) {
	j := packedJob(t)
	j.run()
	before := j.content()
	sampled := func(forceID string, share float64) (names []string) {
		t.Helper()
		j.cfg.ForceID, j.cfg.Sample = forceID, share
		j.web.ResetLog()
		total := j.run()
		require.NoError(t, ledger.Start(t.Context(), j.store, ledger.Run{RunID: j.runID, Job: seed.Job, ForceID: forceID}))
		for _, r := range j.web.Requests() {
			names = append(names, r.Host)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		require.EqualValues(t, len(names), total.Counts["domains_collected"])
		return names
	}
	small, large := sampled("f1", 0.3), sampled("f2", 0.6)
	first := j.runID
	require.Less(t, len(small), len(large))
	require.Less(t, len(large), 5)
	require.NotEmpty(t, small)
	for _, name := range small {
		require.Contains(t, large, name)
	}
	require.Equal(t, before, j.content())
	require.True(t, j.exists(day+"raw_0001.json.success"))

	did, err := seed.Rollback(t.Context(), j.store, first)
	must(t, err)
	require.Equal(t, "what run "+first+" has staged is dropped; the table is as it was", did)
	_, err = seed.PromoteRun(t.Context(), j.store, first)
	require.ErrorContains(t, err, "run "+first+" has staged nothing")
	require.ErrorAs(t, err, new(*explore.RefusedError))

	require.Equal(t, large, sampled("f3", 0.6))
	require.Equal(t, before, j.content())
	did, err = seed.PromoteRun(t.Context(), j.store, j.runID)
	must(t, err)
	after := j.content()
	require.Len(t, after, len(before))
	changed := 0
	for key, text := range after {
		if text != before[key] {
			changed++
			require.True(t, slices.ContainsFunc(large, func(name string) bool { return strings.HasSuffix(key, "/"+name) }), key)
		}
	}
	require.Equal(t, fmt.Sprintf("%d rows of run %s are in the table, in place of %[1]d", changed, j.runID), did)
	require.NotZero(t, changed)
	_, err = seed.Rollback(t.Context(), j.store, j.runID)
	must(t, err)
	require.Equal(t, before, j.content())

	sampled("f4", 0.6)
	old := j.runID
	j.cfg.ForceID, j.cfg.Sample = "f5", 0
	j.run()
	newest := j.content()
	_, err = seed.PromoteRun(t.Context(), j.store, old)
	require.ErrorContains(t, err, "`runs rollback` of the run that staged it drops it")
	require.ErrorAs(t, err, new(*explore.RefusedError))
	require.Equal(t, newest, j.content())
}

// A sample that is not forced leaves its files open, in both layouts, and the next run does the rest.
func TestSample(t *testing.T) {
	for _, layout := range []seed.Layout{seed.Objects, seed.Table} {
		j := packedJob(t)
		j.cfg.Layout, j.cfg.Sample = layout, 0.6
		some := j.run().Counts["domains_collected"]
		require.Positive(t, some)
		require.Less(t, some, int64(5))
		require.False(t, j.exists(day+"raw_0001.json.success"))
		require.Zero(t, j.run().Counts["domains_collected"])
		j.cfg.Sample = 0
		require.EqualValues(t, 5-some, j.run().Counts["domains_collected"])
		require.True(t, j.exists(day+"raw_0001.json.success"))
	}
}

// A segment that cannot be written leaves its domains open, with one dead letter.
func TestPackedStoreFailed(t *testing.T) {
	j := packedJob(t)
	mend := j.spoil("tables/domains/_delta_log/00000000000000000002.json")
	total := j.run()
	require.EqualValues(t, 5, total.Counts["domains_failed"])
	require.Zero(t, total.Counts["domains_collected"])
	require.Len(t, j.deadLetters(), 1)
	require.False(t, j.exists(day+"raw_0001.json.success"))
	mend()
	require.EqualValues(t, 5, j.run().Counts["domains_collected"])
	require.Empty(t, j.deadLetters())
	require.True(t, j.exists(day+"raw_0001.json.success"))
	require.Len(t, j.parts(), 1)
}

// Sites that do not answer wait for the outage guard; Complete commits those of a small lane.
func TestPackedUnreachable(t *testing.T) {
	j := newJob(t, webtest.Options{Seed: 7})
	j.put(day+"raw_0001.json", rawFile("https://urlset-1.com/", "https://tls-refused-2.com/"))
	j.put(day+"raw_0002.json", rawFile("https://tls-refused-2.com/"))
	j.cfg.Layout = seed.Table
	j.run()
	require.True(t, j.exists(day+"raw_0001.json.success"))
	rows, _ := j.rows()
	require.Len(t, rows, 2)
	j.web.ResetLog()
	must(t, j.store.Delete(t.Context(), day+"raw_0001.json.success"))
	j.run()
	require.Empty(t, j.web.Requests())
}

// A thousand domains cost few calls of the store. Besides those, a run reads its control
// object every two seconds and writes its progress every five.
func TestPackedStoreCalls(t *testing.T) {
	j := newJob(t, webtest.Options{Seed: 7})
	var urls []string
	for i := range 1000 {
		urls = append(urls, fmt.Sprintf("https://text-%d.com/", i))
	}
	j.put(day+"raw_0001.json", rawFile(urls...))
	j.cfg.Layout, j.cfg.SegmentAge = seed.Table, time.Hour
	begin := time.Now()
	total := j.run()
	took := time.Since(begin)
	require.EqualValues(t, 1000, total.Counts["domains_collected"])
	var calls int64
	var text []string
	for kind, n := range total.Store {
		calls += n
		text = append(text, fmt.Sprint(kind, " ", n))
	}
	t.Log(strings.Join(text, ", "))
	require.LessOrEqual(t, calls, 60+int64(took.Seconds()))
}

// files are the objects of the objects' layout, without times.
func (j *job) files() map[string]string {
	all := map[string]string{}
	for _, key := range j.objects("processing/") {
		body := string(j.read(key))
		if strings.HasSuffix(key, ".json") {
			body = times.ReplaceAllString(body, "T")
		}
		all[key] = body
	}
	return all
}

var times = regexp.MustCompile(`"(collected_at|fetched_at|response_ms)": ("[^"]*"|[0-9]+)`)

func TestMaterialize(t *testing.T) {
	o := packedJob(t)
	o.cfg.Layout = seed.Objects
	o.run()
	j := packedJob(t)
	j.run()
	m, err := seed.Materialize(t.Context(), j.store)
	must(t, err)
	require.Equal(t, seed.Materialized{Parts: 1, Written: 6}, m)
	require.Equal(t, o.files(), j.files())
	rows, _ := j.rows()
	require.Equal(t, rows[0].Document, string(j.read(rows[0].Partition().DomainDir(rows[0].RegistrableDomain)+"/domain_metadata.json")))
	must(t, j.store.Delete(t.Context(), out(day+"raw_0001.json", "index-2.com", "domain_metadata.json.success")))
	m, err = seed.Materialize(t.Context(), j.store)
	must(t, err)
	require.Equal(t, seed.Materialized{Parts: 1, Written: 1, There: 5}, m)

	// A run with objects has nothing left to do.
	must(t, j.store.Delete(t.Context(), day+"raw_0001.json.success"))
	j.cfg.Layout = seed.Objects
	j.web.ResetLog()
	j.run()
	require.Empty(t, j.web.Requests())

	j.cfg.Layout, j.cfg.ForceID = seed.Table, "f1"
	j.run()
	m, err = seed.Materialize(t.Context(), j.store)
	must(t, err)
	require.Equal(t, seed.Materialized{Parts: 1, Written: 6}, m)
	require.Equal(t, o.files(), j.files())
}

// A segment that is damaged or missing costs the others nothing.
func TestMaterializeDamaged(t *testing.T) {
	for name, hurt := range map[string]func(*job, string){
		"damaged": func(j *job, key string) { j.put(key, "damaged") },
		"missing": func(j *job, key string) { must(t, j.store.Delete(t.Context(), key)) },
	} {
		j := packedJob(t)
		j.run()
		j.put(day+"raw_0002.json", rawFile("https://text-6.com/", "https://rss-7.com/"))
		j.run()
		commits := j.parts()
		require.Len(t, commits, 2)
		key := domaintable.Root + commits[0].Evidence()
		hurt(j, key)
		m, err := seed.Materialize(t.Context(), j.store)
		require.ErrorContains(t, err, "1 of 2 parts could not be read", name)
		require.ErrorContains(t, err, key, name)
		require.Equal(t, seed.Materialized{Parts: 1, Written: 2}, m, name)
		require.Contains(t, j.files(), out(day+"raw_0002.json", "text-6.com", "domain_metadata.json.success"), name)
	}
}

// A purge and a compaction do what they can, and leave a damaged segment as it is.
func TestCompactDamaged(t *testing.T) {
	j := packedJob(t)
	j.run()
	for i, url := range []string{"https://text-6.com/", "https://rss-7.com/"} {
		j.put(fmt.Sprintf("%sraw_%04d.json", day, i+2), rawFile(url))
		j.run()
	}
	key := domaintable.Root + j.parts()[0].Evidence()
	j.put(key, "damaged")
	c, err := seed.Compact(t.Context(), j.store, "compact")
	require.ErrorContains(t, err, "1 of 3 parts could not be read")
	require.ErrorContains(t, err, key)
	require.Equal(t, seed.Compacted{Replaced: 2, By: 1}, c)
	require.Len(t, j.parts(), 2)
	did, err := seed.Purge(t.Context(), j.store, "purge", []string{"text-6.com", "index-2.com"})
	require.ErrorContains(t, err, key)
	require.Equal(t, seed.Purged{Rows: 1}, did)
	require.Equal(t, "damaged", string(j.read(key)))
}

func TestCompact(t *testing.T) {
	j := packedJob(t)
	j.run()
	j.put(day+"raw_0002.json", rawFile("https://urlset-1.com/y", "https://text-6.com/", "https://rss-7.com/"))
	j.run()
	require.Len(t, j.parts(), 2)
	rows, evidence := j.rows()
	c, err := seed.Compact(t.Context(), j.store, "compact")
	must(t, err)
	require.Equal(t, seed.Compacted{Replaced: 2, By: 1}, c)
	require.Len(t, j.parts(), 1)
	after, evidenceAfter := j.rows()
	require.Equal(t, evidence, evidenceAfter)
	for i := range rows {
		require.Equal(t, rows[i].Document, after[i].Document)
	}
	again, err := seed.Compact(t.Context(), j.store, "compact")
	must(t, err)
	require.Zero(t, again)

	j.cfg.ForceID = "f1"
	j.run()
	c, err = seed.Compact(t.Context(), j.store, "compact")
	must(t, err)
	require.Zero(t, c)
	after, _ = j.rows()
	require.Len(t, after, 8)
	must(t, j.store.Delete(t.Context(), day+"raw_0001.json.success"))
	j.web.ResetLog()
	j.run()
	require.Empty(t, j.web.Requests())
}

// A compaction removes the entries of the log that no version of the last week needs.
func TestCompactTrimsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		table, err := domaintable.Open(t.Context(), s, "", nil)
		must(t, err)
		begin := func() {
			_, _, err := table.Begin(t.Context(), "writer")
			must(t, err)
		}
		for range 250 {
			begin()
		}
		for _, kept := range []int{253, 55} {
			begin()
			_, err = seed.Compact(t.Context(), s, "compact")
			must(t, err)
			entries := slices.DeleteFunc(s.Keys(), func(key string) bool { return !strings.HasSuffix(key, ".json") })
			require.Equal(t, kept, len(entries))
			time.Sleep(8 * 24 * time.Hour)
		}
		_, err = domaintable.All(t.Context(), s)
		must(t, err)
	})
}

// faultyWrites is a store whose writes and removals fail from the nth on, as when the
// process is killed there.
type faultyWrites struct {
	store.Store
	left atomic.Int64
}

var errKilled = errors.New("killed")

func (f *faultyWrites) step() error {
	if f.left.Add(-1) < 0 {
		return errKilled
	}
	return nil
}

func (f *faultyWrites) Put(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Store.Put(ctx, key, body, o)
}

func (f *faultyWrites) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Store.PutIfAbsent(ctx, key, body, o)
}

func (f *faultyWrites) Delete(ctx context.Context, key string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Store.Delete(ctx, key)
}

// content is all domains of packed results, each with its document and evidence.
func (j *job) content() map[string]string {
	j.t.Helper()
	all := map[string]string{}
	rows, evidence := j.rows()
	for i, r := range rows {
		key := r.Partition().DomainDir(r.RegistrableDomain)
		require.NotContains(j.t, all, key, "a domain is there twice")
		all[key] = fmt.Sprint(r.Document, evidence[i])
	}
	return all
}

// threeSegments is a job with three segments, one of whose domains is in two partitions.
func threeSegments(t *testing.T) *job {
	j := packedJob(t)
	j.run()
	j.put(day+"raw_0002.json", rawFile("https://text-6.com/", "https://rss-7.com/"))
	j.run()
	j.put(day+"raw_0003.json", rawFile("https://urlset-8.com/", "https://urlset-9.com/"))
	j.run()
	require.Len(t, j.parts(), 3)
	return j
}

// everywhere does something with a copy of a job's store again and again, each time
// killed one write later, until it comes to its end.
func everywhere(t *testing.T, j *job, do func(store.Store) error, check func(killedAt int, ended bool)) {
	t.Helper()
	dir, s := j.dir, j.store
	defer func() { j.dir, j.store = dir, s }()
	for n := 0; ; n++ {
		j.dir = t.TempDir()
		must(t, os.CopyFS(j.dir, os.DirFS(dir)))
		var err error
		j.store, err = store.Open(t.Context(), j.dir)
		must(t, err)
		faulty := &faultyWrites{Store: j.store}
		faulty.left.Store(int64(n))
		err = do(faulty)
		if err != nil {
			require.ErrorIs(t, err, errKilled)
		}
		check(n, err == nil)
		must(t, j.store.Close())
		if err == nil {
			require.GreaterOrEqual(t, n, 5)
			return
		}
	}
}

func TestCompactKilledAnywhere(t *testing.T) {
	j := threeSegments(t)
	want := j.content()
	compact := func(s store.Store) error {
		_, err := seed.Compact(t.Context(), s, "compact")
		return err
	}
	everywhere(t, j, compact, func(n int, ended bool) {
		require.Equal(t, want, j.content(), "killed at write %d", n)
		must(t, compact(j.store))
		require.Equal(t, want, j.content(), "after the next call, killed at write %d", n)
		require.Len(t, j.parts(), 1)
	})
}

// Nothing of a purged domain stays, and nothing of another one goes, wherever it is
// killed.
func TestPurgeKilledAnywhere(t *testing.T) {
	j := threeSegments(t)
	_, err := seed.Materialize(t.Context(), j.store)
	must(t, err)
	gone := []string{"urlset-1.com", "urlset-8.com", "urlset-9.com"}
	of := func(all map[string]string, purged bool) map[string]string {
		out := map[string]string{}
		for key, text := range all {
			if slices.ContainsFunc(gone, func(name string) bool { return strings.Contains(key, "/"+name) }) == purged {
				out[key] = text
			}
		}
		return out
	}
	packed, objects := j.content(), j.files()
	require.Len(t, of(packed, true), 4)
	require.NotEmpty(t, of(objects, true))
	var did seed.Purged
	purge := func(s store.Store) (err error) {
		did, err = seed.Purge(t.Context(), s, "purge", gone)
		return err
	}
	everywhere(t, j, purge, func(n int, ended bool) {
		require.Equal(t, of(packed, false), of(j.content(), false), "killed at write %d", n)
		require.Equal(t, of(objects, false), of(j.files(), false), "killed at write %d", n)
		if ended {
			require.Equal(t, seed.Purged{Rows: 4, Objects: int64(len(of(objects, true)))}, did)
		} else {
			must(t, purge(j.store))
		}
		require.Equal(t, of(packed, false), j.content(), "killed at write %d", n)
		require.Equal(t, of(objects, false), j.files(), "killed at write %d", n)
		require.Len(t, j.partFiles(), 6, "two parts")
	})
}

// A segment that is written again has no results of visits that a later run replaced.
func TestPurgeAfterForced(t *testing.T) {
	j := packedJob(t)
	j.run()
	j.cfg.ForceID = "f1"
	j.run()
	newer, _ := j.rows()
	_, err := seed.Purge(t.Context(), j.store, "purge", []string{"gzip-5.com"})
	must(t, err)
	after, _ := j.rows()
	require.Len(t, after, 5)
	for _, r := range after {
		require.True(t, slices.ContainsFunc(newer, func(n table.Row) bool { return n.Document == r.Document }), r.DomainID)
	}
}

// What is older than a time goes, from whole segments, merged ones and objects, and nothing
// else does, wherever it is killed. A dry run counts the same and changes nothing.
func TestPurgeOlderKilledAnywhere(t *testing.T) {
	for _, merged := range []bool{false, true} {
		t.Run(fmt.Sprintf("merged=%t", merged), func(t *testing.T) {
			j := threeSegments(t)
			before := j.parts()[1].Newest.Add(time.Nanosecond)
			young := func(key string) bool {
				return strings.Contains(key, "/urlset-8.com") || strings.Contains(key, "/urlset-9.com")
			}
			_, err := seed.Materialize(t.Context(), j.store)
			must(t, err)
			if merged {
				_, err := seed.Compact(t.Context(), j.store, "compact")
				must(t, err)
			}
			const mixed = "processing/country=sg/category=policy/date=2026-01-28/text-6.com/"
			stays := func(key string) bool { return young(key) || strings.HasPrefix(key, mixed) }
			age := func() { // a copy of a directory has the time of the copy
				for _, key := range j.objects("processing/") {
					if !young(key) && key != mixed+"domain_metadata.json.success" {
						must(t, os.Chtimes(j.dir+"/"+key, time.Time{}, before.Add(-time.Second)))
					}
				}
			}
			of := func(all map[string]string, which func(string) bool) map[string]string {
				out := maps.Clone(all)
				maps.DeleteFunc(out, func(key, _ string) bool { return !which(key) })
				return out
			}
			packed, objects := j.content(), j.files()
			want := seed.Purged{Rows: 8, Objects: int64(len(objects) - len(of(objects, stays)))}
			age()
			did, err := seed.PurgeOlder(t.Context(), store.DryRun(j.store), "dry-run", before)
			must(t, err)
			require.Equal(t, want, did)
			require.Equal(t, packed, j.content())
			require.Equal(t, objects, j.files())

			purge := func(s store.Store) (err error) {
				did, err = seed.PurgeOlder(t.Context(), s, "purge", before)
				return err
			}
			everywhere(t, j, func(s store.Store) error { age(); return purge(s) }, func(n int, ended bool) {
				require.Equal(t, of(packed, young), of(j.content(), young), "killed at write %d", n)
				require.Equal(t, of(objects, stays), of(j.files(), stays), "killed at write %d", n)
				for key := range j.files() {
					mark := strings.TrimSuffix(key, ".success")
					require.True(t, mark == key || j.exists(mark), "killed at write %d: %s is a mark of nothing", n, key)
				}
				if ended {
					require.Equal(t, want, did)
				} else {
					must(t, purge(j.store))
				}
				require.Equal(t, of(packed, young), j.content(), "killed at write %d", n)
				require.Equal(t, of(objects, stays), j.files(), "killed at write %d", n)
				require.Len(t, j.partFiles(), 3, "a part")
			})
		})
	}
}

// Raw files that are done stay so after a purge by age: the next run asks no site.
func TestPurgeOlderKeepsRawFiles(t *testing.T) {
	j := packedJob(t)
	j.run()
	did, err := seed.PurgeOlder(t.Context(), j.store, "purge", time.Now().Add(time.Hour))
	must(t, err)
	require.Equal(t, seed.Purged{Rows: 6}, did)
	require.Empty(t, j.parts())
	j.web.ResetLog()
	j.run()
	require.Empty(t, j.web.Requests())
}

// A segment that is too old goes also if it is damaged.
func TestPurgeOlderDamaged(t *testing.T) {
	j := packedJob(t)
	j.run()
	for _, key := range j.partFiles() {
		j.put(key, "damaged")
	}
	did, err := seed.PurgeOlder(t.Context(), j.store, "purge", time.Now().Add(time.Hour))
	must(t, err)
	require.Equal(t, seed.Purged{Rows: 6}, did)
	require.Empty(t, j.partFiles())
}

// killedBeforeItsEnd is a forced run that stages its rows, and is killed then.
func (j *job) killedBeforeItsEnd(forceID string) {
	j.t.Helper()
	j.cfg.ForceID = forceID
	j.ends = func(_ beam.Scope, _ seed.Config, completed beam.PCollection) beam.PCollection { return completed }
	j.run()
	j.cfg.ForceID, j.ends = "", seed.Promoted
}

// What a forced run has collected is in the table all at once, at its end, and in place of the rows of the same domains, wherever it
// is killed.
func TestPromoteKilledAnywhere(t *testing.T) {
	j := threeSegments(t)
	visits := func() map[string]time.Time {
		all := map[string]time.Time{}
		rows, _ := j.rows()
		for _, r := range rows {
			key := r.Partition().DomainDir(r.RegistrableDomain)
			require.NotContains(t, all, key, "a domain is there twice")
			all[key] = r.CollectedAt
		}
		return all
	}
	before, begun := visits(), time.Now().Truncate(time.Millisecond)
	j.cfg.Date = "2026-01-29"
	j.killedBeforeItsEnd("f1")
	require.Equal(t, before, visits(), "what is staged is not in the table")
	promote := func(s store.Store) error {
		_, _, err := seed.Promote(t.Context(), s, "f1", "run")
		return err
	}
	everywhere(t, j, promote, func(n int, ended bool) {
		for i := range 2 {
			now, again := visits(), 0
			require.Len(t, now, len(before))
			for key, at := range now {
				if !at.Equal(before[key]) {
					require.Contains(t, key, "date=2026-01-29")
					require.False(t, at.Before(begun))
					again++
				}
			}
			require.Contains(t, []int{0, 2}, again, "killed at write %d", n)
			require.True(t, i == 0 && !ended || again == 2, "killed at write %d", n)
			must(t, promote(j.store))
		}
		require.Empty(t, j.objects("tables/domains/_staged/"))
	})
}

// A forced run that was killed before its end visits nothing again that it has staged.
func TestStagedIsDone(t *testing.T) {
	j := packedJob(t)
	j.run()
	j.killedBeforeItsEnd("f1")
	must(t, j.store.Delete(t.Context(), day+"raw_0001.json.success"))
	j.web.ResetLog()
	j.cfg.ForceID, j.cfg.Lanes = "f1", 3
	require.EqualValues(t, 4, j.run().Counts["domains_already_done"])
	require.Empty(t, j.web.Requests())
	require.Len(t, j.content(), 6)
	must(t, j.store.Delete(t.Context(), day+"raw_0001.json.success"))
	require.EqualValues(t, 4, j.run().Counts["domains_already_done"], "also when it was promoted")
	require.Empty(t, j.web.Requests())
}

// After a removal no byte under the table's root has the name of the domain.
func TestPurgeLeavesNoName(t *testing.T) {
	j := threeSegments(t)
	j.cfg.Date = "2026-01-29"
	j.cfg.ForceID = "f0"
	j.run()
	j.killedBeforeItsEnd("f1")
	require.NotEmpty(t, j.objects("tables/domains/_staged/"))
	found := func() (keys []string) {
		for _, key := range j.objects(domaintable.Root) {
			text := string(j.read(key))
			switch {
			case strings.HasSuffix(key, ".gz"):
				z, err := gzip.NewReader(strings.NewReader(text))
				must(t, err)
				b, err := io.ReadAll(z)
				must(t, err)
				text = string(b)
			case strings.HasSuffix(key, ".parquet"):
				rows, err := table.Decode([]byte(text))
				must(t, err)
				text += fmt.Sprint(rows)
			}
			if strings.Contains(text, "urlset-1.com") {
				keys = append(keys, key)
			}
		}
		return keys
	}
	require.GreaterOrEqual(t, len(found()), 9, "of the first visit, a forced one, and a staged one")
	did, err := seed.Purge(t.Context(), j.store, "purge", []string{"urlset-1.com"})
	must(t, err)
	require.Equal(t, seed.Purged{Rows: 3}, did)
	require.Empty(t, found())
}
