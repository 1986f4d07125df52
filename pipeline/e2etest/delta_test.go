//go:build e2e

package e2etest

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/columnar"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/store/delta"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// readTable prints what others find in some versions of a Delta table: the ids of its rows by version, and the newest rows. DuckDB
// reads the files that deltalake names: its own extension cannot be installed from PyPI.
const readTable = `
import datetime, json, sys
import deltalake, duckdb, polars
root, options, out = sys.argv[1], json.loads(sys.argv[2]), {"ByDeltalake": {}, "ByPolars": {}, "ByDuckDB": {}}
for v in json.loads(sys.argv[3]):
    t = deltalake.DeltaTable(root, version=v, storage_options=options)
    out["ByDeltalake"][v] = sorted(t.to_pyarrow_table().column("id").to_pylist())
    out["ByPolars"][v] = sorted(polars.scan_delta(root, version=v, storage_options=options).collect().get_column("id").to_list())
    if not options:
        out["ByDuckDB"][v] = sorted(r[0] for r in duckdb.sql("select id from read_parquet(%r)" % t.file_uris()).fetchall())
t = deltalake.DeltaTable(root, storage_options=options)
out["Version"] = t.version()
out["Newest"] = sorted(t.to_pyarrow_table().to_pylist(), key=lambda r: r["id"])
assert polars.scan_delta(root, storage_options=options).sort("id").collect().to_dicts() == out["Newest"]
print(json.dumps(out, default=lambda t: t.isoformat()))
`

// readSeed compares what others find in the table of the seed job with an export of it, and prints how many rows there are.
const readSeed = `
import json, sys
import deltalake, duckdb, polars, pyarrow.parquet
root, options, exported = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
def rows(found, more):
    for r in found:
        if isinstance(r["document"], bytes):
            r["document"] = r["document"].decode()
        for name in more:
            r.pop(name)
    return sorted(found, key=lambda r: (r["registrable_domain"], r["country"], r["category"], r["date"]))
want = rows(pyarrow.parquet.read_table(exported).to_pylist(), [])
t = deltalake.DeltaTable(root, storage_options=options)
found = {"deltalake": t.to_pyarrow_table().to_pylist(), "Polars": polars.scan_delta(root, storage_options=options).collect().to_dicts()}
if not options:
    found["DuckDB"] = duckdb.sql("select * from read_parquet(%r)" % t.file_uris()).fetch_arrow_table().to_pylist()
for name, got in found.items():
    got = rows(got, ["warc", "evidence"])
    assert len(got) == len(want), (name, len(got), len(want))
    for g, w in zip(got, want):
        assert g == w, (name, [(k, g.get(k), w.get(k)) for k in g.keys() | w.keys() if g.get(k) != w.get(k)])
print(len(want))
`

type deltaRow struct {
	ID    int64       `parquet:"id" json:"id"`
	Name  string      `parquet:"name,dict" json:"name"`
	At    time.Time   `parquet:"at,timestamp(microsecond)" json:"at"`
	OK    bool        `parquet:"ok" json:"ok"`
	Share float64     `parquet:"share" json:"share"`
	Small int32       `parquet:"small" json:"small"`
	Some  *int64      `parquet:"some,optional" json:"some"`
	Texts []string    `parquet:"texts,list" json:"texts"`
	Parts []deltaPart `parquet:"parts,list" json:"parts"`
}

type deltaPart struct {
	URL   string `parquet:"url" json:"url"`
	Count *int64 `parquet:"count,optional" json:"count"`
}

