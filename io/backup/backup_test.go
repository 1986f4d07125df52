package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
)

func folder(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	return s
}

func put(t *testing.T, s store.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		o := store.PutOptions{}
		if strings.HasSuffix(key, ".success") {
			o = store.PutOptions{ContentType: "text/x-mark", Metadata: map[string]string{"run": "r1"}}
		}
		require.NoError(t, s.Put(t.Context(), key, strings.NewReader("content of "+key), o))
	}
}

func take(t *testing.T, from, to store.Store, keep int) Snapshot {
	t.Helper()
	s, err := Take(t.Context(), Source{Store: from, Raw: "datasets/", Name: "here"}, to, keep, &Progress{})
	require.NoError(t, err)
	return s
}

func keys(t *testing.T, s store.Store, prefix string) []string {
	t.Helper()
	all, err := store.Keys(t.Context(), s, prefix)
	require.NoError(t, err)
	return all
}

const rawKey = "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"

// All objects come back with their content, type and metadata, but for those that say who is at work. A second snapshot copies
// what is new or changed, a third one by a backup that was cut off what is missing there.
func TestTakeAndRestore(t *testing.T) {
	from, to := folder(t), folder(t)
	put(t, from, rawKey, rawKey+".success", "processing/a/domain_metadata.json", "processing/a/domain_metadata.json.success",
		"dead-letters/seed/1.json", "demo", "runs/r1/state.json", "runs/r1/alive/p1", "lease/seed/000001", "begun/docs/u/p", "odd/ä ?#%=+")
	first := take(t, from, to, 0)
	assert.EqualValues(t, 8, first.Objects)
	assert.EqualValues(t, 9, first.Copied) // and the list
	put(t, from, "demo", "new")
	second := take(t, from, to, 0)
	assert.EqualValues(t, 9, second.Objects)
	assert.EqualValues(t, 2, second.Copied, "new, and the list: demo has the content that it had")

	into := folder(t)
	require.NoError(t, Restore(t.Context(), to, second, into, "", &Progress{}))
	assert.Equal(t, []string{rawKey, rawKey + ".success", "dead-letters/seed/1.json", "demo", "new", "odd/ä ?#%=+",
		"processing/a/domain_metadata.json", "processing/a/domain_metadata.json.success", "runs/r1/state.json"}, keys(t, into, ""))
	o, err := into.Head(t.Context(), rawKey+".success")
	require.NoError(t, err)
	assert.Equal(t, "text/x-mark", o.ContentType)
	assert.Equal(t, map[string]string{"run": "r1"}, o.Metadata)
	b, err := store.ReadAll(t.Context(), into, "odd/ä ?#%=+", 100)
	require.NoError(t, err)
	assert.Equal(t, "content of odd/ä ?#%=+", string(b))
	require.ErrorIs(t, Restore(t.Context(), to, second, into, "", &Progress{}), ErrNotEmpty)

	require.NoError(t, store.Remove(t.Context(), to, snapshotPrefix+first.ID+".json", snapshotPrefix+second.ID+".json", keys(t, to, dataPrefix)[0]))
	third := take(t, from, to, 0)
	assert.LessOrEqual(t, third.Copied, int64(2), "what was copied before the kill is there")
	_, err = Find(t.Context(), to, first.ID)
	require.ErrorIs(t, err, ErrNone)
}

// A place with other objects is refused, and nothing is written there.
func TestTakeRefuses(t *testing.T) {
	from, to := folder(t), folder(t)
	put(t, to, "photos/a.jpg")
	_, err := Take(t.Context(), Source{Store: from}, to, 0, &Progress{})
	require.ErrorIs(t, err, ErrOther)
	assert.Equal(t, []string{"photos/a.jpg"}, keys(t, to, ""))
}

// --keep removes older snapshots, and contents that only they have.
func TestPrune(t *testing.T) {
	from, to := folder(t), folder(t)
	put(t, from, "a", "b")
	take(t, from, to, 0)
	require.NoError(t, from.Delete(t.Context(), "a"))
	last := take(t, from, to, 1)
	all, err := All(t.Context(), to)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, last.ID, all[0].ID)
	assert.Len(t, keys(t, to, dataPrefix), 2, "b and the list")
	wrong, err := Check(t.Context(), to, &Progress{})
	require.NoError(t, errors.Join(append(wrong, err)...))
}

// --keep counts the snapshots of one store; what another store has in the same place stays, and a restore names which.
func TestTwoStores(t *testing.T) {
	one, two, to := folder(t), folder(t), folder(t)
	put(t, one, "a")
	put(t, two, "b")
	first := take(t, one, to, 1)
	for range 2 {
		_, err := Take(t.Context(), Source{Store: two, Raw: "datasets/", Name: "there"}, to, 1, &Progress{})
		require.NoError(t, err)
	}
	all, err := All(t.Context(), to)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, first.ID, all[0].ID)
	_, err = Find(t.Context(), to, "")
	require.ErrorIs(t, err, ErrSeveral)
	into := folder(t)
	require.NoError(t, Restore(t.Context(), to, first, into, "", &Progress{}))
	assert.Equal(t, []string{"a"}, keys(t, into, ""))
}

