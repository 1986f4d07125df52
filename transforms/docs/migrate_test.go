package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
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

// newer are columns that came with a later migration than the first.
var newer = []string{"note", "rights", "rights_search", "rights_ai_input", "rights_ai_train", "rights_archive", "header", "sha256", "final_url"}

// dump is every row of every table, as text, by the table's newest name. PostgreSQL's driver
// keeps how it read a query's columns, so each moment has a query of its own.
func dump(t *testing.T, d *db.DB, moment string) map[string][]string {
	t.Helper()
	tables := append(slices.Clip(tables()[:7]), "docs_sessions", "docs_providers", "docs_hosts", "docs_robots", "docs_budget")
	out := map[string][]string{}
	for _, table := range tables {
		from := table
		if there, err := d.HasTable(t.Context(), table); err != nil || !there {
			require.NoError(t, err)
			from = strings.TrimPrefix(table, "docs_")
		}
		rows, err := d.QueryContext(t.Context(), `SELECT * FROM `+from+` /* `+moment+` */`)
		require.NoError(t, err)
		names, err := rows.Columns()
		require.NoError(t, err)
		for rows.Next() {
			values, into := make([]any, len(names)), make([]any, len(names))
			for i := range values {
				into[i] = &values[i]
			}
			require.NoError(t, rows.Scan(into...))
			var line []string
			for i, v := range values {
				if slices.Contains(newer, names[i]) {
					continue
				}
				if b, ok := v.([]byte); ok {
					v = string(b)
				}
				var inner any
				if text, ok := v.(string); ok && json.Unmarshal([]byte(text), &inner) == nil {
					v = inner // PostgreSQL has its own order of names
				}
				line = append(line, fmt.Sprintf("%s=%v", names[i], v))
			}
			out[table] = append(out[table], strings.Join(line, " "))
		}
		require.NoError(t, rows.Err())
		slices.Sort(out[table])
		require.NotEmpty(t, out[table], "%s has no row, so nothing is proved for it", table)
	}
	return out
}

// fill gives a database the rows that an older program left in the middle of a crawl.
func fill(t *testing.T, d *db.DB, prefixed bool) {
	t.Helper()
	text, err := os.ReadFile("testdata/held.sql")
	require.NoError(t, err)
	rows := strings.ReplaceAll(strings.TrimSpace(string(text)), "{read_by}", readBy(worldPolicy(t)))
	for _, table := range []string{"pages", "links", "chunks", "runs", "blocked_urls"} {
		if prefixed {
			rows = strings.ReplaceAll(rows, "INTO "+table+" ", "INTO docs_"+table+" ")
		}
	}
	for statement := range strings.SplitSeq(rows, ";\n") {
		_, err := d.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
}

func answers(w *world) {
	w.set("/docs", tagged(`"s"`, doc("seed", "/docs/a", "/docs/no", "/docs/b", "/docs/c")))
	w.set("/docs/a", tagged(`"a"`, doc("a")))
	w.set("/docs/no", status(403))
	w.set("/docs/b", doc("b"))
	w.set("/docs/c", doc("c"))
}

// A database of an older version of the program is migrated in the middle of a crawl: its
// rows are kept, and the crawl resumes with them. This is tested for the database after
// each migration. For the newest one the test adds a migration, as a later version will.
func TestMigrateFromOlder(t *testing.T) {
	t.Parallel()
	all := steps(t)
	var names []string // of the steps; one that differs between the databases has two files
	for file := range maps.Keys(all) {
		names = append(names, path.Base(file))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	later := maps.Clone(all)
	later[fmt.Sprintf("%05d_later.sql", len(names)+1)] = &fstest.MapFile{Data: []byte(`-- +goose Up
ALTER TABLE docs_pages ADD COLUMN note TEXT NOT NULL DEFAULT 'none';
CREATE INDEX docs_pages_note ON docs_pages (note);
CREATE TABLE docs_notes (id TEXT PRIMARY KEY);
`)}
	for n := range names {
		from, untyped := fstest.MapFS{}, fstest.MapFS{} // fill writes times as numbers, which PostgreSQL has until 00008
		for file := range all {
			if name := path.Base(file); name <= names[n] {
				if from[file] = all[file]; name < "00008" {
					untyped[file] = all[file]
				}
			}
		}
		newest, to := n+1 == len(names), all
		if newest {
			to = later
		}
		t.Run("from "+names[n], func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				var w *world
				if newest {
					require.NoError(t, d.Migrate(t.Context(), Job, from))
					w = newWorldOn(t, d)
					answers(w)
					w.set("/docs/b", status(429, "Retry-After", "3600"))
					state, _ := w.run()
					require.Equal(t, Held, state)
					_, err := d.ExecContext(t.Context(), `INSERT INTO docs_providers (id, disabled_at) VALUES ('off', $1)`, 1)
					require.NoError(t, err)
				} else {
					require.NoError(t, d.Migrate(t.Context(), Job, untyped))
					fill(t, d, names[n] >= "00007")
					require.NoError(t, d.Migrate(t.Context(), Job, from))
				}
				before := dump(t, d, "before")
				require.NoError(t, d.Migrate(t.Context(), Job, to))
				require.NoError(t, d.Migrate(t.Context(), Job, to), "a second time")
				after := dump(t, d, "after")
				require.Equal(t, before, after)

				// The crawl resumes where the older program stopped: what it has is not asked for.
				if newest {
					require.Equal(t, []string{"none"}, w.strings(`SELECT DISTINCT note FROM docs_pages`))
					w.paths()
				} else {
					w = newWorldOn(t, d)
				}
				answers(w)
				w.time.Advance(2 * time.Hour)
				state, _ := w.run()
				require.Equal(t, Done, state)
				require.Equal(t, []string{"/docs/b", "/docs/c"}, w.paths())
				w.newSession()
				w.run()
				require.Equal(t, []string{"/docs", "/docs/a", "/docs/b", "/docs/c"}, w.paths())
				first := NotModified
				if !newest {
					first = Indexed // an older version did not read what pages say about use
				}
				require.Equal(t, []Status{first, first, Indexed}, []Status{w.row("/docs").Status, w.row("/docs/a").Status, w.row("/docs/b").Status})
				r := w.report()
				require.Equal(t, int64(4), r.Providers[0].TotalPages)

				if newest { // the older program says that it is one
					require.ErrorContains(t, Migrate(t.Context(), d), fmt.Sprintf("the database is at version %d, this program knows %d", n+2, n+1))
				}
			})
		})
	}
}
