//go:build e2e

package e2etest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	newsraw "github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

// readers are programs of others that read the formats of packed results.
var readers = []string{"warcio==1.7.5", "duckdb==1.4.2", "pyarrow==22.0.0", "deltalake==1.2.1"}

// readAll prints what they find in a folder.
const readAll = `
import glob, json, os, subprocess, sys
import deltalake, duckdb
from warcio.archiveiterator import ArchiveIterator
root = sys.argv[1]
table = deltalake.DeltaTable(root)
warcs, tables = sorted(glob.glob(root + "/_evidence/*.warc.gz")), [root + "/" + os.path.basename(u) for u in table.file_uris()]
records = responses = 0
for path in warcs:
    with open(path, "rb") as f:
        it = ArchiveIterator(f, check_digests="raise")
        for r in it:
            body = r.content_stream().read()
            records += 1
            if r.rec_type == "response":
                responses += 1
                assert r.http_headers.get_statuscode() == "200", r.http_headers
                assert r.rec_headers.get_header("WARC-Target-URI").startswith("http"), r.rec_headers
                assert len(body) == int(r.http_headers.get_header("Content-Length")), r.rec_headers
subprocess.run([sys.executable, "-m", "warcio.cli", "check"] + warcs, check=True, stdout=subprocess.DEVNULL)
count, domains, pieces, missing = duckdb.sql("select count(*), count(distinct registrable_domain), sum(len(evidence)), count(*) filter (where json_extract_string(document, '$.domain_id') <> domain_id) from read_parquet(%r)" % tables).fetchone()
rows = table.to_pyarrow_table().to_pylist()
assert all(r["sitemap_exists"] == any(e["file"] == "sitemap.xml" for e in r["evidence"]) for r in rows)
print(json.dumps({"Records": records, "Responses": responses, "DuckDB": count, "Domains": domains, "Pieces": int(pieces), "Wrong": missing, "PyArrow": len(rows)}))
`

// Programs of others read packed results and exports, and count the same.
func TestOthersReadPackedResults(t *testing.T) {
	t.Parallel()
	bin, err := rig.FromPyPI(t.TempDir(), readers...)
	if err != nil {
		rig.Missing(t, err)
	}
	python := filepath.Join(bin, "python")
	w := rig.StartWeb(t, webtest.Options{Seed: 5})
	b := generate(60, steadyKinds)
	dir := rig.Directory(t, b.files)
	run(t, w, dir, packed...)
	s := rig.Open(t, dir)
	parts, err := domaintable.All(t.Context(), s)
	require.NoError(t, err)
	type counts struct{ Records, Responses, DuckDB, Domains, Pieces, Wrong, PyArrow int64 }
	var want, got counts
	names := map[string]bool{}
	for _, p := range parts {
		records, err := p.ReadWARC(t.Context(), s)
		require.NoError(t, err)
		for _, err := range warc.Records(bytes.NewReader(records)) {
			require.NoError(t, err)
			want.Records++
			want.Responses++
		}
		if len(records) > 0 {
			want.Responses-- // the first one says who wrote the file
		}
		want.DuckDB += p.Count
		done, err := p.ReadNames(t.Context(), s)
		require.NoError(t, err)
		for _, d := range done {
			want.PyArrow += int64(len(d.Names))
			for _, n := range d.Names {
				names[n] = true
			}
		}
	}
	want.Domains = int64(len(names))
	cmd := exec.Command(python, "-c", readAll, filepath.Join(dir, domaintable.Root))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, json.Unmarshal(out, &got), string(out))
	assert.True(t, got.Pieces >= got.Responses, "the rows name %d pieces of evidence, and there are %d", got.Pieces, got.Responses)
	want.Pieces = got.Pieces // of a domain of several partitions each row names them
	readExports(t, python, dir)
	readArticles(t, python)
	assert.True(t, got == want && want.Domains == 60 && want.Responses != 0, "others count %+v, want %+v", got, want)
}

