package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

type row struct {
	ID   int64     `parquet:"id"`
	Name string    `parquet:"name,dict"`
	At   time.Time `parquet:"at,timestamp(microsecond)"`
	OK   bool      `parquet:"ok"`
	Part float64   `parquet:"part"`
	Some *int64    `parquet:"some,optional"`
	List []string  `parquet:"list,list"`
	Sub  []sub     `parquet:"sub,list"`
	N    int32     `parquet:"n"`
}

type sub struct {
	URL   string `parquet:"url"`
	Count *int64 `parquet:"count"`
}

const root = "tables/t/"

func opened(t testing.TB, s store.Store) *Table {
	t.Helper()
	table, err := Open(t.Context(), s, root, SchemaOf[row]())
	require.NoError(t, err)
	return table
}

func begun(t testing.TB, table *Table, app string) *Writer {
	t.Helper()
	w, _, err := table.Begin(t.Context(), app)
	require.NoError(t, err)
	return w
}

func commit(t testing.TB, w *Writer, c Change) int64 {
	t.Helper()
	version, err := w.Commit(t.Context(), c)
	require.NoError(t, err)
	return version
}

func paths(s Snapshot) (all []string) {
	for _, f := range s.Files {
		all = append(all, f.Path)
	}
	return all
}

func newest(t testing.TB, table *Table) Snapshot {
	t.Helper()
	s, err := table.Snapshot(t.Context())
	require.NoError(t, err)
	return s
}

func adds(paths ...string) (c Change) {
	c.Operation = "WRITE"
	for _, p := range paths {
		c.Add = append(c.Add, File{Path: p, Size: 10, Rows: 2, Tags: map[string]string{"run": "r"}})
	}
	return c
}

func TestCommit(t *testing.T) {
	s := storetest.NewMemory()
	_, err := Existing(t.Context(), s, root)
	require.ErrorIs(t, err, ErrNoTable)
	require.Empty(t, s.Keys())
	a := opened(t, s)
	w := begun(t, a, "lane-0")
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	first := File{Path: "x/a-1.parquet", Size: 10, Rows: 2, Modified: at, Tags: map[string]string{"run": "r<1>"}}
	require.EqualValues(t, 2, commit(t, w, Change{Add: []File{first}}))
	b, err := Existing(t.Context(), s, root)
	require.NoError(t, err)
	for _, table := range []*Table{a, b} {
		got := newest(t, table)
		assert.Equal(t, []File{first}, got.Files)
		assert.EqualValues(t, 2, got.Version)
		assert.WithinDuration(t, time.Now(), got.At, time.Minute)
		assert.Equal(t, map[string]int64{"lane-0": 1}, got.Epochs)
	}
	require.EqualValues(t, 3, commit(t, begun(t, b, "lane-1"), adds("b"))-1)
	require.Equal(t, []string{"b", "x/a-1.parquet"}, paths(newest(t, a)))
	require.EqualValues(t, 5, commit(t, w, Change{Add: adds("c").Add, Remove: []string{"b"}}))
	require.Equal(t, []string{"c", "x/a-1.parquet"}, paths(newest(t, b)))

	old, err := b.At(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "x/a-1.parquet"}, paths(old))
	for _, version := range []int64{-1, 6} {
		_, err = b.At(t.Context(), version)
		require.ErrorIs(t, err, ErrVersion)
	}
	require.Len(t, s.Keys(), 6, "an entry each")
}

func TestBadPath(t *testing.T) {
	w := begun(t, opened(t, storetest.NewMemory()), "w")
	for _, path := range []string{"", "_x", "/x", "a//b", "a b", "a%20", "a?", "..", "a/../b", "é", "a\n"} {
		_, err := w.Commit(t.Context(), adds(path))
		require.ErrorContains(t, err, "the path", "%q", path)
	}
}

// A change of a writer that another one of its name has followed is never in the table.
func TestTakenOver(t *testing.T) {
	s := storetest.NewMemory()
	a, b := opened(t, s), opened(t, s)
	old, other := begun(t, a, "lane"), begun(t, a, "other")
	commit(t, old, adds("a"))
	w, seen, err := b.Begin(t.Context(), "lane")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, paths(seen))
	_, err = old.Commit(t.Context(), adds("late"))
	require.ErrorIs(t, err, ErrTakenOver)
	commit(t, w, adds("b"))
	commit(t, other, adds("c"))
	require.Equal(t, []string{"a", "b", "c"}, paths(newest(t, a)))
}