// Programs of others read a Delta table in a directory and in S3: before a checkpoint, after it, after removals, as of versions; and of
// the seed job's own table the rows of its export.
func TestOthersReadDeltaTables(t *testing.T) {
	t.Parallel()
	bin, err := rig.FromPyPI(t.TempDir(), "deltalake==1.6.6", "polars==2.1.0", "duckdb==1.4.2", "pyarrow==22.0.0")
	if err != nil {
		rig.Missing(t, err)
	}
	s3 := buckettest.StartVersity(t)
	options := map[string]string{"AWS_ENDPOINT_URL": s3.Endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": s3.AccessKey, "AWS_SECRET_ACCESS_KEY": s3.SecretKey}
	python := filepath.Join(bin, "python")
	dir := rig.Directory(t, generate(60, steadyKinds).files)
	run(t, rig.StartWeb(t, webtest.Options{Seed: 5}), dir, packed...)
	exported := filepath.Join(t.TempDir(), "domains.parquet")
	said, err := exec.Command(rig.Program, "export", "domains", exported, "--store="+dir).CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, c := range []struct {
		store, root string
		options     map[string]string
	}{
		{"s3://" + s3.Bucket + "?endpoint=" + s3.Endpoint + "&region=us-east-1", "s3://" + s3.Bucket + "/tables/t", options},
		{dir, filepath.Join(dir, "tables/t"), map[string]string{}},
	} {
		s := rig.Open(t, c.store)
		if c.store != dir { // which comes last: it has the other table then
			copyObjects(t, s, rig.Open(t, dir))
		}
		found, err := exec.Command(python, "-c", readSeed, strings.TrimSuffix(c.root, "t")+"domains", asJSON(t, c.options), exported).CombinedOutput()
		require.NoError(t, err, "%s", found)
		require.Contains(t, string(said), "wrote "+strings.TrimSpace(string(found))+" rows of domains")
		byVersion, rows := deltaTable(t, s)
		versions := []int64{2, 3, 99, 100, 101, 120}
		out, err := exec.Command(python, "-c", readTable, c.root, asJSON(t, c.options), asJSON(t, versions)).CombinedOutput()
		require.NoError(t, err, "%s", out)
		var got struct {
			ByDeltalake, ByPolars, ByDuckDB map[int64][]int64
			Version                         int64
			Newest                          []deltaRow
		}
		require.NoError(t, json.Unmarshal(out, &got), "%s", out)
		want := map[int64][]int64{}
		for _, v := range versions {
			want[v] = byVersion[v]
		}
		require.Equal(t, want, got.ByDeltalake)
		require.Equal(t, want, got.ByPolars)
		if len(c.options) == 0 {
			require.Equal(t, want, got.ByDuckDB)
		}
		require.EqualValues(t, 120, got.Version)
		require.Equal(t, asJSON(t, rows), asJSON(t, got.Newest))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// deltaTable makes a table of 120 versions, and returns the ids of each one and the rows of the newest.
func deltaTable(t *testing.T, s store.Store) (ids map[int64][]int64, rows []deltaRow) {
	t.Helper()
	table, err := delta.Open(t.Context(), s, "tables/t/", delta.SchemaOf[deltaRow]())
	require.NoError(t, err)
	w, _, err := table.Begin(t.Context(), "writer")
	require.NoError(t, err)
	ids = map[int64][]int64{}
	file := map[int64]string{}
	for v := int64(2); v <= 120; v++ {
		row := deltaRow{ID: v, Name: "한국 \"a\"", At: time.Date(2026, 1, 2, 3, 4, 5, int(v)*1000, time.UTC), OK: v%2 == 0, Share: .5, Small: -7, Texts: []string{"a", ""}, Parts: []deltaPart{{"u", &v}, {"v", nil}}}
		if v%3 == 0 {
			row.Some = &v
		}
		b, err := columnar.Encode([]deltaRow{row})
		require.NoError(t, err)
		f := delta.File{Path: fmt.Sprintf("lane-0/%d.parquet", v), Size: int64(len(b)), Rows: 1, Tags: map[string]string{"run": "r"}}
		require.NoError(t, store.Write(t.Context(), s, "tables/t/"+f.Path, b, store.PutOptions{}))
		c := delta.Change{Add: []delta.File{f}, Operation: "WRITE"}
		if v%4 == 0 {
			c.Remove = []string{file[v-1]}
			rows = rows[:len(rows)-1]
		}
		got, err := w.Commit(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, v, got)
		file[v], rows = f.Path, append(rows, row)
		for _, r := range rows {
			ids[v] = append(ids[v], r.ID)
		}
	}
	require.False(t, slices.Contains(ids[120], 119))
	return ids, rows
}
