package segment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

const root = "packed/seed/"

func newStore(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func mustOpen(t *testing.T, s store.Store, n, of int) (*Log, []Commit) {
	t.Helper()
	x, err := List(t.Context(), s, root)
	require.NoError(t, err)
	var commits []Commit
	l, err := x.Open(t.Context(), n, of, "run", func(c Commit) { commits = append(commits, c) })
	require.NoError(t, err)
	return l, commits
}

func done(names ...string) []Done {
	return []Done{{Country: "sg", Category: "news", Date: "2026-01-28", Names: names}}
}

func mustCommit(t *testing.T, l *Log, name string) Commit {
	t.Helper()
	c, err := l.Commit(t.Context(), Commit{Done: done(name)}, Part{".warc.gz", []byte("evidence of " + name), 2}, Part{".parquet", []byte("rows of " + name), 1})
	require.NoError(t, err)
	return c
}

func keys(t *testing.T, s store.Store) (all []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		all = append(all, o.Key)
	}
	return all
}

func names(commits []Commit) (all []string) {
	for _, c := range commits {
		for _, d := range c.Done {
			all = append(all, d.Names...)
		}
	}
	return all
}

func listed(t *testing.T, s store.Store) []string {
	t.Helper()
	x, err := List(t.Context(), s, root)
	require.NoError(t, err)
	var all []Commit
	for c, err := range x.Commits(t.Context()) {
		require.NoError(t, err)
		all = append(all, c)
	}
	return names(all)
}

func TestCommits(t *testing.T) {
	s := newStore(t)
	l, before := mustOpen(t, s, 0, 1)
	require.Empty(t, before)
	a := mustCommit(t, l, "a.sg")
	b := mustCommit(t, l, "b.sg")
	require.Equal(t, root+"lane-00000-of-00001/00000001.json", a.Key)
	require.Equal(t, []string{"a.sg", "b.sg"}, listed(t, s))

	_, again := mustOpen(t, s, 0, 1)
	require.Equal(t, []Commit{a, b}, again)
	f, ok := again[1].File(".parquet")
	require.True(t, ok)
	require.EqualValues(t, 1, f.Count)
	body, err := Read(t.Context(), s, f)
	require.NoError(t, err)
	require.Equal(t, "rows of b.sg", string(body))
	require.NoError(t, store.Write(t.Context(), s, f.Key, []byte("rows of x.sg"), store.PutOptions{}))
	_, err = Read(t.Context(), s, f)
	require.ErrorContains(t, err, "not those that were committed")
	_, ok = again[1].File(".csv")
	require.False(t, ok)
}

// A lane resumes from the commits of all lanes with which it can share a host.
func TestOtherNumberOfLanes(t *testing.T) {
	s := newStore(t)
	for n := range 4 {
		l, _ := mustOpen(t, s, n, 4)
		mustCommit(t, l, fmt.Sprint(n, " of 4"))
	}
	for _, c := range []struct {
		n, of int
		want  []string
	}{
		{0, 1, []string{"0 of 4", "1 of 4", "2 of 4", "3 of 4"}},
		{1, 2, []string{"1 of 4", "3 of 4"}},
		{5, 8, []string{"1 of 4"}},
		{2, 6, []string{"0 of 4", "2 of 4"}},
		{2, 3, []string{"0 of 4", "1 of 4", "2 of 4", "3 of 4"}},
	} {
		_, commits := mustOpen(t, s, c.n, c.of)
		require.Equal(t, c.want, names(commits), "lane %d of %d", c.n, c.of)
	}
}

func TestWhatHasNoCommitIsSwept(t *testing.T) {
	s := newStore(t)
	l, _ := mustOpen(t, s, 0, 2)
	c := mustCommit(t, l, "a.sg")
	lost := root + "lane-00000-of-00002/00000002-X.warc.gz"
	other := root + "lane-00001-of-00002/00000002-X.warc.gz"
	for _, key := range []string{lost, other} {
		require.NoError(t, store.Write(t.Context(), s, key, []byte("lost"), store.PutOptions{}))
	}
	_, _ = mustOpen(t, s, 0, 2)
	all := keys(t, s)
	require.NotContains(t, all, lost)
	require.Subset(t, all, []string{c.Key, c.Files[0].Key, c.Files[1].Key, other})
	require.Len(t, all, 5) // with the newest begin
}

