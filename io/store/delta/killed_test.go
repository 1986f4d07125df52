package delta

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
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

var errKilled = errors.New("killed")

// mortal is the store of a process that is killed at one of its calls: before it does something, or before the answer comes.
type mortal struct {
	*storetest.Memory
	left *atomic.Int64
	late bool
}

func (m mortal) call(do func() error) error {
	time.Sleep(time.Millisecond)
	left := m.left.Add(-1)
	if left < 0 && (left < -1 || !m.late) {
		return errKilled
	}
	err := do()
	if left < 0 {
		return errKilled
	}
	if left%17 == 3 { // the answer is lost
		return context.DeadlineExceeded
	}
	return err
}

func (m mortal) Open(ctx context.Context, key string) (r io.ReadCloser, err error) {
	err = m.call(func() error { r, err = m.Memory.Open(ctx, key); return err })
	return r, err
}

func (m mortal) Put(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	return m.call(func() error { return m.Memory.Put(ctx, key, body, o) })
}

func (m mortal) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	return m.call(func() error { return m.Memory.PutIfAbsent(ctx, key, body, o) })
}

// process is one of those that write rows, a file for each two, and rewrite files.
type process struct {
	s     store.Store
	table *Table
}

func started(ctx context.Context, s store.Store) (p process, err error) {
	p.s = s
	p.table, err = Open(ctx, s, root, SchemaOf[row]())
	return p, err
}

func (p process) file(ctx context.Context, rows ...string) (File, error) {
	f := File{Path: rand.Text(), Rows: int64(len(rows)), Tags: map[string]string{"rows": strings.Join(rows, " ")}}
	return f, store.Write(ctx, p.s, root+f.Path, []byte("x"), store.PutOptions{})
}

func (p process) commit(ctx context.Context, w *Writer, c Change) error {
	for {
		_, err := w.Commit(ctx, c)
		if !store.Retryable(err) {
			return err
		}
	}
}

const pairs = 12

// lane writes the rows of a lane that are not in the table. A commit has two files.
func (p process) lane(ctx context.Context, name string) error {
	w, snap, err := p.table.Begin(ctx, name)
	if err != nil {
		return err
	}
	done := rowsOf(snap)
	for i := range pairs {
		a, b := fmt.Sprintf("%s:%d:a", name, i), fmt.Sprintf("%s:%d:b", name, i)
		if done[a] > 0 {
			continue
		}
		var c Change
		for _, r := range []string{a, b} {
			f, err := p.file(ctx, r)
			if err != nil {
				return err
			}
			c.Add = append(c.Add, f)
		}
		if err := p.commit(ctx, w, c); err != nil {
			return err
		}
	}
	return nil
}

// optimize merges files, three at a time.
func (p process) optimize(ctx context.Context, name string, times int) error {
	w, _, err := p.table.Begin(ctx, name)
	for range times {
		if err != nil {
			return err
		}
		var snap Snapshot
		if snap, err = p.table.Snapshot(ctx); err != nil {
			return err
		}
		var rows []string
		c := Change{Rewrite: true}
		for _, f := range snap.Files[:min(3, len(snap.Files))] {
			rows = append(rows, f.Tags["rows"])
			c.Remove = append(c.Remove, f.Path)
		}
		f, err := p.file(ctx, rows...)
		if err != nil {
			return err
		}
		c.Add = []File{f}
		if err := p.commit(ctx, w, c); err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return nil
}

func rowsOf(s Snapshot) map[string]int {
	all := map[string]int{}
	for _, f := range s.Files {
		for _, r := range strings.Fields(f.Tags["rows"]) {
			all[r]++
		}
	}
	return all
}

// Two processes with two lanes each, each killed at another call, lose nothing and double nothing, while both merge files and a
// reader looks on.
func TestKilledAnywhere(t *testing.T) {
	for n := range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := storetest.NewMemory()
			killed := func(err error) {
				assert.True(t, err == nil || errors.Is(err, errKilled) || errors.Is(err, ErrTakenOver), "%v", err)
			}
			var group sync.WaitGroup
			for i := range 2 {
				group.Go(func() {
					left := &atomic.Int64{}
					left.Store(int64(n*(i+1)) % 130)
					p, err := started(t.Context(), mortal{s, left, n%2 == 0})
					killed(err)
					if err != nil {
						return
					}
					for l := range 2 {
						group.Go(func() { killed(p.lane(t.Context(), fmt.Sprintf("lane-%d", i*2+l))) })
					}
					group.Go(func() { killed(p.optimize(t.Context(), fmt.Sprintf("optimize-%d", i), 5)) })
				})
			}
			done := make(chan struct{})
			group.Go(func() {
				reader := opened(t, s)
				for {
					once(t, newest(t, reader))
					select {
					case <-done:
						return
					case <-time.After(3 * time.Millisecond):
					}
				}
			})
			time.Sleep(50 * time.Millisecond)
			for l := range 4 { // some of them take over from a process at work
				p, err := started(t.Context(), s)
				require.NoError(t, err)
				for err = ErrTakenOver; errors.Is(err, ErrTakenOver); {
					err = p.lane(t.Context(), fmt.Sprintf("lane-%d", l))
				}
				require.NoError(t, err)
			}
			close(done)
			group.Wait()
			last := newest(t, opened(t, s))
			once(t, last)
			require.Len(t, rowsOf(last), 4*2*pairs, "killed at %d", n)
		})
	}
}

