package turns

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// process opens the file as another process does.
func process(t *testing.T, path string) *File {
	t.Helper()
	f, err := open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.now.file.Close()) })
	return f
}

func two(t *testing.T) (a, b *File) {
	path := filepath.Join(t.TempDir(), "folder", "turns")
	return process(t, path), process(t, path)
}

// forgetWaiting makes the time pass in which a process that found a turn taken has the next one.
func forgetWaiting(f *File) {
	for i := range f.now.buckets {
		for n := range f.now.buckets[i].sites {
			f.now.buckets[i].sites[n].waits = 0
		}
	}
}

func requireTimes(t *testing.T, want, got Times) {
	t.Helper()
	require.Equal(t, []string{want.Ended.UTC().String(), want.Next.UTC().String(), want.Paused.UTC().String()},
		[]string{got.Ended.UTC().String(), got.Next.UTC().String(), got.Paused.UTC().String()})
}

func TestTurns(t *testing.T) {
	a, b := two(t)
	known, ok := a.Take("example.org", noon)
	require.True(t, ok)
	requireTimes(t, Times{}, known)
	for _, f := range []*File{a, b} {
		_, ok = f.Take("example.org", noon)
		require.False(t, ok)
	}
	forgetWaiting(a)
	_, ok = b.Take("example.com", noon) // another site
	require.True(t, ok)

	gap := Times{Ended: after(1), Next: after(3)}
	a.Give("example.org", gap, 0)
	known, ok = b.Take("example.org", after(3))
	require.True(t, ok)
	requireTimes(t, gap, known)

	// What is told while another one has the turn is not lost, and nothing gets earlier.
	a.Tell("example.org", Times{Next: after(2), Paused: after(60)})
	requireTimes(t, Times{after(1), after(3), after(60)}, a.Look("example.org", after(3)))
	b.Give("example.org", Times{Ended: after(4), Next: after(6)}, 0)
	requireTimes(t, Times{after(4), after(6), after(60)}, a.Look("example.org", after(5)))

	// A clock that is set back makes nobody wait longer.
	requireTimes(t, Times{after(2), after(4), after(58)}, a.Look("example.org", after(2)))
	_, ok = a.Take("example.org", after(2))
	require.True(t, ok)
	a.Give("example.org", Times{}, 0)
	requireTimes(t, Times{after(2), after(4), after(58)}, b.Look("example.org", after(3)))
}

// The turn of a process that was killed is free at once, and what its request did is not
// known.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turns")
	if at := os.Getenv("TURNS_TEST"); at != "" {
		f, err := Open(at)
		require.NoError(t, err)
		f.Give("example.org", Times{Next: after(1)}, 0)
		_, ok := f.Take("example.org", noon)
		_, also := f.Take("example.com", noon)
		fmt.Println("taken", ok && also)
		select {}
	}
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "TURNS_TEST="+path)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "taken true\n", line)

	f := process(t, path)
	_, ok := f.Take("example.org", after(5))
	require.False(t, ok)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	known, ok := f.Take("example.org", after(5))
	require.True(t, ok)
	requireTimes(t, Times{Ended: after(5), Next: after(1)}, known)

	// A new process in the place of the killed one does not have its turns.
	require.Equal(t, uint32(0), uint32(process(t, path).now.me))
	for _, site := range []string{"example.org", "example.com"} {
		_, ok = f.Take(site, after(5))
		require.Equal(t, site == "example.com", ok)
	}
}

// A process that was stopped loses its turn, and does not take it from the next one when
// it continues.
func TestStopped(t *testing.T) {
	a, b := two(t)
	_, ok := a.Take("example.org", noon)
	require.True(t, ok)
	a.now.owners[uint32(a.now.me)].beat.Add(-(staleAfter + time.Second).Microseconds())
	known, ok := b.Take("example.org", after(20))
	require.True(t, ok)
	requireTimes(t, Times{Ended: after(20)}, known)
	a.Give("example.org", Times{Ended: after(21), Next: after(22)}, 0)
	_, ok = a.Take("example.org", after(22))
	require.False(t, ok)
	b.Give("example.org", Times{Ended: after(20), Next: after(21)}, 0)
	known, ok = a.Take("example.org", after(22))
	require.True(t, ok)
	requireTimes(t, Times{Ended: after(21), Next: after(22)}, known)
}

// A turn is not kept for ever by a process that does nothing with it.
func TestKept(t *testing.T) {
	a, b := two(t)
	_, ok := a.Take("example.org", noon)
	require.True(t, ok)
	s, free := a.now.find("example.org")
	s.taken -= heldFor.Microseconds() - time.Minute.Microseconds()
	free()
	_, ok = b.Take("example.org", noon)
	require.False(t, ok)
	s.taken -= time.Minute.Microseconds()
	known, ok := b.Take("example.org", after(1))
	require.True(t, ok)
	requireTimes(t, Times{Ended: after(1)}, known)
	a.Give("example.org", Times{}, 0)
	_, ok = a.Take("example.org", after(1))
	require.False(t, ok)
}

