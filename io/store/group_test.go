package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openTestDir(t *testing.T) *dir {
	t.Helper()
	d, err := openDir(t.TempDir())
	require.NoError(t, err)
	return d
}

func content(t *testing.T, s Store, key string) string {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	require.NoError(t, err)
	defer r.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(r)
	require.NoError(t, err)
	return b.String()
}

// Each item is written, or has its own error; none of the others suffers from it.
func TestPutAll(t *testing.T) {
	allow := func(context.Context, bool) error { return nil }
	for _, name := range []string{"directory", "memory", "wrapped"} {
		t.Run(name, func(t *testing.T) {
			calls := new(Calls)
			url := t.TempDir()
			if name == "memory" {
				url = "mem://" + t.Name()
			}
			s, err := Open(t.Context(), url)
			require.NoError(t, err)
			if name == "wrapped" {
				s = Guarded(Counted(s, calls), allow)
			}
			errs := PutAll(t.Context(), s, []Item{
				{Key: "d/robots.txt", Body: []byte("User-agent: *")},
				{Key: "../outside", Body: []byte("x")},
				{Key: "d/a.json", Body: []byte("{}"), Options: PutOptions{ContentType: "application/ld+json", Metadata: map[string]string{"Category": "news"}}},
				{Key: "d/empty"},
			})
			require.ErrorIs(t, errs[1], ErrKey)
			require.Equal(t, []error{nil, errs[1], nil, nil}, errs)
			require.Equal(t, "User-agent: *", content(t, s, "d/robots.txt"))
			require.Empty(t, content(t, s, "d/empty"))
			o, err := s.Head(t.Context(), "d/a.json")
			require.NoError(t, err)
			require.Equal(t, "application/ld+json", o.ContentType)
			require.Equal(t, map[string]string{"category": "news"}, o.Metadata)
			if name == "wrapped" {
				require.EqualValues(t, 4, calls.Snapshot()["put"])
			}
		})
	}
}

// The lease is asked again before each item gets its name. What was not allowed is
// tried again, and leaves no temporary file.
func TestPutAllNotAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openTestDir(t)
		lost := errors.New("the lease was lost")
		asked := 0
		s := Guarded(d, func(_ context.Context, wait bool) error {
			if asked++; asked > 3 { // the group may begin, and its first item be named, before which is asked twice
				return lost
			}
			return nil
		})
		errs := PutAll(t.Context(), s, []Item{{Key: "a", Body: []byte("1")}, {Key: "b", Body: []byte("2")}})
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], lost)
		files, err := os.ReadDir(d.root)
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.Equal(t, "a", files[0].Name())
	})
}

// waitFor returns when so many files wait for the next sync.
func (g *groupCommit) waitFor(files int) {
	for waiting := -1; waiting != files; runtime.Gosched() {
		g.mu.Lock()
		waiting = 0
		if g.next != nil {
			waiting = len(g.next.files)
		}
		g.mu.Unlock()
	}
}

// Items have their names only after a sync of their data: one sync of the file
// system for all who wait at that time.
func TestGroupCommit(t *testing.T) {
	if !canSyncFileSystem {
		t.Skip("this system syncs each file by itself")
	}
	d := openTestDir(t)
	const writers = 20
	var syncs atomic.Int64
	first, release := make(chan struct{}), make(chan struct{})
	d.syncFileSystem = func(string) error {
		if syncs.Add(1) == 1 {
			close(first)
			<-release
		}
		return nil
	}
	put := func(i int) {
		for j, err := range PutAll(t.Context(), d, []Item{{Key: fmt.Sprintf("%d/a", i), Body: []byte("a")}, {Key: fmt.Sprintf("%d/b", i), Body: []byte("b")}}) {
			assert.NoError(t, err, "writer %d, item %d", i, j)
		}
	}
	named := func() int {
		names, err := filepath.Glob(filepath.Join(d.root, "*", "[ab]"))
		require.NoError(t, err)
		return len(names)
	}
	var all sync.WaitGroup
	d.commits.running.Lock() // as if a sync were running: two writers share the next
	all.Go(func() { put(0) })
	all.Go(func() { put(1) })
	d.commits.waitFor(4)
	require.Zero(t, named())
	d.commits.running.Unlock()
	<-first
	for i := 2; i < writers; i++ {
		all.Go(func() { put(i) })
	}
	d.commits.waitFor(2 * (writers - 2))
	require.Zero(t, named(), "no item has its name before its sync")
	close(release)
	all.Wait()
	require.EqualValues(t, 2, syncs.Load())
	require.Equal(t, 2*writers, named())
}