// A content that is not what was copied, or is missing, is found by Check, and never restored.
func TestDamage(t *testing.T) {
	from, to := folder(t), folder(t)
	put(t, from, "a", "b")
	s := take(t, from, to, 0)
	b, err := sum(func() (io.ReadCloser, error) { return from.Open(t.Context(), "b") })
	require.NoError(t, err)
	require.NoError(t, to.Put(t.Context(), b.key(), strings.NewReader("CONTENT of b"), store.PutOptions{}))
	wrong, err := Check(t.Context(), to, &Progress{})
	require.NoError(t, err)
	require.Len(t, wrong, 1)
	require.ErrorIs(t, wrong[0], errDamaged)
	into := folder(t)
	require.ErrorIs(t, Restore(t.Context(), to, s, into, "", &Progress{}), errDamaged)
	assert.NotContains(t, keys(t, into, ""), "b")

	require.NoError(t, to.Delete(t.Context(), b.key()))
	require.ErrorIs(t, Restore(t.Context(), to, s, into, "", &Progress{}), errDamaged)
	take(t, from, to, 0) // b is copied again
	require.NoError(t, Restore(t.Context(), to, s, into, "", &Progress{}), "the same call continues")
	assert.Equal(t, []string{"a", "b"}, keys(t, into, ""))
}

// hooked calls do when an object is opened.
type hooked struct {
	store.Store
	do func(key string)
}

func (h hooked) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	h.do(key)
	return h.Store.Open(ctx, key)
}

// While the store is copied a run writes results and then their mark: the snapshot has no mark whose results it lacks. When a
// compaction removes a commit, the snapshot has the new one.
func TestTakeOfALivingStore(t *testing.T) {
	from, to := folder(t), folder(t)
	commit := func(n string) string { return "tables/domains/_delta_log/" + n + ".json" }
	put(t, from, "a/first", commit("00000001"), "tables/domains/old.parquet", "processing/z/domain_metadata.json")
	var done atomic.Bool
	busy := hooked{from, func(key string) {
		if key != "a/first" || done.Swap(true) { // the marks have been listed
			return
		}
		put(t, from, "a/evidence", "processing/z/domain_metadata.json.success")
		put(t, from, "tables/domains/new.parquet", commit("00000002"))
		require.NoError(t, store.Remove(t.Context(), from, commit("00000001"), "tables/domains/old.parquet"))
	}}
	s, err := Take(t.Context(), Source{Store: busy, Raw: "datasets/"}, to, 0, &Progress{})
	require.NoError(t, err)
	into := folder(t)
	require.NoError(t, Restore(t.Context(), to, s, into, "", &Progress{}))
	assert.Equal(t, []string{"a/evidence", "a/first", "processing/z/domain_metadata.json", "processing/z/domain_metadata.json.success",
		commit("00000002"), "tables/domains/new.parquet"}, keys(t, into, ""))

	// Without a compaction the new mark waits for the next snapshot.
	done.Store(false)
	busy.do = func(key string) {
		if key == "a/third" && !done.Swap(true) {
			put(t, from, "a/second", "processing/y/domain_metadata.json.success")
		}
	}
	put(t, from, "a/third")
	s, err = Take(t.Context(), Source{Store: busy, Raw: "datasets/"}, to, 0, &Progress{})
	require.NoError(t, err)
	into = folder(t)
	require.NoError(t, Restore(t.Context(), to, s, into, "", &Progress{}))
	assert.NotContains(t, keys(t, into, ""), "processing/y/domain_metadata.json.success")
}

// A restore that was cut off after the database is finished by the same call; another database is refused.
func TestRestoreContinues(t *testing.T) {
	dir := t.TempDir()
	d, err := db.Open(t.Context(), "sqlite://"+filepath.Join(dir, "a.db"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	_, err = d.ExecContext(t.Context(), `CREATE TABLE t (x TEXT)`)
	require.NoError(t, err)
	from, to, into := folder(t), folder(t), folder(t)
	put(t, from, "a", "b")
	s, err := Take(t.Context(), Source{Store: from, Name: "here", DB: d}, to, 0, &Progress{})
	require.NoError(t, err)
	assert.Equal(t, "sqlite", s.Dialect)
	dsn := "sqlite://" + filepath.Join(dir, "b.db")
	ctx, kill := context.WithCancel(t.Context())
	err = Restore(ctx, hooked{to, func(key string) {
		if key == s.List.key() {
			kill()
		}
	}}, s, into, dsn, &Progress{})
	require.Error(t, err)
	assert.Equal(t, []string{RestoringKey}, keys(t, into, ""))
	require.ErrorIs(t, Restore(t.Context(), to, s, into, "sqlite://"+filepath.Join(dir, "c.db"), &Progress{}), ErrNotEmpty)
	require.NoError(t, Restore(t.Context(), to, s, into, dsn, &Progress{}))
	assert.Equal(t, []string{"a", "b"}, keys(t, into, ""))
	require.ErrorIs(t, Restore(t.Context(), to, s, folder(t), dsn, &Progress{}), ErrNotEmpty)
}

// A database that was there before is refused, also if the call is cut off and given again.
func TestRestoreLeavesOtherDatabase(t *testing.T) {
	dir := t.TempDir()
	d, err := db.Open(t.Context(), "sqlite://"+filepath.Join(dir, "a.db"))
	require.NoError(t, err)
	_, err = d.ExecContext(t.Context(), `CREATE TABLE t (x TEXT)`)
	require.NoError(t, err)
	from, to := folder(t), folder(t)
	s, err := Take(t.Context(), Source{Store: from, Name: "here", DB: d}, to, 0, &Progress{})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for _, file := range []string{"b.db", "b.db-wal", "b.db-shm", "b.db-journal"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte("other"), 0o600))
		dsn, into := "sqlite://"+filepath.Join(dir, "b.db"), folder(t)
		ctx, kill := context.WithCancel(t.Context())
		require.Error(t, Restore(ctx, hooked{to, func(key string) { kill() }}, s, into, dsn, &Progress{}), file)
		kill()
		require.ErrorIs(t, Restore(t.Context(), to, s, into, dsn, &Progress{}), ErrNotEmpty, file)
		assert.Empty(t, keys(t, into, ""), file)
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
	}
}