// once checks that no row is there twice, and that each commit is there as a whole.
func once(t *testing.T, s Snapshot) {
	t.Helper()
	rows := rowsOf(s)
	for r, count := range rows {
		if count != 1 || rows[r[:len(r)-1]+"a"] != rows[r[:len(r)-1]+"b"] {
			t.Errorf("version %d: %d of %s, in %v", s.Version, count, r, rows)
		}
	}
}

// Wherever an older writer is when another one begins: what it was told to be committed is in the new one's snapshot, and
// nothing else comes later.
func TestTakenOverAnywhere(t *testing.T) {
	for n := 0; ; n++ {
		s := storetest.NewMemory()
		old, young := opened(t, s), opened(t, s)
		calls := 0
		var seen Snapshot
		s.Hook = func(string, string, bool) {
			if calls++; calls == n+1 {
				hook := s.Hook
				s.Hook = func(string, string, bool) {}
				var err error
				_, seen, err = young.Begin(t.Context(), "lane")
				require.NoError(t, err)
				s.Hook = hook
			}
		}
		w, _, err := old.Begin(t.Context(), "lane")
		require.NoError(t, err)
		var told []string
		for i := range 4 {
			name := fmt.Sprint("f", i)
			if _, err := w.Commit(t.Context(), adds(name)); err == nil {
				told = append(told, name)
			} else {
				require.ErrorIs(t, err, ErrTakenOver)
			}
		}
		if calls <= n {
			require.Greater(t, n, 9)
			return
		}
		if n > 1 { // else the other one has begun before it
			require.Equal(t, told, paths(seen), "at call %d", n)
			require.Less(t, len(told), 5)
		}
		s.Hook = func(string, string, bool) {}
		require.Equal(t, told, paths(newest(t, opened(t, s))), "at call %d", n)
	}
}

// headed is a store whose objects can be looked at.
type headed struct{ *storetest.Memory }

func newHeaded() headed { return headed{storetest.NewMemory()} }

func (d headed) Head(_ context.Context, key string) (store.Object, error) {
	if _, ok := d.M[key]; !ok {
		return store.Object{}, store.ErrNotExist
	}
	return store.Object{Key: key}, nil
}

func (d headed) files(t *testing.T, names ...string) {
	for _, name := range names {
		require.NoError(t, d.Put(t.Context(), root+name, strings.NewReader("x"), store.PutOptions{}))
	}
}

// A file that went is named for as long as it is kept, and then forgotten.
func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHeaded()
		a := opened(t, s)
		w := begun(t, a, "w")
		s.files(t, "b", "c")
		commit(t, w, adds("a", "b"))
		time.Sleep(2 * time.Hour)
		commit(t, w, Change{Add: adds("c").Add, Remove: []string{"a"}})
		time.Sleep(2 * time.Hour)
		named := func(keep time.Duration) (all []string) {
			t.Helper()
			files, err := opened(t, s).Named(t.Context(), keep)
			require.NoError(t, err)
			for _, f := range files {
				all = append(all, f.Path)
			}
			slices.Sort(all)
			return all
		}
		require.Equal(t, []string{"a", "b", "c"}, named(3*time.Hour))
		require.Equal(t, []string{"b", "c"}, named(time.Hour))
		require.Equal(t, []string{"b", "c"}, named(0))
		_, err := a.Named(t.Context(), 8*24*time.Hour)
		require.ErrorContains(t, err, "cannot be kept")
		_, err = a.Restore(t.Context(), 2)
		require.ErrorIs(t, err, ErrGone)
		require.ErrorContains(t, err, root+"a:")
		for range 2 {
			require.Contains(t, a.current.Load().removed, "a")
			time.Sleep(4 * 24 * time.Hour)
			commit(t, w, adds(rand.Text()))
		}
		newest(t, a)
		commit(t, w, adds("last"))
		require.NotContains(t, a.current.Load().removed, "a", "it is forgotten")
	})
}