func TestAWriterThatLostItsLaneCannotCommit(t *testing.T) {
	s := newStore(t)
	stale, _ := mustOpen(t, s, 0, 1)
	mustCommit(t, stale, "a.sg")
	l, commits := mustOpen(t, s, 0, 1)
	require.Equal(t, []string{"a.sg"}, names(commits))
	_, err := stale.Commit(t.Context(), Commit{Done: done("b.sg")}, Part{".parquet", []byte("b"), 1})
	require.ErrorIs(t, err, ErrTakenOver)
	mustCommit(t, l, "b.sg")
	_, err = stale.Commit(t.Context(), Commit{Done: done("c.sg")}, Part{".parquet", []byte("c"), 1})
	require.ErrorIs(t, err, ErrTakenOver)
	require.Equal(t, []string{"a.sg", "b.sg"}, listed(t, s))

	// Not even at the number of an entry that is gone meanwhile.
	require.NoError(t, store.Remove(t.Context(), s, l.key(0)))
	require.NoError(t, store.Remove(t.Context(), s, l.key(1)))
	stale.next = 1
	_, err = stale.Commit(t.Context(), Commit{Done: done("d.sg")}, Part{".parquet", []byte("d"), 1})
	require.ErrorIs(t, err, ErrTakenOver)
	require.Equal(t, []string{"b.sg"}, listed(t, s))
	_, _ = mustOpen(t, s, 0, 1)
	require.Equal(t, []string{"b.sg"}, listed(t, s))
	_, err = s.Head(t.Context(), l.key(1))
	require.ErrorIs(t, err, store.ErrNotExist)
}

// However often a lane is opened, its folder has one begin. The number of a swept one is
// free, and still a process that lost the lane cannot use it.
func TestBeginsAreSwept(t *testing.T) {
	s := newStore(t)
	stale, _ := mustOpen(t, s, 0, 1)
	mustCommit(t, stale, "a.sg") // 1
	for range 5 {
		_, commits := mustOpen(t, s, 0, 1)
		require.Equal(t, []string{"a.sg"}, names(commits))
	}
	l, _ := mustOpen(t, s, 0, 1)
	require.Len(t, keys(t, s), 4)
	_, err := stale.Commit(t.Context(), Commit{Done: done("b.sg")}, Part{".parquet", []byte("b"), 1})
	require.ErrorIs(t, err, ErrTakenOver)
	_, err = s.Head(t.Context(), l.key(2)) // what stale wrote, where the second begin was
	require.NoError(t, err)
	require.Equal(t, []string{"a.sg"}, listed(t, s))
	mustCommit(t, l, "c.sg")
	_, commits := mustOpen(t, s, 0, 1)
	require.Equal(t, []string{"a.sg", "c.sg"}, names(commits))
	_, err = s.Head(t.Context(), l.key(2))
	require.ErrorIs(t, err, store.ErrNotExist)
}

// Logs of before begins named what they keep are read, and continued.
func TestBeginsThatKeepAll(t *testing.T) {
	s := newStore(t)
	dir := Lane(root, 0, 1)
	for name, text := range map[string]string{
		"00000000.json": `{"begin":true,"writer":"A","run_id":"1"}`,
		"00000001.json": `{"writer":"A","files":[{"key":"` + dir + `00000001-X.parquet"}],"done":[{"names":["a.sg"]}]}`,
		"00000002.json": `{"begin":true,"writer":"B","run_id":"2"}`,
		"00000003.json": `{"writer":"A","files":[{"key":"` + dir + `00000003-X.parquet"}],"done":[{"names":["late.sg"]}]}`,
		"00000004.json": `{"writer":"B","files":[{"key":"` + dir + `00000004-X.parquet"}],"done":[{"names":["b.sg"]}]}`,
	} {
		require.NoError(t, store.Write(t.Context(), s, dir+name, []byte(text), store.PutOptions{}))
	}
	require.Equal(t, []string{"a.sg", "b.sg"}, listed(t, s))
	l, commits := mustOpen(t, s, 0, 1)
	require.Equal(t, []string{"a.sg", "b.sg"}, names(commits))
	mustCommit(t, l, "c.sg")
	require.Equal(t, []string{"a.sg", "b.sg", "c.sg"}, listed(t, s))
	require.Len(t, keys(t, s), 6, "a begin, three commits, two files")
}

// faulty is a store whose writes of entries fail while fail is set, after they were
// done if late is set.
type faulty struct {
	store.Store
	fail, late bool
}