// A process that finds a turn taken has the next one, however often the others ask. It keeps
// nobody away when it does not ask again.
func TestNext(t *testing.T) {
	a, b := two(t)
	take := func(f *File) bool {
		_, ok := f.Take("example.org", noon)
		return ok
	}
	later := func(d time.Duration) {
		s, free := a.now.find("example.org")
		defer free()
		s.waits -= uint64(d.Microseconds()) * owners
	}
	require.True(t, take(a))
	for _, pair := range [][2]*File{{a, b}, {b, a}, {a, b}} {
		has, waits := pair[0], pair[1]
		require.False(t, take(waits))
		has.Give("example.org", Times{}, 0)
		require.False(t, take(has))
		require.True(t, take(waits))
	}
	require.False(t, take(a))
	b.Give("example.org", Times{}, 0)
	later(waitsFor - 50*time.Millisecond)
	require.False(t, take(b))
	later(50 * time.Millisecond)
	require.True(t, take(b))

	// With a longer gap than the others it cannot use its turn at once.
	b.Give("example.org", Times{}, longestWait)
	later(longestWait - time.Second)
	require.False(t, take(a))
	later(time.Second + waitsFor)
	require.True(t, take(a))
	a.Give("example.org", Times{}, longestWait+1)
	require.True(t, take(b))

	b.Give("example.org", Times{}, longestWait)
	require.False(t, take(a))
	b.now.owners[uint32(b.now.me)].beat.Add(-(staleAfter + time.Second).Microseconds()) // it was stopped
	require.True(t, take(a))
}

// A process that ended while it looked a site up keeps nobody from it.
func TestLeftLocked(t *testing.T) {
	a, _ := two(t)
	for i := range a.now.buckets {
		a.now.buckets[i].locked.Store(up() - 2*lockedFor.Microseconds())
	}
	_, ok := a.Take("example.org", noon)
	require.True(t, ok)
}

// With more sites than the file has places those are forgotten that may be asked first,
// and none whose request is in flight.
func TestForgotten(t *testing.T) {
	a, b := two(t)
	same := sameBucket(a, places+3)
	for i, name := range same[:places] {
		_, ok := a.Take(name, noon)
		require.True(t, ok)
		if i > 0 {
			a.Give(name, Times{Ended: after(i), Paused: after(100 - i)}, 0)
		}
	}
	_, ok := b.Take(same[places], noon)
	require.True(t, ok)
	_, ok = b.Take(same[0], noon)
	require.False(t, ok)
	requireTimes(t, Times{after(places - 2), time.Time{}, after(102 - places)}, b.Look(same[places-2], after(50)))
	requireTimes(t, Times{}, b.Look(same[places-1], after(50)))

	// All in flight: the next has its turn without the file.
	for _, name := range same[1 : places-1] {
		_, ok := a.Take(name, noon)
		require.True(t, ok)
	}
	for _, f := range []*File{a, b} {
		_, ok = f.Take(same[places+1], noon)
		require.True(t, ok)
		f.Tell(same[places+1], Times{Ended: noon})
		requireTimes(t, Times{}, f.Look(same[places+1], noon))
		f.Give(same[places+1], Times{Ended: noon}, 0)
	}
	a.Give(same[0], Times{}, 0)
	_, ok = b.Take(same[places+2], noon)
	require.True(t, ok)
	_, ok = a.Take(same[places+2], noon)
	require.False(t, ok)
}

// sameBucket returns names of sites that are in one bucket.
func sameBucket(f *File, n int) (names []string) {
	_, free := f.now.find("site 0")
	free()
	holds := func() (at int) {
		for i := range f.now.buckets {
			for _, s := range f.now.buckets[i].sites {
				if s.key != 0 {
					at = i
					f.now.buckets[i].sites = [places]site{}
				}
			}
		}
		return at
	}
	want := holds()
	names = []string{"site 0"}
	for i := 1; len(names) < n; i++ {
		name := fmt.Sprint("site ", i)
		_, free := f.now.find(name)
		free()
		if b := &f.now.buckets[want]; b.sites[0].key != 0 {
			b.sites[0] = site{}
			names = append(names, name)
		}
	}
	for i := range f.now.buckets {
		f.now.buckets[i].sites = [places]site{}
	}
	return names
}