// readEvidence prints what there is in the evidence of articles in a folder.
const readEvidence = `
import glob, json, subprocess, sys
from warcio.archiveiterator import ArchiveIterator
warcs, found = sorted(glob.glob(sys.argv[1] + "/evidence/news/*/*/*.warc.gz")), []
for path in warcs:
    with open(path, "rb") as f:
        for r in ArchiveIterator(f, check_digests="raise"):
            body = r.content_stream().read()
            if r.rec_type == "response":
                found.append([r.rec_headers.get_header("WARC-Target-URI"), r.http_headers.get_header("Content-Type"), body.decode("euc-kr")])
subprocess.run([sys.executable, "-m", "warcio.cli", "check"] + warcs, check=True, stdout=subprocess.DEVNULL)
print(json.dumps(found))
`

// readArticles compares what warcio reads of an article's pages with what was kept.
func readArticles(t *testing.T, python string) {
	t.Helper()
	dir, at := t.TempDir(), time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	kind := "text/html; charset=euc-kr"
	header := http.Header{"Content-Type": {kind}, "Content-Encoding": {"gzip"}, "Content-Length": {"1"}}
	e := newsraw.Evidence{Source: "mk", URL: "https://news.example/1", ContentType: kind, FetchedAt: at, News: sitemap.News{Title: "제목 “하나”"}, HTML: []byte("\xb0\xa1"), Header: header,
		More: []newsraw.Page{{URL: "https://news.example/1/2", ContentType: kind, FetchedAt: at, HTML: []byte("\xb0\xa2"), Header: header}}}
	require.NoError(t, newsraw.Keep(t.Context(), rig.Open(t, dir), e.URL, e))
	out, err := exec.Command(python, "-c", readEvidence, dir).CombinedOutput()
	require.NoError(t, err, string(out))
	var got [][]string
	require.NoError(t, json.Unmarshal(out, &got), string(out))
	want := [][]string{{"https://news.example/1", kind, "가"}, {"https://news.example/1/2", kind, "각"}}
	assert.True(t, slices.EqualFunc(got, want, slices.Equal), "warcio reads %v, want %v", got, want)
}

// documents returns the document of each domain in packed results, whose bytes are those
// that were committed.
func documents(t *testing.T, url string) map[string]string {
	t.Helper()
	s := rig.Open(t, url)
	parts, err := domaintable.All(t.Context(), s)
	require.NoError(t, err)
	all := map[string]string{}
	for _, p := range parts {
		_, err := p.ReadWARC(t.Context(), s)
		require.NoError(t, err)
		rows, err := p.ReadRows(t.Context(), s)
		require.NoError(t, err)
		for _, r := range rows {
			key := r.Partition().DomainDir(r.RegistrableDomain)
			assert.NotContains(t, all, key, "it is there twice")
			all[key] = r.Document
		}
	}
	return all
}

// A compact that is killed, and killed again, loses and doubles nothing.
func TestCompactKilled(t *testing.T) {
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	made := rig.Directory(t, generate(90, steadyKinds).files)
	run(t, w, made, slices.Concat(packed, []string{"--segment-age=20ms"})...)
	want := documents(t, made)
	again := func(dir string) *rig.Child {
		return rig.Start(t, exec.Command(rig.Program, "store", "compact", "--store="+dir))
	}
	copied := func() string {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(made)))
		return dir
	}
	whole := copied()
	begin := time.Now()
	require.EqualValues(t, 0, again(whole).Wait(t, time.Minute))
	took := time.Since(begin)
	killed := 0
	for i := range 12 {
		dir := copied()
		for range 2 {
			c := again(dir)
			time.Sleep(took * time.Duration(i+1) / 12)
			if !c.Ended() {
				killed++
			}
			_ = c.Cmd.Process.Kill() // it may have ended already
			c.Wait(t, 10*time.Second)
			got := documents(t, dir)
			require.True(t, maps.Equal(got, want), "after a kill at %d/12 there are %d domains, want the same %d", i+1, len(got), len(want))
		}
		require.EqualValues(t, 0, again(dir).Wait(t, time.Minute))
		got := documents(t, dir)
		require.True(t, maps.Equal(got, want), "in the end there are %d domains, want the same %d", len(got), len(want))
	}
	assert.NotEqual(t, 0, killed, "no compact was killed while it worked")
	t.Logf("%d killed of 24, %v each", killed, took)
}