var errBroken = errors.New("broken")

func (f *faulty) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if f.fail && !f.late {
		return errBroken
	}
	err := f.Store.PutIfAbsent(ctx, key, body, o)
	if f.fail && err == nil {
		return errBroken
	}
	return err
}

// A commit whose answer was lost is valid, and does not look like that of another
// writer.
func TestUnknownEnd(t *testing.T) {
	for _, late := range []bool{false, true} {
		f := &faulty{Store: newStore(t), late: late}
		l, _ := mustOpen(t, f, 0, 1)
		f.fail = true
		_, err := l.Commit(t.Context(), Commit{Done: done("a.sg")}, Part{".parquet", []byte("first"), 1})
		require.ErrorIs(t, err, errBroken)
		f.fail = false
		_, err = l.Commit(t.Context(), Commit{Done: done("b.sg")}, Part{".parquet", []byte("second"), 1})
		require.NoError(t, err)
		want := []string{"b.sg"}
		if late {
			want = []string{"a.sg", "b.sg"}
		}
		_, commits := mustOpen(t, f, 0, 1)
		require.Equal(t, want, names(commits))
		for _, c := range commits {
			_, err := Read(t.Context(), f, c.Files[0])
			require.NoError(t, err)
		}
	}
}

// A merge that is killed anywhere neither loses nor doubles a result.
func TestReplaced(t *testing.T) {
	s := newStore(t)
	l, _ := mustOpen(t, s, 0, 1)
	a, b, kept := mustCommit(t, l, "a.sg"), mustCommit(t, l, "b.sg"), mustCommit(t, l, "kept.sg")
	_, err := l.Commit(t.Context(), Commit{Done: done("a.sg", "b.sg"), Replaces: []string{a.Key, b.Key}}, Part{".parquet", []byte("both"), 2})
	require.NoError(t, err)
	require.Equal(t, []string{"kept.sg", "a.sg", "b.sg"}, listed(t, s))
	require.NoError(t, l.Remove(t.Context(), a))
	require.Equal(t, []string{"kept.sg", "a.sg", "b.sg"}, listed(t, s))
	_, commits := mustOpen(t, s, 0, 1)
	require.Equal(t, []string{"kept.sg", "a.sg", "b.sg"}, names(commits))
	for _, gone := range []string{b.Key, b.Files[0].Key, b.Files[1].Key, a.Files[0].Key} {
		_, err := s.Head(t.Context(), gone)
		require.ErrorIs(t, err, store.ErrNotExist, gone)
	}
	_, err = Read(t.Context(), s, kept.Files[0])
	require.NoError(t, err)
}

// Of several processes that open a lane at once, one can commit.
func TestRace(t *testing.T) {
	s := newStore(t)
	const racers = 8
	opened := make(chan *Log, racers)
	failed := make(chan error, racers)
	for range racers {
		go func() {
			l, err := Open(context.Background(), s, Lane(root, 0, 1), "run", func(Commit) {})
			failed <- err
			opened <- l
		}()
	}
	won := 0
	var all []*Log
	for range racers {
		require.NoError(t, <-failed)
		all = append(all, <-opened)
	}
	for _, l := range all {
		_, err := l.Commit(t.Context(), Commit{Done: done("a.sg")}, Part{".parquet", []byte("a"), 1})
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, ErrTakenOver)
	}
	require.Equal(t, 1, won)
	require.Equal(t, []string{"a.sg"}, listed(t, s))
}

func TestNoCommit(t *testing.T) {
	for _, text := range []string{`{}`, `[]`, `{"writer":"A"}`, `{"writer":"A","files":[]}`, `null`, ``} {
		s := newStore(t)
		require.NoError(t, store.Write(t.Context(), s, root+"lane-00000-of-00001/00000000.json", []byte(text), store.PutOptions{}))
		_, err := Open(t.Context(), s, Lane(root, 0, 1), "run", func(Commit) {})
		require.ErrorIs(t, err, errEntry, text)
		require.ErrorContains(t, err, "00000000.json")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"writer":"A","begin":true}`))
	f.Add([]byte(`{"writer":"A","files":[{"key":"k","sha256":"00","size":1,"count":1}],"done":[{"country":"sg","names":["a.sg"]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode(b)
		require.True(t, err != nil || c.Writer != "", "a commit without a writer")
	})
}