// A sync that failed leaves nothing behind for any of those who shared it.
func TestGroupCommitFails(t *testing.T) {
	if !canSyncFileSystem {
		t.Skip("this system syncs each file by itself")
	}
	d := openTestDir(t)
	full := errors.New("no space left on device")
	d.syncFileSystem = func(string) error { return full }
	var all sync.WaitGroup
	d.commits.running.Lock()
	for i := range 3 {
		all.Go(func() {
			for _, err := range PutAll(t.Context(), d, []Item{{Key: fmt.Sprint(i), Body: []byte("x")}}) {
				assert.ErrorIs(t, err, full, "error")
			}
		})
	}
	d.commits.waitFor(3)
	d.commits.running.Unlock()
	all.Wait()
	files, err := os.ReadDir(d.root)
	require.NoError(t, err)
	require.Empty(t, files)
}

// Where the directory is gone, each item's error names that item.
func TestPutAllWithoutDirectory(t *testing.T) {
	d := openTestDir(t)
	require.NoError(t, os.Remove(d.root))
	require.Empty(t, d.putAll(t.Context(), nil))
	for i, err := range PutAll(t.Context(), d, []Item{{Key: "k0"}, {Key: "k1"}}) {
		require.ErrorIs(t, err, ErrGone)
		require.ErrorContains(t, err, fmt.Sprintf("\"k%d\"", i))
	}
}

// Where files have no attributes, sidecars have them; an object that is written
// again on a file system that has them loses its sidecar.
func TestAttributesWithoutXattrs(t *testing.T) {
	root := t.TempDir()
	md := map[string]string{"domain_id": "gov:sg:moh.gov.sg"}
	open := func(xattrs bool) *dir {
		d, err := openDir(root)
		require.NoError(t, err)
		if !xattrs {
			d.setXattr = func(*os.File, string, []byte) error { return errors.ErrUnsupported }
		}
		return d
	}
	put := func(d *dir, o PutOptions) {
		require.NoError(t, d.Put(t.Context(), "a/x.html", strings.NewReader("<html>"), o))
	}
	head := func(d *dir) Object {
		o, err := d.Head(t.Context(), "a/x.html")
		require.NoError(t, err)
		return o
	}
	sidecars := func() int {
		names, err := filepath.Glob(filepath.Join(root, reservedDir, "meta", "*", "*.json"))
		require.NoError(t, err)
		return len(names)
	}
	without := open(false)
	put(without, PutOptions{ContentType: "text/html", Metadata: md})
	require.Equal(t, 1, sidecars())
	for _, d := range []*dir{without, open(true)} {
		require.Equal(t, "text/html", head(d).ContentType)
		require.Equal(t, md, head(d).Metadata)
	}
	with := open(true)
	put(with, PutOptions{Metadata: map[string]string{"domain_id": "other"}})
	require.Equal(t, "other", head(with).Metadata["domain_id"])
	require.Equal(t, "application/octet-stream", head(with).ContentType)
	put(with, PutOptions{})
	require.Empty(t, head(with).Metadata)
	require.Empty(t, head(open(true)).Metadata)
	if hasXattrs(root) {
		require.Zero(t, sidecars())
	}
}