// Of two changes that remove one file, one is committed, also in one entry.
func TestConflict(t *testing.T) {
	for _, shared := range []bool{true, false} {
		s := storetest.NewMemory()
		a := opened(t, s)
		b := a
		if !shared {
			b = opened(t, s)
		}
		one, two, three := begun(t, a, "1"), begun(t, b, "2"), begun(t, b, "3")
		commit(t, one, adds("a", "b"))
		newest(t, b)
		a.turn <- struct{}{} // so that all wait
		var errs [3]error
		var group sync.WaitGroup
		for i, c := range []Change{{Add: adds("new1").Add, Remove: []string{"a"}}, {Add: adds("new2").Add, Remove: []string{"a"}}, {Add: adds("c").Add, Remove: []string{"b"}}} {
			group.Go(func() { _, errs[i] = []*Writer{one, two, three}[i].Commit(t.Context(), c) })
		}
		if shared {
			require.Eventually(t, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.queue) == 3 }, time.Minute, time.Millisecond)
		}
		<-a.turn
		group.Wait()
		require.NoError(t, errs[2])
		require.Condition(t, func() bool { return (errs[0] == nil) != (errs[1] == nil) })
		require.ErrorIs(t, errors.Join(errs[0], errs[1]), ErrConflict)
		require.ErrorContains(t, errors.Join(errs[0], errs[1]), "a: another")
		want := []string{"c", "new1"}
		if errs[0] != nil {
			want[1] = "new2"
		}
		require.Equal(t, want, paths(newest(t, a)))
		if shared {
			require.EqualValues(t, 5, newest(t, a).Version, "the entry is shared")
		}
	}
}

// An answer that is lost, and a commit that is repeated, double nothing.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		a := opened(t, s)
		calls := 0
		s.Ghost = func(op, key string) error {
			if calls++; op == "create" && calls%2 == 1 {
				return context.DeadlineExceeded
			}
			return nil
		}
		w := begun(t, a, "w")
		require.EqualValues(t, 2, commit(t, w, adds("a")))
		require.Equal(t, 2, calls)

		broken := errors.New("broken")
		s.Ghost = func(string, string) error { return broken }
		_, err := w.Commit(t.Context(), adds("b"))
		require.ErrorIs(t, err, broken)
		s.Ghost = nil
		commit(t, begun(t, opened(t, s), "optimize"), Change{Add: adds("packed").Add, Remove: []string{"a", "b"}, Rewrite: true})
		commit(t, w, adds("b"))
		require.Equal(t, []string{"packed"}, paths(newest(t, a)), "it was committed, and is in another file since")
	})
}

// The newest columns are in the table, and those of another type are refused.
func TestSchema(t *testing.T) {
	type old struct {
		ID  int64 `parquet:"id"`
		Sub []struct {
			URL string `parquet:"url"`
		} `parquet:"sub,list"`
		Gone string `parquet:"gone"`
	}
	s := storetest.NewMemory()
	first, err := Open(t.Context(), s, root, SchemaOf[old]())
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"struct","fields":[
		{"name":"id","type":"long","nullable":true,"metadata":{}},
		{"name":"sub","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"url","type":"string","nullable":true,"metadata":{}}]},"containsNull":true},"nullable":true,"metadata":{}},
		{"name":"gone","type":"string","nullable":true,"metadata":{}}]}`, first.current.Load().meta.Schema)
	id := first.current.Load().meta.ID
	table := opened(t, s)
	var names []string
	for _, f := range strings.Split(table.current.Load().meta.Schema, `"name":"`)[1:] {
		name, _, _ := strings.Cut(f, `"`)
		names = append(names, name)
	}
	require.Equal(t, []string{"id", "sub", "url", "count", "gone", "name", "at", "ok", "part", "some", "list", "n"}, names)
	require.Equal(t, id, table.current.Load().meta.ID)
	require.EqualValues(t, 1, newest(t, opened(t, s)).Version)
	require.EqualValues(t, 1, newest(t, first).Version)
	_, err = Open(t.Context(), s, root, SchemaOf[struct {
		ID string `parquet:"id"`
	}]())
	require.ErrorContains(t, err, "column .id is of type long")
	require.Panics(t, func() {
		SchemaOf[struct {
			At time.Time `parquet:"at,timestamp(millisecond)"`
		}]()
	})
	require.Panics(t, func() { SchemaOf[struct{ L []string }]() })
	require.Panics(t, func() { SchemaOf[struct{ L uint32 }]() })
}

