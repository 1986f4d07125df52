// Package backup copies a store and its database to another store, and back.
//
// A backup has data/{ab}/{sha256}, contents by their SHA-256, each one once, and snapshots/{id}.json, which names the list of a
// snapshot's objects and makes the snapshot exist: it is written last. A later snapshot reads the objects that are new or changed.
//
// Runs may be at work. The database is copied first, then the completion marks are listed, the raw files' before the domains', and
// then all other objects: a row's objects, a mark's results and a raw file's domains are in the snapshot, too. A mark that is not
// in the store any more at the end has lost its results meanwhile (`store compact`, `rm`), and then all is listed again. No promise: see docs/library.md.
package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/io/store"
)

// Snapshot is one state of a store and its database.
type Snapshot struct {
	ID       string    `json:"snapshot"`
	At       time.Time `json:"at"`
	Store    string    `json:"store"` // where it was
	Objects  int64     `json:"objects"`
	Bytes    int64     `json:"bytes"`
	Copied   int64     `json:"copied_objects"` // of them: those that the backup did not have
	Written  int64     `json:"copied_bytes"`
	Dialect  string    `json:"database,omitempty"` // of Database
	Database *content  `json:"database_file,omitempty"`
	List     content   `json:"list"`
}

// content is an entry of data/.
type content struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"bytes"`
}

const (
	dataPrefix     = "data/"
	snapshotPrefix = "snapshots/"
	leaseName      = "backup"
	leaseTTL       = 30 * time.Second
	idForm         = "20060102T150405.000Z"
	maxSnapshot    = 1 << 20
	copies         = 16  // at a time
	chunk          = 512 // objects that are looked at together
	maxTries       = 5
)

func (c content) key() string { return dataPrefix + c.SHA256[:2] + "/" + c.SHA256 }

// Source is what is copied.
type Source struct {
	Store store.Store // with the bucket's own keys
	Raw   string      // the prefix of raw files
	Name  string      // of the store, without secrets
	DB    *db.DB      // nil: none
}

// Progress is what a call has done so far.
type Progress struct{ Objects, Copied, Written atomic.Int64 }

var (
	commitKey = regexp.MustCompile(`^tables/.*/_delta_log/`)
	aliveKey  = regexp.MustCompile(`^runs/[^/]+/alive/`)
)

// RestoringKey is an object that a store has while a snapshot is restored to it. Until then no run and no server may use the store.
const RestoringKey = "restoring.json"

// here reports whether an object says only that a process is at work on this store: leases, heartbeats, and what a process has
// begun. A restored store has none of them.
func here(key string) bool {
	return strings.HasPrefix(key, "lease/") || strings.HasPrefix(key, "begun/") || aliveKey.MatchString(key) || key == RestoringKey
}

func isMark(key string) bool {
	return strings.HasSuffix(key, ".success") || strings.HasPrefix(key, "handoff/manifests/") || commitKey.MatchString(key)
}

func isRawMark(key string) bool { return isMark(key) && strings.HasPrefix(path.Base(key), "raw_") }

// parts are the listings of a store, in their order. What is restored is written in the opposite one.
func (s Source) parts() []part {
	return []part{
		{s.Raw, isRawMark},
		{"", func(key string) bool { return isMark(key) && !isRawMark(key) }},
		{"", func(key string) bool { return !isMark(key) && !here(key) }},
	}
}

type part struct {
	prefix string
	has    func(key string) bool
}

// ErrOther says that a place has objects that are no backup.
var ErrOther = errors.New("it has objects that are no backup; name an empty place, or a backup")

// check refuses a place that is neither a backup nor empty.
func check(ctx context.Context, to store.Store) error {
	for o, err := range to.List(ctx, "") {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(o.Key, dataPrefix), strings.HasPrefix(o.Key, snapshotPrefix):
			return nil
		case !strings.HasPrefix(o.Key, "lease/"+leaseName+"/"):
			return fmt.Errorf("%s: %w", o.Key, ErrOther)
		}
	}
	return nil
}

// All returns the snapshots of a backup, the oldest first.
func All(ctx context.Context, at store.Store) (all []Snapshot, err error) {
	keys, err := store.Keys(ctx, at, snapshotPrefix)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		var s Snapshot
		if err := store.ReadJSON(ctx, at, key, maxSnapshot, &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// taking is a snapshot that is being made.
type taking struct {
	Source
	to   store.Store
	dir  string
	mu   sync.Mutex
	have map[content]bool // in the backup
	done *Progress
}

// Take makes a snapshot. If keep is above 0, older ones than the last keep snapshots of this store are removed, with the contents
// that only they have.
func Take(ctx context.Context, from Source, to store.Store, keep int, done *Progress) (s Snapshot, err error) {
	if err := check(ctx, to); err != nil {
		return s, err
	}
	l, err := lease.Acquire(ctx, lease.InStore(to), leaseName, lease.CurrentHolder(), leaseTTL)
	if err != nil {
		return s, err
	}
	within, release := l.Keep(ctx, func(lease.Event) {})
	defer func() { err = errors.Join(err, release()) }()
	dir, remove, err := scratch.Dir("backup-")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	t := &taking{Source: from, to: store.Guarded(to, lease.Allow(l)), dir: dir, have: map[content]bool{}, done: done}
	if s, err = t.take(within); err == nil && keep > 0 {
		err = prune(within, t.to, s.Store, keep)
	}
	return s, err
}

func (t *taking) take(ctx context.Context) (s Snapshot, err error) {
	for o, err := range t.to.List(ctx, dataPrefix) {
		if err != nil {
			return s, err
		}
		t.have[content{path.Base(o.Key), o.Size}] = true
	}
	all, err := All(ctx, t.to)
	if err != nil {
		return s, err
	}
	known := "" // a list of objects that are in the backup
	for _, before := range slices.Backward(all) {
		if before.Store == t.Name {
			known = filepath.Join(t.dir, "known")
			if err := fetch(ctx, t.to, before.List, known); err != nil {
				return s, err
			}
			break
		}
	}
	now := time.Now().UTC()
	s = Snapshot{ID: now.Format(idForm), At: now, Store: t.Name}
	if t.DB != nil {
		s.Dialect = string(t.DB.Dialect)
		if s.Database, err = t.database(ctx); err != nil {
			return s, err
		}
	}
	for try := 1; ; try++ {
		s.Objects, s.Bytes = 0, 0
		file := filepath.Join(t.dir, fmt.Sprintf("list-%d", try))
		whole, err := t.list(ctx, known, file, &s)
		if err != nil {
			return s, err
		}
		if known = file; whole {
			break
		}
		if try == maxTries {
			return s, errors.New("while the store was copied, results were removed from it again and again: make the backup when no `store compact` and no `rm` is at work")
		}
	}
	if s.List, err = t.file(ctx, known); err != nil {
		return s, err
	}
	s.Copied, s.Written = t.done.Copied.Load(), t.done.Written.Load()
	return s, store.CreateJSON(ctx, t.to, snapshotPrefix+s.ID+".json", s)
}

func (t *taking) database(ctx context.Context) (*content, error) {
	file := filepath.Join(t.dir, "database")
	if err := t.DB.Snapshot(ctx, file); err != nil {
		return nil, err
	}
	c, err := t.file(ctx, file)
	return &c, errors.Join(err, os.Remove(file))
}

// list copies what is not known, and writes the list of all objects. whole is false if a mark disappeared meanwhile.
func (t *taking) list(ctx context.Context, known, file string, s *Snapshot) (whole bool, err error) {
	old, err := openList(known)
	if err != nil {
		return false, err
	}
	defer old.close()
	out, err := createList(file)
	if err != nil {
		return false, err
	}
	whole = true
	for n, p := range t.parts() {
		var some []store.Object
		flush := func() error {
			got, err := t.copyAll(ctx, n, some, old)
			for _, e := range got {
				if err != nil {
					break
				}
				if e.Key == "" { // it is there no more
					whole = whole && n == len(t.parts())-1
					continue
				}
				s.Objects, s.Bytes = s.Objects+1, s.Bytes+e.Size
				err = out.add(e)
			}
			some = some[:0]
			return err
		}
		for o, err := range t.Store.List(ctx, p.prefix) {
			if err == nil && p.has(o.Key) {
				some = append(some, o)
			}
			if err == nil && len(some) == chunk {
				err = flush()
			}
			if err != nil {
				return false, errors.Join(err, out.close())
			}
		}
		if err := flush(); err != nil {
			return false, errors.Join(err, out.close())
		}
	}
	if err := out.close(); err != nil || !whole {
		return false, err
	}
	return t.marksStay(ctx, file)
}

// marksStay reports whether all marks of a list are still in the store.
func (t *taking) marksStay(ctx context.Context, file string) (bool, error) {
	l, err := openList(file)
	if err != nil {
		return false, err
	}
	defer l.close()
	parts := t.parts()
	for n, p := range parts[:len(parts)-1] {
		for o, err := range t.Store.List(ctx, p.prefix) {
			switch e := l.next; {
			case err != nil:
				return false, err
			case e == nil || e.Part != n || e.Key > o.Key:
			case e.Key < o.Key:
				return false, nil
			default:
				l.read()
			}
		}
		if l.next != nil && l.next.Part == n {
			return false, nil
		}
	}
	return true, l.err
}

// copyAll copies a chunk of objects, but for those that the old list has unchanged. The entry of an object that is there no more has no key.
func (t *taking) copyAll(ctx context.Context, n int, some []store.Object, old *listReader) ([]entry, error) {
	got := make([]entry, len(some))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(copies)
	for i, o := range some {
		t.done.Objects.Add(1)
		if e := old.find(n, o.Key); e != nil && e.ETag == o.ETag && e.At.Equal(o.ModTime) && t.has(e.content) {
			got[i] = *e
			continue
		}
		group.Go(func() (err error) { got[i], err = t.copy(within, n, o.Key); return err })
	}
	return got, group.Wait()
}

func (t *taking) has(c content) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.have[c]
}

// copy copies an object.
func (t *taking) copy(ctx context.Context, n int, key string) (e entry, err error) {
	err = store.Retry(ctx, func() error {
		o, err := t.Store.Head(ctx, key) // before it is read: what is newer is copied again the next time
		if err != nil {
			return err
		}
		e = entry{Part: n, Key: key, ETag: o.ETag, At: o.ModTime, Type: o.ContentType, Metadata: o.Metadata}
		r, err := t.Store.Open(ctx, key)
		if err != nil {
			return err
		}
		e.content, err = t.spool(ctx, r, o.Size)
		return errors.Join(err, r.Close())
	})
	if errors.Is(err, store.ErrNotExist) {
		return entry{}, nil
	}
	if err != nil {
		return e, fmt.Errorf("copying %s: %w", key, err)
	}
	return e, nil
}

// inMemory is the size in bytes above which a content is kept in a file until its SHA-256 is known.
const inMemory = 4 << 20

// spool copies a content into the backup.
func (t *taking) spool(ctx context.Context, r io.Reader, size int64) (content, error) {
	if size > inMemory {
		f, err := os.CreateTemp(t.dir, "object-")
		if err != nil {
			return content{}, err
		}
		_, err = io.Copy(f, r)
		var c content
		if err = errors.Join(err, f.Close()); err == nil {
			c, err = t.file(ctx, f.Name())
		}
		return c, errors.Join(err, os.Remove(f.Name()))
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return content{}, err
	}
	return t.keep(ctx, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
}

// file copies a file into the backup.
func (t *taking) file(ctx context.Context, name string) (content, error) {
	return t.keep(ctx, func() (io.ReadCloser, error) { return os.Open(name) })
}

// keep copies a content into the backup, unless it is there, and reads it back.
func (t *taking) keep(ctx context.Context, open func() (io.ReadCloser, error)) (content, error) {
	c, err := sum(open)
	if err != nil || t.has(c) {
		return c, err
	}
	err = store.Retry(ctx, func() error {
		r, err := open()
		if err != nil {
			return err
		}
		return errors.Join(t.to.Put(ctx, c.key(), r, store.PutOptions{}), r.Close())
	})
	if err == nil {
		err = verify(ctx, t.to, c)
	}
	if err != nil {
		return c, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.have[c] = true
	t.done.Copied.Add(1)
	t.done.Written.Add(c.Size)
	return c, nil
}

func sum(open func() (io.ReadCloser, error)) (content, error) {
	r, err := open()
	if err != nil {
		return content{}, err
	}
	h := sha256.New()
	n, err := io.Copy(h, r)
	return content{hex.EncodeToString(h.Sum(nil)), n}, errors.Join(err, r.Close())
}

// errDamaged says that a content of a backup is not the one that was copied.
var errDamaged = errors.New("the backup is damaged")

// verify reads a content of a backup.
func verify(ctx context.Context, at store.Store, c content) error {
	return store.Retry(ctx, func() error {
		r, err := open(ctx, at, c)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		return errors.Join(err, r.Close())
	})
}
