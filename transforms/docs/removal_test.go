package docs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
)

// A request to remove a provider is done by a purge. Nothing that its pages said can then
// be found in the database's files or in the store, and the receipt says what was removed,
// also where a first try could not empty the database's files.
func TestRemoval(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, testRemoval)
}

func testRemoval(t *testing.T, d *db.DB) {
	w := newWorld(t, d)
	lite := d.Dialect == db.SQLite
	if lite { // the free parts of the file keep what was deleted
		_, err := d.ExecContext(t.Context(), `PRAGMA secure_delete = 0`)
		require.NoError(t, err)
	}
	files := databaseFiles(t, w)
	var links []string
	for n := range 20 {
		links = append(links, fmt.Sprint("/docs/", n))
		w.set(fmt.Sprint("/docs/", n), doc(fmt.Sprint("zanzibar ", n)))
	}
	w.set("/docs/19", status(500)) // a dead letter
	w.set("/docs", doc("zanzibar", links...))
	w.run()
	x, err := index.Open(t.Context(), d, "")
	require.NoError(t, err)
	for _, provider := range []string{"p", "another"} {
		text := map[string]string{"p": "zanzibar by a spice trader", "another": "a lighthouse"}[provider]
		require.NoError(t, x.Apply(t.Context(), index.Change{Whole: true, At: w.time.Now(), Put: []index.Chunk{{ID: provider, Provider: provider, Title: text, Text: text}}}))
	}
	found := func() (in []string) {
		look := func(name string) {
			b, err := os.ReadFile(name)
			require.NoError(t, err)
			if strings.Contains(string(b), "zanzibar") {
				in = append(in, filepath.Ext(name))
			}
		}
		for _, name := range files() {
			look(name)
		}
		require.NoError(t, filepath.WalkDir(w.dir, func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				look(name)
			}
			return err
		}))
		return in
	}
	require.Contains(t, found(), ".jsonl", "the hand-off")
	require.True(t, slices.ContainsFunc(found(), func(ext string) bool { return slices.Contains([]string{".db", ".db-wal", ""}, ext) }), "and the database")

	s, err := store.Open(t.Context(), w.dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	asked := w.time.Now()
	req, err := removal.Record(t.Context(), s, removal.Request{Job: Job, Provider: "p", By: "test", From: "legal@p.example", Note: "ticket\x00 7"}, asked)
	require.NoError(t, err)
	_, err = removal.Record(t.Context(), s, removal.Request{Job: Job, Provider: "another"}, asked)
	require.NoError(t, err)
	if lite { // PostgreSQL would wait half a minute for the other reader
		other, err := db.Open(t.Context(), "sqlite://"+files()[0])
		require.NoError(t, err)
		defer func() { require.NoError(t, other.Close()) }()
		d.SetMaxOpenConns(1)
		_, err = d.ExecContext(t.Context(), `PRAGMA busy_timeout = 20`)
		require.NoError(t, err)
		reading, err := other.QueryContext(t.Context(), `SELECT key FROM docs_pages`)
		require.NoError(t, err)
		require.True(t, reading.Next())
		defer func() { require.NoError(t, reading.Close()) }()
		_, receipts, err := remove(t, d, s, "p", "test", asked.Add(time.Hour))
		require.ErrorIs(t, err, removal.ErrNotErased)
		require.Empty(t, receipts)
		require.NoError(t, reading.Close())
	}
	open, err := removal.OpenOf(t.Context(), s, Job, "p")
	require.NoError(t, err)
	require.Len(t, open, 1, "the request stays open")
	require.Equal(t, []bool{false, true}, []bool{open[0].Late(asked.Add(23 * time.Hour)), open[0].Late(asked.Add(24*time.Hour + time.Second))})

	_, receipts, err := remove(t, d, s, "p", "test", asked.Add(2*time.Hour))
	require.NoError(t, err)
	require.Empty(t, found())
	require.Len(t, receipts, 1)
	e, err := removal.Find(t.Context(), s, req.ID)
	require.NoError(t, err)
	require.Equal(t, receipts[0], *e.Receipt)
	r := *e.Receipt
	require.Equal(t, []any{"p", "legal@p.example", "ticket 7", true, true, string(d.Dialect), "test"}, []any{r.Request.Provider, r.Request.From, r.Request.Note, r.InTime, r.Erased, r.Database, r.By})
	require.Equal(t, req.At.Add(48*time.Hour), r.Request.Due)
	if lite {
		require.Len(t, r.Tries, 2)
		require.Contains(t, r.Tries[0].Error, "may still be in free parts")
		require.Equal(t, []any{int64(0), int64(0), ""}, []any{r.Tries[1].Rows["docs_pages"], r.Tries[1].Objects, r.Tries[1].Error})
	}
	require.Equal(t, []int64{21, 20, 1}, []int64{r.Tries[0].Rows["docs_pages"], r.Tries[0].Objects, r.Tries[0].DeadLetters})
	require.Len(t, r.Tries[0].PagesSHA256+r.Tries[0].ObjectsSHA256, 128)
	for table, n := range r.Left {
		require.Zero(t, n, table)
	}
	require.Contains(t, r.Left, "docs_chunks")
	require.Contains(t, r.Left, removal.SearchTable)
	require.EqualValues(t, 1, r.Tries[0].Rows[removal.SearchTable])
	indexed, err := db.Texts(t.Context(), d, `SELECT provider FROM search_chunks`)
	require.NoError(t, err)
	require.Equal(t, []string{"another"}, indexed)
	open, err = removal.OpenOf(t.Context(), s, Job, "")
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.Equal(t, "another", open[0].Provider)
}