// full takes no checkpoint.
type full struct{ *storetest.Memory }

func (s full) Put(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if strings.HasSuffix(key, ".checkpoint.parquet") {
		return errors.New("the disk is full")
	}
	return s.Memory.Put(ctx, key, body, o)
}

// A checkpoint that cannot be written stops no commit, and is no secret.
func TestCheckpointFails(t *testing.T) {
	table := opened(t, full{storetest.NewMemory()})
	var warned []string
	table.Warn = func(err error) { warned = append(warned, err.Error()) }
	w := begun(t, table, "w")
	for i := 2; i <= 101; i++ {
		require.EqualValues(t, i, commit(t, w, adds(fmt.Sprint("f", i))))
	}
	require.Len(t, warned, 1)
	require.Contains(t, warned[0], "writing the checkpoint of version 100: ")
	require.Contains(t, warned[0], "the disk is full")
}

// A table is the same from a checkpoint, without it, and for one who followed.
func TestCheckpoint(t *testing.T) {
	s := storetest.NewMemory()
	a := opened(t, s)
	w := begun(t, a, "w")
	begun(t, a, "other")
	for i := 3; i <= 250; i++ {
		c := adds(fmt.Sprint("f", i))
		if i%2 == 0 {
			c.Remove = []string{fmt.Sprint("f", i-1)}
		}
		require.EqualValues(t, i, commit(t, w, c))
	}
	want := newest(t, a)
	require.Len(t, want.Files, 124)
	same := func(opens int) {
		t.Helper()
		s.Opens = 0
		b, err := Existing(t.Context(), s, root)
		require.NoError(t, err)
		require.Equal(t, want, newest(t, b))
		require.True(t, reflect.DeepEqual(a.current.Load().removed, b.current.Load().removed))
		require.LessOrEqual(t, s.Opens, opens)
		for _, version := range []int64{0, 99, 100, 101, 200, 249} {
			_, err := b.At(t.Context(), version)
			require.NoError(t, err)
		}
	}
	same(75)
	delete(s.M, a.checkpointKey(200))
	same(175)
	delete(s.M, a.hintKey())
	same(175)
	delete(s.M, a.checkpointKey(100))
	same(300)
	delete(s.M, a.entryKey(0))
	_, err := Existing(t.Context(), s, root)
	require.ErrorIs(t, err, ErrVersion)
}

// slowDown is what S3 says to too many calls.
type slowDown struct{}

func (slowDown) Error() string     { return "please reduce your request rate" }
func (slowDown) ErrorCode() string { return "SlowDown" }

// slow is a store whose calls take time and are counted. Each call fails with a chance.
type slow struct {
	store.Store
	takes    time.Duration
	throttle float64
	calls    *atomic.Int64
}

func (s slow) call() error {
	s.calls.Add(1)
	time.Sleep(s.takes/2 + rand.N(s.takes))
	if rand.Float64() < s.throttle {
		return slowDown{}
	}
	return nil
}

func (s slow) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := s.call(); err != nil {
		return nil, err
	}
	return s.Store.Open(ctx, key)
}

func (s slow) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if err := s.call(); err != nil {
		return err
	}
	return s.Store.PutIfAbsent(ctx, key, body, o)
}

