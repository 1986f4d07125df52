package seed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/lane/lanetest"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

func TestMain(m *testing.M) { lanetest.Main(m) }

// job is a bucket, a simulated web and a configuration: what one command of
// the seed job meets. Its store is a directory, so that a test can spoil a key
// by putting a folder in its place.
type job struct {
	t     *testing.T
	dir   string
	store store.Store
	web   *webtest.Web
	cfg   seed.Config
	runs  int
	runID string
	log   []map[string]any              // of the last run
	cause error                         // that stopped the last run
	wrap  func(store.Store) store.Store // what the worker has in place of its store
	clock *politetest.Clock             // of its pauses; nil: the system's
	ends  func(beam.Scope, seed.Config, beam.PCollection) beam.PCollection
}

func newJob(t *testing.T, o webtest.Options) *job {
	t.Helper()
	j := &job{t: t, dir: t.TempDir(), web: webtest.New(o), ends: seed.Promoted}
	must(t, j.web.Start())
	t.Cleanup(func() { must(t, j.web.Close()) })
	s, err := store.Open(t.Context(), j.dir)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	j.store = s
	names, err := j.web.DNS()
	must(t, err)
	j.cfg = seed.Config{
		Lanes:           1,
		OutageThreshold: 0.95,
		Collect:         seed.Collect{MaxChildSitemaps: 50},
		Lane: lane.Config{Job: seed.Job, Store: j.dir, Slots: 1, LogFormat: "json", Polite: polite.Config{RetryBackoff: time.Millisecond}, Web: web.Config{
			UserAgent: web.DefaultUserAgent, Concurrency: 16,
			ConnectTo: j.web.Addr(), Resolver: names, RootCAs: j.web.CAPEM()}},
	}
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

const day = "datasets/country=sg/category=news/date=2026-01-28/"

// raw is the raw file of crawl.
const raw = day + "raw_0001.json"

// rawFile is a raw file whose records have only their URL.
func rawFile(urls ...string) string {
	var b strings.Builder
	b.WriteString(`{"meta":{"country":"SG","category":"news"},"records":[`)
	for i, u := range urls {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"raw_url":%q}`, u)
	}
	b.WriteString("]}")
	return b.String()
}

func (j *job) put(key, body string) {
	j.t.Helper()
	must(j.t, j.store.Put(context.Background(), key, strings.NewReader(body), store.PutOptions{}))
}

// spoil makes every write to a key fail, as a folder lies in its place.
func (j *job) spoil(key string) (mend func()) {
	j.t.Helper()
	at := filepath.Join(j.dir, filepath.FromSlash(key))
	must(j.t, os.MkdirAll(filepath.Join(at, "in the way"), 0o755))
	return func() { must(j.t, os.RemoveAll(at)) }
}

// crawl runs the job over a raw file with these URLs.
func (j *job) crawl(urls ...string) ledger.Tally {
	j.t.Helper()
	j.put(raw, rawFile(urls...))
	return j.run()
}

// run runs the job's own graph once, as one command does, and gives its total.
func (j *job) run() ledger.Tally {
	j.t.Helper()
	j.runs++
	cfg := j.cfg
	j.runID = fmt.Sprintf("%s-%d", ledger.NewRunID(time.Now()), j.runs)
	cfg.Lane.RunID = j.runID
	events, err := os.Create(filepath.Join(j.t.TempDir(), "log"))
	must(j.t, err)
	stderr := os.Stderr
	os.Stderr = events // the worker's logger takes it when it is opened
	w, err := lane.Open(j.t.Context(), cfg.Lane)
	os.Stderr = stderr
	must(j.t, err)
	if j.wrap != nil {
		w.Store = j.wrap(w.Store)
	}
	if j.clock != nil {
		w.Pacer.Clock = j.clock.Polite()
	}
	p, s := beam.NewPipelineWithRoot()
	graph(s, cfg, j.ends)
	_, err = beam.Run(j.t.Context(), "direct", p)
	j.cause = w.Cause()
	must(j.t, errors.Join(err, lane.Close(cfg.Lane.RunID)))
	j.log = nil
	must(j.t, events.Close())
	text, err := os.ReadFile(events.Name())
	must(j.t, err)
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var e map[string]any
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			j.t.Fatalf("the log is not JSON: %v", err)
		}
		j.log = append(j.log, e)
	}
	total, err := ledger.ReadTotal(j.t.Context(), j.store, cfg.Lane.RunID)
	must(j.t, err)
	return total
}

// graph is pipeline.Seed, which cannot be imported: its package holds the whole program.
func graph(s beam.Scope, cfg seed.Config, ends func(beam.Scope, seed.Config, beam.PCollection) beam.PCollection) {
	files, listed := seed.List(s, cfg)
	read, records, extracted := seed.Extract(s, cfg, files)
	visited, network, collected := seed.Visit(s, cfg, records)
	completed := ends(s, cfg, seed.Complete(s, cfg, read, visited, network))
	lane.Total(s, cfg.Lane, listed, extracted, collected, completed)
}

// events are the log lines of the last run with that name.
func (j *job) events(name string) (out []map[string]any) {
	for _, e := range j.log {
		if e["event"] == name {
			out = append(out, e)
		}
	}
	return out
}

func (j *job) exists(key string) bool {
	j.t.Helper()
	_, err := j.store.Head(context.Background(), key)
	require.True(j.t, err == nil || errors.Is(err, store.ErrNotExist), err)
	return err == nil
}

func (j *job) read(key string) []byte {
	j.t.Helper()
	r, err := j.store.Open(context.Background(), key)
	require.NoError(j.t, err, "reading %s", key)
	b, err := io.ReadAll(r)
	must(j.t, errors.Join(err, r.Close()))
	return b
}

// out is the key of a file that was collected for the partition of key.
func out(raw, domain, file string) string {
	r, ok := hive.ParseRaw(raw)
	if !ok {
		panic("no raw file: " + raw)
	}
	return r.Partition.DomainDir(domain) + "/" + file
}

func (j *job) metadata(raw, domain string) metadata.Domain {
	j.t.Helper()
	var m metadata.Domain
	must(j.t, json.Unmarshal(j.read(out(raw, domain, "domain_metadata.json")), &m))
	return m
}

func (j *job) done(raw, domain string) bool {
	return j.exists(out(raw, domain, "domain_metadata.json.success"))
}

func (j *job) deadLetters() (all []ledger.DeadLetter) {
	j.t.Helper()
	for d, err := range ledger.ListDeadLetters(context.Background(), j.store, seed.Job, "") {
		must(j.t, err)
		all = append(all, d)
	}
	return all
}

// asked are the paths that a host was asked for, in order.
func (j *job) asked(host string) (paths []string) {
	all := j.web.Requests() // by their ends: one that hung comes late
	slices.SortStableFunc(all, func(a, b webtest.LoggedRequest) int { return a.Start.Compare(b.Start) })
	for _, r := range all {
		if r.Host == host {
			paths = append(paths, r.Path)
		}
	}
	return paths
}
