package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// shipped are the migrations that databases out there have gone through: such a
// file is never edited, a change is a file of its own.
var shipped = map[string]string{
	"00001_docs.sql":                 "3ccffc6f64bfa96ef74fb36692a67433b80992f61aba06c10149cecf99d1c823",
	"00003_sources.sql":              "e835c28adcb3ae0fe7ebeb20e5e70dc68f7c886508ab4725ad261d1ea2abca22",
	"00004_terms.sql":                "59a5054e0113576e24fdcc3b7d4bd93ad0afa8137d22a43393c83a63f399a7a3",
	"00005_api_files.sql":            "115e3c07e9676a0b5c2f87217556706d72fbe4623b1ea6f47741cf377ee272af",
	"00006_repository_files.sql":     "d8ec4b227c12234801ed654b4bed8b1a3c926e91d7d45f0ad7d00d2ade8398b4",
	"postgres/00002_views.sql":       "b850b1ffba5c264c30e31aba60859ad92aa1c757f02c28557c4bbebd6fdeb6fd",
	"00009_unused.sql":               "747a5a1c6e511cec5b1252b2adc95c278b98a682bb7381be02434bcd61756e57",
	"00007_prefix.sql":               "647558a28d6aa19e4d216fba7ba79788a5081c3b0500059b84a8828c7190075f",
	"postgres/00008_types.sql":       "85698216805e67a83a7900344764d95622e47c16433505e40fa5698bb6125938",
	"sqlite/00011_rights_view.sql":   "5b92442a746e9c3a0004f362868ec2363861228468119b18731c3a5df8c683d2",
	"postgres/00011_rights_view.sql": "244f680c2a1d649f83b076445b1657ec6f9fc99d9b817b0b33169377ed427f36",
	"00010_rights.sql":               "7906ca91a0090afc5a4648a6c8c210f7a668b6ebee2b39bb28ef1d390a24fc9e",
	"sqlite/00008_types.sql":         "8c844e598722d8f298759ff25ea8f067bb437e673659abe63a786d904bda7422",
	"sqlite/00002_views.sql":         "e6f9469e85738bc52a6b1f1a8266b926ec76e8a3e6968aa77c1794e267d43478",
}

// steps are the migrations as files, from the first to the last.
func steps(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(migrations, "migrations", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := migrations.ReadFile(name)
		files[strings.TrimPrefix(name, "migrations/")] = &fstest.MapFile{Data: text}
		return err
	}))
	return files
}

func TestShippedMigrationsStay(t *testing.T) {
	sums := map[string]string{}
	for name, file := range steps(t) {
		sum := sha256.Sum256(file.Data)
		sums[name] = hex.EncodeToString(sum[:])
	}
	require.Equal(t, shipped, sums)
}

// A database is migrated by a later version of the program in the middle of a crawl: its rows are kept, the crawl resumes with them, and
// the older program then says that it is one.
func TestMigrateInACrawl(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		later := steps(t)
		n := 0
		for name := range later {
			number, err := strconv.Atoi(path.Base(name)[:5])
			require.NoError(t, err)
			n = max(n, number)
		}
		later[fmt.Sprintf("%05d_later.sql", n+1)] = &fstest.MapFile{Data: []byte(`-- +goose Up
ALTER TABLE docs_pages ADD COLUMN note TEXT NOT NULL DEFAULT 'none';
CREATE INDEX docs_pages_note ON docs_pages (note);
CREATE TABLE docs_notes (id TEXT PRIMARY KEY);
`)}
		w.set("/docs/c", doc("c"))
		w.set("/docs", tagged(`"s"`, doc("seed", "/docs/a", "/docs/no", "/docs/b", "/docs/c")))
		w.set("/docs/a", tagged(`"a"`, doc("a")))
		w.set("/docs/no", status(403))
		w.set("/docs/b", status(429, "Retry-After", "3600"))
		state, _ := w.run()
		require.Equal(t, Held, state)
		w.paths()
		require.NoError(t, w.db.Migrate(t.Context(), Job, later))
		require.NoError(t, w.db.Migrate(t.Context(), Job, later), "a second time")
		require.Equal(t, []string{"none"}, w.strings(`SELECT DISTINCT note FROM docs_pages`))
		w.set("/docs/b", doc("b"))
		w.time.Advance(2 * time.Hour)
		state, _ = w.run()
		require.Equal(t, Done, state)
		require.Equal(t, []string{"/docs/b", "/docs/c"}, w.paths(), "what it has is not asked for")
		w.newSession()
		w.run()
		require.Equal(t, []string{"/docs", "/docs/a", "/docs/b", "/docs/c"}, w.paths())
		require.Equal(t, []Status{NotModified, NotModified, Indexed}, []Status{w.row("/docs").Status, w.row("/docs/a").Status, w.row("/docs/b").Status})
		require.Equal(t, int64(4), w.report().Providers[0].TotalPages)
		require.ErrorContains(t, Migrate(t.Context(), w.db), fmt.Sprintf("the database is at version %d, this program knows %d", n+1, n))
	})
}