// Of many goroutines of two processes one has the turn at a time.
func TestOneAtATime(t *testing.T) {
	a, b := two(t)
	var at, turns [5]atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		f := []*File{a, b}[i%2]
		all.Go(func() {
			for n := range 2000 {
				site := (n + i) % len(at)
				if _, ok := f.Take(fmt.Sprint(site), noon); !ok {
					continue
				}
				assert.Equal(t, int64(1), at[site].Add(1), "two at once")
				turns[site].Add(1)
				at[site].Add(-1)
				f.Give(fmt.Sprint(site), Times{Ended: noon}, 0)
			}
		})
	}
	all.Wait()
	for i := range turns {
		require.Positive(t, turns[i].Load())
	}
}

// A file that somebody cuts short while it is in use ends no run: each process is as if
// alone, until the file is another one.
func TestCutShort(t *testing.T) {
	a, b := two(t)
	_, ok := a.Take("example.org", noon)
	require.True(t, ok)
	require.NoError(t, os.Truncate(a.path, 0))
	for _, f := range []*File{a, b} {
		known, ok := f.Take("example.org", noon)
		require.True(t, ok)
		requireTimes(t, Times{}, known)
		require.True(t, f.Keep("example.org"))
		f.Tell("example.org", Times{Paused: after(1)})
		requireTimes(t, Times{}, f.Look("example.org", noon))
		f.Give("example.org", Times{Ended: noon}, 0)
		f.follow()
	}
	require.Panics(t, func() { a.in(func(*mapping) { panic("not of the file") }) })
	_, err := open(strings.TrimSuffix(a.path, version))
	require.ErrorContains(t, err, a.path)
	requireTogetherAgain(t, a, b)
}

// Processes that have a file that somebody removed meet the later ones at the next file.
func TestRemoved(t *testing.T) {
	a, b := two(t)
	_, ok := a.Take("example.org", noon)
	require.True(t, ok)
	require.NoError(t, os.Remove(a.path))
	a.follow()
	_, err := os.Stat(a.path)
	require.ErrorIs(t, err, fs.ErrNotExist) // the folder may be on its way out too
	_, ok = b.Take("example.org", noon)
	require.False(t, ok)
	requireTogetherAgain(t, a, b)
}

// requireTogetherAgain requires that processes that have lost their file follow one that
// begins now.
func requireTogetherAgain(t *testing.T, a, b *File) {
	t.Helper()
	_ = os.Remove(a.path)
	c := process(t, strings.TrimSuffix(a.path, version))
	for _, f := range []*File{a, b} {
		f.follow()
		require.NotEqual(t, c.now.me, f.now.me)
	}
	a.Give("example.org", Times{Ended: after(7)}, 0)
	known, ok := c.Take("example.org", after(9))
	require.True(t, ok)
	requireTimes(t, Times{Ended: after(7)}, known)
	for _, f := range []*File{a, b} {
		_, ok := f.Take("example.org", after(9))
		require.False(t, ok)
		require.False(t, f.Keep("example.org"))
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{dir, filepath.Join(dir, "no") + "/", "/dev/null"} {
		_, err := Open(folder)
		require.ErrorIs(t, err, fs.ErrInvalid)
		require.EqualError(t, err, "the file of turns at sites, "+folder+": it is no file; name a file with --turns, or say --turns=off: invalid argument")
	}
	for name, row := range map[string]struct {
		file []byte
		is   error
		says string
	}{
		"empty":     {[]byte{}, fs.ErrInvalid, "remove it, or name another with --turns"},
		"something": {[]byte("text"), fs.ErrInvalid, "remove it, or name another with --turns"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path+version, row.file, 0o600))
			_, err := Open(path)
			require.ErrorIs(t, err, row.is)
			require.ErrorContains(t, err, row.says)
			require.ErrorContains(t, err, path+version+": ")
		})
	}
	path := filepath.Join(dir, "new", "turns")
	f, err := Open(path)
	require.NoError(t, err)
	again, err := Open(path)
	require.NoError(t, err)
	require.Same(t, f, again)
	is, err := os.Stat(path + version)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), is.Mode())
	in, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, in, 1)

	_, err = Open(filepath.Join(dir, "something"+version, "turns")) // no folder
	require.Error(t, err)
	require.True(t, strings.HasPrefix(err.Error(), "the file of turns at sites, "), err)
}

func TestDefaultPath(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	require.Equal(t, filepath.Join(cache, "seed-engine", "turns"), DefaultPath())
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	t.Setenv("TMPDIR", cache)
	require.NotEqual(t, cache, temporary)
	require.Equal(t, filepath.Join(temporary, fmt.Sprint("seed-engine-", os.Getuid()), "turns"), DefaultPath())
}

func BenchmarkTurn(b *testing.B) {
	f, err := open(filepath.Join(b.TempDir(), "turns"))
	require.NoError(b, err)
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprint("site", i, ".example")
	}
	b.ReportAllocs()
	for i := range b.N {
		name := names[i%len(names)]
		known, _ := f.Take(name, noon)
		known.Ended = noon
		f.Give(name, known, 0)
	}
}
