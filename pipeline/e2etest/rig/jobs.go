//go:build e2e

package rig

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
	"github.com/newsfork/seed-engine/transforms/docs/docsim"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
)

// Job is a small run of a job with a database, against its simulated sites.
type Job struct {
	Args    []string // of the program
	Env     []string // of the launcher
	MinRows int      // of the first query
	Queries []string // for the results in the run's database
	History []string // queries for what only runs of the same number have in common
	Hosts   []string // of its sites
	Pause   time.Duration
}

// handle adds the job's sites to the simulated web.
func (j *Job) handle(w Web) func(host string, h http.Handler) {
	return func(host string, h http.Handler) {
		j.Hosts = append(j.Hosts, host)
		if w.Before != nil {
			h = w.Before(h)
		}
		w.Handle(host, h)
	}
}

// Polite checks from the web's side that the job's hosts got one request at a time,
// with the pause between two, and none for the same URL twice.
func (j Job) Polite(t testing.TB, log []webtest.LoggedRequest) {
	t.Helper()
	log = slices.DeleteFunc(slices.Clone(log), func(r webtest.LoggedRequest) bool { return r.Method == "" || !slices.Contains(j.Hosts, r.Host) })
	if len(log) == 0 {
		t.Error("no host of the job got a request")
	}
	PausesKept(t, log, j.Pause, false)
	requested := map[string]bool{}
	for _, r := range log {
		if requested[r.Host+r.Path] {
			t.Errorf("%s%s was requested again", r.Host, r.Path)
		}
		requested[r.Host+r.Path] = true
	}
}

// Catalog adds the catalog's sites to the simulated web.
func Catalog(w Web) Job {
	j := Job{MinRows: 48, Args: []string{"--job=catalog", "--host-delay=0s"},
		Queries: []string{`SELECT site || ' ' || product_key || ' ' || url || ' ' || content_hash FROM catalog_products`,
			`SELECT detail FROM catalog_products`}} // alone: the databases write JSON differently
	j.handle(w)(catalogsim.MatterHost, catalogsim.NewMatter(4, 12))
	return j
}

// Docs adds the documentation sites to the simulated web; two of them are crawled.
func Docs(t testing.TB, w Web) Job {
	t.Helper()
	j := Job{MinRows: 10, Pause: time.Second,
		Queries: []string{`SELECT key || ' ' || status || ' ' || depth || ' ' || content_hash FROM docs_pages`, `SELECT key || ' ' || id FROM docs_chunks`,
			`SELECT kind || ' ' || key FROM docs_changes`},
		History: []string{`SELECT provider || ' ' || state || ' ' || reason || ' ' || requested FROM docs_runs`}}
	docsim.Install(j.handle(w), 1)
	dir := t.TempDir()
	for _, name := range []string{"openai.yaml", "pinecone.yaml"} {
		text, err := policies.Files.ReadFile(name)
		if err == nil { // five pages, with the shortest allowed pause
			text = regexp.MustCompile(`request_delay_ms: \d+`).ReplaceAll(text, []byte("request_delay_ms: 1000"))
			text = regexp.MustCompile(`max_pages: \d+`).ReplaceAll(text, []byte("max_pages: 5"))
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		require.NoError(t, err)
	}
	j.Args = []string{"--job=docs", "--fallback", "--policies=" + dir}
	return j
}

// began is the time of the publishers' newest articles.
var began = time.Now()

// News adds the publishers' sites to the simulated web.
func News(t testing.TB, w Web) Job {
	t.Helper()
	j := Job{MinRows: 40, Pause: 100 * time.Millisecond, // half of the delay
		Env:     []string{"NEWS_DELAY_SECONDS=0.2", "NEWS_PROVIDERS_MK_ENABLED=true", "NEWS_PROVIDERS_HANKYUNG_ENABLED=true"},
		Queries: []string{`SELECT source || ' ' || canonical_url || ' ' || external_id || ' ' || title || ' ' || content_hash FROM news_articles`}}
	newssim.Install(j.handle(w), began)
	root, err := filepath.Abs(".")
	for err == nil && filepath.Dir(root) != root { // finds the module's root, wherever in it the test is
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			break
		}
		root = filepath.Dir(root)
	}
	require.NoError(t, err)
	publishers := filepath.Join(root, "transforms", "news", "publishers")
	j.Args = []string{"--job=news", "--publishers=" + publishers, "--concurrency=4"}
	return j
}

// Start starts a run of the job on a store and a database.
func (j Job) Start(t testing.TB, w Web, store, dsn string, more ...string) *Child {
	t.Helper()
	return Start(t, j.Command(w, Left{store, dsn}, more...))
}

// Command is the command of a run.
func (j Job) Command(w Web, on Left, more ...string) *exec.Cmd {
	cmd := exec.Command(Program, slices.Concat([]string{"--store=" + on.Store, "--connect-to=" + w.Addr(), "--progress=off", "--log-level=warn", "--log-format=json"}, j.Args, more)...)
	cmd.Env = slices.Concat(os.Environ(), w.Env, []string{"SSL_CERT_FILE=" + w.CA, "SEED_DB=" + on.DSN}, j.Env)
	return cmd
}

// Left is what a run leaves: its store and its database.
type Left struct{ Store, DSN string }

// Same compares the databases of two runs, and the counts of their reports.
func (j Job) Same(t testing.TB, got, want Left) {
	t.Helper()
	j.SameRows(t, got, want, slices.Concat(j.Queries, j.History))
	g, w := LastReport(t, got.Store).Counted(), LastReport(t, want.Store).Counted()
	if len(w) == 0 || !maps.Equal(g, w) {
		t.Errorf("counts %v, want %v", g, w)
	}
}

// SameRows compares the rows of queries in the databases of runs.
func (j Job) SameRows(t testing.TB, got, want Left, queries []string) {
	t.Helper()
	for i, q := range queries {
		g, w := rows(t, got.DSN, q), rows(t, want.DSN, q)
		if i == 0 && len(w) < j.MinRows {
			t.Errorf("%d rows to compare with, want %d", len(w), j.MinRows)
		}
		if !slices.Equal(g, w) {
			t.Errorf("%s:\n got %q\nwant %q", q, g, w)
		}
	}
}

// rows returns the rows of a query, sorted.
func rows(t testing.TB, dsn, query string) (out []string) {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = d.Close() }() // nothing was written
	found, err := d.QueryContext(t.Context(), query)
	require.NoError(t, err)
	for found.Next() {
		var row string
		require.NoError(t, found.Scan(&row))
		out = append(out, row)
	}
	require.NoError(t, errors.Join(found.Err(), found.Close()))
	slices.Sort(out)
	return out
}