// Many lanes of several processes commit as often as they should, with few calls.
func TestManyLanes(t *testing.T) {
	for _, throttle := range []float64{0, 0.2} {
		synctest.Test(t, func(t *testing.T) {
			const processes, lanes, rounds, every = 8, 32, 10, 30 * time.Second
			memory, calls := storetest.NewMemory(), &atomic.Int64{}
			var group sync.WaitGroup
			var slowest atomic.Int64
			for p := range processes {
				table := opened(t, slow{memory, 100 * time.Millisecond, throttle, calls})
				for l := range lanes {
					group.Go(func() {
						name := fmt.Sprintf("lane-%d", p*lanes+l)
						w, _, err := table.Begin(t.Context(), name)
						assert.NoError(t, err)
						for round := range rounds {
							time.Sleep(every/2 + rand.N(every))
							began := time.Now()
							_, err := w.Commit(t.Context(), adds(fmt.Sprintf("%s-%d", name, round)))
							assert.NoError(t, err)
							slowest.Store(max(slowest.Load(), int64(time.Since(began))))
						}
					})
				}
			}
			group.Wait()
			all := newest(t, opened(t, memory))
			require.Equal(t, processes*lanes*rounds, len(all.Files))
			commits := float64(processes * lanes * (rounds + 1))
			t.Logf("throttled %v: %d entries, %.2f calls a commit, slowest %s", throttle, all.Version, float64(calls.Load())/commits, time.Duration(slowest.Load()))
			require.Less(t, float64(calls.Load())/commits, 4.5)
			require.Less(t, time.Duration(slowest.Load()), 2*every)
		})
	}
}

// What is not an entry is an error that names the key.
func TestDamaged(t *testing.T) {
	entry := `{"commitInfo":{"timestamp":1}}` + "\n"
	for name, c := range map[string]struct{ key, content, says string }{
		"not JSON":  {"00000000000000000001.json", "x", "a line is no action"},
		"cut":       {"00000000000000000001.json", entry + `{"add":{"path":`, "a line is no action"},
		"empty":     {"00000000000000000001.json", "", "it is empty"},
		"blank":     {"00000000000000000001.json", "\n \n", "it is empty"},
		"upwards":   {"00000000000000000001.json", `{"add":{"path":"../x"}}`, "not a path within the table"},
		"encoded":   {"00000000000000000001.json", `{"remove":{"path":"%2e%2e/x"}}`, "not a path within the table"},
		"elsewhere": {"00000000000000000001.json", `{"add":{"path":"s3://other/x"}}`, "not a path within the table"},
		"no path":   {"00000000000000000001.json", `{"add":{}}`, "not a path within the table"},
		"newer":     {"00000000000000000001.json", `{"protocol":{"minReaderVersion":3,"minWriterVersion":7}}`, "another program has upgraded"},
		"epoch":     {"00000000000000000001.json", `{"txn":{"appId":"w","version":9223372036854775807}}`, "epoch is 9223372036854775807"},
		"hint":      {"_last_checkpoint", "{", "remove it"},
	} {
		s := storetest.NewMemory()
		opened(t, s)
		key := root + "_delta_log/" + c.key
		s.M[key] = c.content
		_, err := Existing(t.Context(), s, root)
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, key, name)
		require.ErrorContains(t, err, c.says, name)
		_, err = Open(t.Context(), s, root, SchemaOf[row]())
		require.ErrorIs(t, err, ErrDamaged, name)
	}
	s := storetest.NewMemory()
	table := opened(t, s)
	s.M[table.hintKey()], s.M[table.checkpointKey(0)] = `{"version":0}`, "PAR1"
	_, err := Existing(t.Context(), s, root)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, table.checkpointKey(0))
	s.M[table.entryKey(1)] = `{"add":{"path":"a%20b","size":1,"modificationTime":5}}` // of another writer
	delete(s.M, table.hintKey())
	delete(s.M, table.checkpointKey(0))
	require.Equal(t, []string{"a b"}, paths(newest(t, table)))
}

// A call that ends while it writes for others leaves them to the next one.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := opened(t, storetest.NewMemory())
		first, second := begun(t, a, "1"), begun(t, a, "2")
		a.pace = 4 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		var errs [2]error
		var group sync.WaitGroup
		group.Go(func() { _, errs[0] = first.Commit(ctx, adds("a")) })
		synctest.Wait()
		group.Go(func() { _, errs[1] = second.Commit(t.Context(), adds("b")) })
		synctest.Wait()
		cancel()
		group.Wait()
		require.ErrorIs(t, errs[0], context.Canceled)
		require.NoError(t, errs[1])
		require.Equal(t, []string{"b"}, paths(newest(t, a)))
		_, err := second.Commit(ctx, adds("c"))
		require.ErrorIs(t, err, context.Canceled)
	})
}