// The table goes back by one entry, and forward again.
func TestRestore(t *testing.T) {
	s := newHeaded()
	a := opened(t, s)
	w := begun(t, a, "w")
	s.files(t, "a", "b", "c")
	commit(t, w, adds("a"))
	two := commit(t, w, adds("b"))
	three := commit(t, w, Change{Add: adds("c").Add, Remove: []string{"a"}})
	before := newest(t, a)
	for _, version := range []int64{two, three, 0, three} {
		want, err := a.At(t.Context(), version)
		require.NoError(t, err)
		got, err := opened(t, s).Restore(t.Context(), version)
		require.NoError(t, err)
		last := newest(t, a)
		require.Equal(t, want.Files, last.Files)
		for _, f := range last.Files {
			require.NotContains(t, a.current.Load().removed, f.Path)
		}
		require.Equal(t, got, last.Version)
	}
	same, err := a.Restore(t.Context(), three)
	require.NoError(t, err)
	require.Equal(t, before.Version+4, same, "nothing is to be done")
	commit(t, w, adds("d"))
	_, err = a.Restore(t.Context(), 99)
	require.ErrorIs(t, err, ErrVersion)
}

// A version is found by its time, and the log says what each one changed.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHeaded()
		a := opened(t, s)
		began := time.Now()
		w := begun(t, a, "w")
		for i := range 20 {
			time.Sleep(time.Hour)
			_, err := w.Commit(t.Context(), Change{Add: adds(fmt.Sprint("f", i)).Add, Operation: "WRITE", Info: map[string]string{"run": fmt.Sprint("r", i)}})
			require.NoError(t, err)
		}
		for _, hours := range []int{1, 7, 19, 20, 400} {
			got, err := a.AsOf(t.Context(), began.Add(time.Duration(hours)*time.Hour+time.Minute))
			require.NoError(t, err)
			require.Len(t, got.Files, min(hours, 20))
		}
		_, err := a.AsOf(t.Context(), began.Add(-time.Second))
		require.ErrorIs(t, err, ErrVersion)
		var notes []string
		for v, err := range a.History(t.Context()) {
			require.NoError(t, err)
			notes = append(notes, fmt.Sprint(v.Number, v.Changes, v.At.Sub(began).Truncate(time.Hour)))
		}
		require.Len(t, notes, 22)
		require.Equal(t, "21 [{WRITE map[run:r19]}] 20h0m0s", notes[0])
		require.Equal(t, "1 [{BEGIN map[]}] 0s", notes[20])
	})
}

// A process that was suspended while others continued and trimmed the log commits to the end of the log, wherever it was.
func TestSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, within := range []bool{false, true} {
			s := newHeaded()
			a, b := opened(t, s), opened(t, s)
			w := begun(t, a, "w")
			commit(t, w, adds("a"))
			away := func() {
				other := begun(t, b, "other")
				for i := range 250 {
					commit(t, other, adds(fmt.Sprint("o", i)))
				}
				require.NoError(t, b.Trim(t.Context(), 0))
				require.Contains(t, s.M, a.entryKey(3), "it is younger than a day")
				time.Sleep(48 * time.Hour)
				require.NoError(t, b.Trim(t.Context(), 0))
				require.NotContains(t, s.M, a.entryKey(3))
				require.NotContains(t, s.M, a.checkpointKey(100))
				require.Contains(t, s.M, a.entryKey(200))
			}
			if within {
				s.Hook = func(op, _ string, before bool) {
					if before && op == "create" {
						s.Hook = func(string, string, bool) {}
						away()
					}
				}
			} else {
				away()
			}
			require.Len(t, newest(t, a).Files, map[bool]int{false: 251, true: 1}[within])
			version := commit(t, w, adds("b"))
			require.EqualValues(t, 254, version)
			if !within {
				require.NotContains(t, s.M, a.entryKey(3), "an entry that nobody reads")
			}
			then, err := a.AsOf(t.Context(), time.Now())
			require.NoError(t, err)
			require.EqualValues(t, 254, then.Version)
			_, err = a.AsOf(t.Context(), time.Now().Add(-72*time.Hour))
			require.ErrorIs(t, err, ErrVersion)
			require.Len(t, newest(t, opened(t, s)).Files, 252)
			require.Equal(t, newest(t, opened(t, s)), newest(t, a))
			_, err = a.At(t.Context(), 150)
			require.ErrorIs(t, err, ErrVersion)
		}
	})
}
