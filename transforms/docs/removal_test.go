package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/index"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
)

// A request to remove a provider is done by a purge. Nothing that its pages said can then
// be found in the database's files or in the store, and the receipt says what was removed,
// also where a first try could not empty the database's files.
func TestRemoval(t *testing.T) {
	t.Parallel()
	dsn := dbtest.SQLite(t)
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	w := newWorld(t, d)
	_, err = d.ExecContext(t.Context(), `PRAGMA secure_delete = 0`) // the free parts of the file keep what was deleted
	require.NoError(t, err)
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
		for _, suffix := range []string{"", "-wal"} {
			look(strings.TrimPrefix(dsn, "sqlite://") + suffix)
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
	require.Greater(t, len(found()), 20, "and the database")

	s, err := store.Open(t.Context(), w.dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	asked := w.time.Now()
	req, err := removal.Record(t.Context(), s, removal.Request{Job: Job, Provider: "p", By: "test", From: "legal@p.example", Note: "ticket\x00 7"}, asked)
	require.NoError(t, err)
	_, err = removal.Record(t.Context(), s, removal.Request{Job: Job, Provider: "another"}, asked)
	require.NoError(t, err)
	other, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	d.SetMaxOpenConns(1)
	_, err = d.ExecContext(t.Context(), `PRAGMA busy_timeout = 20`)
	require.NoError(t, err)
	reading, err := other.QueryContext(t.Context(), `SELECT key FROM pages`)
	require.NoError(t, err)
	require.True(t, reading.Next())
	_, receipts, err := Remove(t.Context(), d, s, "p", "test", asked.Add(time.Hour))
	require.ErrorIs(t, err, ErrNotErased)
	require.Empty(t, receipts)
	require.NoError(t, reading.Close())
	open, err := removal.OpenOf(t.Context(), s, Job, "p")
	require.NoError(t, err)
	require.Len(t, open, 1, "the request stays open")
	require.Equal(t, []bool{false, true}, []bool{open[0].Late(asked.Add(23 * time.Hour)), open[0].Late(asked.Add(24*time.Hour + time.Second))})

	_, receipts, err = Remove(t.Context(), d, s, "p", "test", asked.Add(2*time.Hour))
	require.NoError(t, err)
	require.Empty(t, found())
	require.Len(t, receipts, 1)
	e, err := removal.Find(t.Context(), s, req.ID)
	require.NoError(t, err)
	require.Equal(t, receipts[0], *e.Receipt)
	r := *e.Receipt
	require.Equal(t, []any{"p", "legal@p.example", "ticket 7", true, true, "sqlite", "test"}, []any{r.Request.Provider, r.Request.From, r.Request.Note, r.InTime, r.Erased, r.Database, r.By})
	require.Equal(t, req.At.Add(48*time.Hour), r.Request.Due)
	require.Len(t, r.Tries, 2)
	require.Contains(t, r.Tries[0].Error, "may still be in free parts")
	require.Equal(t, []int64{21, 20, 1}, []int64{r.Tries[0].Rows["pages"], r.Tries[0].Objects, r.Tries[0].DeadLetters})
	require.Len(t, r.Tries[0].PagesSHA256+r.Tries[0].ObjectsSHA256, 128)
	require.Equal(t, []any{int64(0), int64(0), ""}, []any{r.Tries[1].Rows["pages"], r.Tries[1].Objects, r.Tries[1].Error})
	for table, n := range r.Left {
		require.Zero(t, n, table)
	}
	require.Contains(t, r.Left, "chunks")
	require.Contains(t, r.Left, index.Table)
	require.EqualValues(t, 1, r.Tries[0].Rows[index.Table])
	indexed, err := db.Texts(t.Context(), d, `SELECT provider FROM search_chunks`)
	require.NoError(t, err)
	require.Equal(t, []string{"another"}, indexed)
	open, err = removal.OpenOf(t.Context(), s, Job, "")
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.Equal(t, "another", open[0].Provider)
}
