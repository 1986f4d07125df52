//go:build e2e

package flink

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/io/web/webtest/catalogsim"
	"github.com/newsfork/seed-engine/io/web/webtest/docsim"
	"github.com/newsfork/seed-engine/io/web/webtest/newssim"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/testdata/policies"
)

// The jobs with a database leave there what they leave on prism: with workers
// that take its password from their own environment, on two slots.

func TestCatalog(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	w.Handle(catalogsim.MatterHost, catalogsim.NewMatter(4, 12))
	sameRows(t, w, 48, []string{`SELECT site || ' ' || product_key || ' ' || url || ' ' || detail || ' ' || content_hash FROM catalog_products`},
		"--job=catalog", "--host-delay=0s")
}

func TestDocs(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7})
	docsim.Install(w.Handle, 1)
	dir := t.TempDir()
	for _, name := range []string{"openai.yaml", "pinecone.yaml"} {
		text, err := policies.Files.ReadFile(name)
		if err == nil { // five pages, at the least pause there is
			text = regexp.MustCompile(`request_delay_ms: \d+`).ReplaceAll(text, []byte("request_delay_ms: 1000"))
			text = regexp.MustCompile(`max_pages: \d+`).ReplaceAll(text, []byte("max_pages: 5"))
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sameRows(t, w, 10, []string{`SELECT key || ' ' || status || ' ' || depth || ' ' || content_hash FROM pages`, `SELECT key || ' ' || id FROM chunks`,
		`SELECT provider || ' ' || state || ' ' || reason || ' ' || requested FROM runs`, `SELECT kind || ' ' || key FROM docs_changes`},
		"--job=docs", "--fallback", "--policies="+dir)
}

func TestNews(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7})
	newssim.Install(w.Handle, time.Now())
	publishers, err := filepath.Abs("../../../testdata/publishers")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NEWS_DELAY_SECONDS", "0.2")
	sameRows(t, w, 40, []string{`SELECT source || ' ' || canonical_url || ' ' || external_id || ' ' || title || ' ' || content_hash FROM news_articles`},
		"--job=news", "--publishers="+publishers, "--concurrency=4")
}

// sameRows runs a job on prism and, beside it, on Flink, each with a database
// and a store of its own, and compares what the queries give; the first must
// give at least so many rows.
func sameRows(t *testing.T, w rig.Web, least int, queries []string, args ...string) {
	t.Helper()
	start := func(store, dsn string, more ...string) *rig.Child {
		cmd := exec.Command(rig.Program, slices.Concat([]string{"--store=" + store, "--connect-to=" + w.Addr(), "--progress=off", "--log-level=warn", "--log-format=json"}, args, more)...)
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+w.CA, "SEED_DB="+dsn)
		return rig.Start(t, cmd)
	}
	reference, dir := rig.Directory(t, nil), rig.Directory(t, nil)
	there, here := dbtest.Postgres(t), dbtest.Postgres(t)
	onPrism := start(reference, there, "--runner=prism")
	s := startServer(t, w, "SEED_DB="+here)
	begin := time.Now()
	onFlink := start(dir, here, s.args("PROCESS", 2)...)
	for _, c := range []*rig.Child{onPrism, onFlink} {
		if code := c.Wait(t, 2*time.Minute); code != 0 {
			t.Fatalf("%v: exit code %d, want 0:\n%s", c.Cmd.Args, code, rig.Tail(c.Output(t)))
		}
	}
	t.Logf("%v", time.Since(begin))
	for i, q := range queries {
		want, got := rows(t, there, q), rows(t, here, q)
		if i == 0 && len(want) < least {
			t.Errorf("%d rows on prism, want %d", len(want), least)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", q, got, want)
		}
	}
	want, got := timeless(rig.LastReport(t, reference)), timeless(rig.LastReport(t, dir))
	if len(want) == 0 || !maps.Equal(got, want) {
		t.Errorf("counts %v, on prism %v", got, want)
	}
}

// rows are a query's, in order.
func rows(t *testing.T, dsn, query string) (out []string) {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // nothing was written
	found, err := d.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	for found.Next() {
		var row string
		if err := found.Scan(&row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}