// remove removes a provider.
func remove(t *testing.T, d *db.DB, s store.Store, provider, by string, now time.Time) (removal.Removed, []removal.Receipt, error) {
	return Removal().Remove(t.Context(), removal.Source{Name: provider, Store: s, DB: d}, by, now)
}

func purge(t *testing.T, d *db.DB, s store.Store, provider string, now time.Time) (removal.Removed, error) {
	r, _, err := remove(t, d, s, provider, "test", now)
	return r, err
}

// tables are those with a provider's rows.
func tables() (all []string) {
	for _, t := range Removal().Tables {
		all = append(all, t.Name)
	}
	return all
}

// databaseFiles returns a function that lists the files with the database's rows. What
// PostgreSQL logs before it writes rows is its server's, as its backups are.
func databaseFiles(t *testing.T, w *world) func() []string {
	t.Helper()
	if w.db.Dialect == db.SQLite {
		var file string
		require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file))
		return func() []string { return []string{file, file + "-wal"} }
	}
	return func() (files []string) {
		_, err := w.db.ExecContext(t.Context(), `CHECKPOINT`)
		require.NoError(t, err)
		at := w.strings(`SELECT current_setting('data_directory')`)[0]
		for _, table := range append(tables(), removal.SearchTable, "search_vectors") {
			for _, path := range w.strings(`SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid = to_regclass($1) OR oid = (SELECT reltoastrelid FROM pg_class WHERE oid = to_regclass($1) AND reltoastrelid > 0)`, table) {
				files = append(files, filepath.Join(at, path))
			}
		}
		return files
	}
}

// dyingStore fails for ever from the n-th change on, as if its process were killed then.
type dyingStore struct {
	store.Store
	left int
}

var errKilled = errors.New("killed")

func (s *dyingStore) dies() bool { s.left--; return s.left < 0 }

func (s *dyingStore) Put(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if s.dies() {
		return errKilled
	}
	return s.Store.Put(ctx, key, body, o)
}

func (s *dyingStore) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if s.dies() {
		return errKilled
	}
	return s.Store.PutIfAbsent(ctx, key, body, o)
}

func (s *dyingStore) Delete(ctx context.Context, key string) error {
	if s.dies() {
		return errKilled
	}
	return s.Store.Delete(ctx, key)
}

// Wherever a removal is killed, the receipt of the next one has all that both removed.
func TestRemovalAfterAKill(t *testing.T) {
	t.Parallel()
	var whole removal.Removed
	for _, at := range []int{100, 0, 1, 2, 4, 6, 7, 8} { // changes of the store before the kill: list, note, 4 objects, a dead letter, note, receipt
		t.Run(fmt.Sprint("after ", at), func(t *testing.T) {
			d, err := db.Open(t.Context(), dbtest.SQLite(t))
			require.NoError(t, err)
			defer func() { require.NoError(t, d.Close()) }()
			w := newWorld(t, d)
			w.set("/docs", doc("seed", "/docs/a", "/docs/b", "/docs/c", "/docs/lost"))
			for _, name := range []string{"a", "b", "c"} {
				w.set("/docs/"+name, doc(name))
			}
			w.set("/docs/lost", status(500))
			w.run()
			s, err := store.Open(t.Context(), w.dir)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			req, err := removal.Record(t.Context(), s, removal.Request{Job: Job, Provider: "p"}, w.time.Now())
			require.NoError(t, err)
			_, _, err = remove(t, d, &dyingStore{s, at}, "p", "test", w.time.Now())
			if at < 100 {
				require.ErrorIs(t, err, errKilled)
				_, _, err = remove(t, d, s, "p", "test", w.time.Now().Add(time.Hour))
			}
			require.NoError(t, err)
			e, err := removal.Find(t.Context(), s, req.ID)
			require.NoError(t, err)
			require.NotNil(t, e.Receipt)
			var sum removal.Removed
			for i, one := range e.Receipt.Tries {
				if i == 0 || one.Objects > 0 || one.Rows["docs_pages"] > 0 || one.DeadLetters > 0 || one.Chunks > 0 {
					require.Zero(t, sum.Objects, "one try has everything")
					sum = one
				}
				require.Empty(t, one.Error)
			}
			sum.At, sum.DeletionList = time.Time{}, ""
			sum.ObjectsSHA256, sum.PagesSHA256 = fmt.Sprint(len(sum.ObjectsSHA256)), fmt.Sprint(len(sum.PagesSHA256))
			if at == 100 {
				whole = sum
				require.Equal(t, []int64{5, 4, 1}, []int64{whole.Rows["docs_pages"], whole.Objects, whole.DeadLetters})
				require.Positive(t, whole.Chunks)
				return
			}
			require.Equal(t, whole, sum)
		})
	}
}
