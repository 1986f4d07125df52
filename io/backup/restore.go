package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/io/store"
)

var (
	// ErrNone says that a backup has no such snapshot.
	ErrNone = errors.New("there is no such snapshot")
	// ErrSeveral says that the newest snapshot of a backup need not be the one that is meant.
	ErrSeveral = errors.New("it has snapshots of several stores")
	// ErrNotEmpty says that a place to which a snapshot should be restored has objects or tables.
	ErrNotEmpty = errors.New("it is not empty: a snapshot is restored to an empty place only")
)

// Find returns the snapshot of that id, the newest one for "". Its error is ErrNone, or ErrSeveral for "" if there are snapshots of
// several stores.
func Find(ctx context.Context, at store.Store, id string) (s Snapshot, err error) {
	all, err := All(ctx, at)
	if err != nil {
		return s, err
	}
	i := len(all) - 1
	if id == "" && slices.ContainsFunc(all, func(s Snapshot) bool { return s.Store != all[i].Store }) {
		return s, ErrSeveral
	}
	if id != "" {
		i = slices.IndexFunc(all, func(s Snapshot) bool { return s.ID == id })
	}
	if i < 0 {
		return s, ErrNone
	}
	return all[i], nil
}

// restoring is the content of RestoringKey.
type restoring struct {
	Snapshot string `json:"snapshot"`
	DB       string `json:"database"` // a digest of its DSN
}

// Unfinished reports whether a restore to a store has not come to its end.
func Unfinished(ctx context.Context, s store.Store) (bool, error) {
	return store.Has(ctx, s, RestoringKey)
}

// Restore copies a snapshot to an empty store and an empty database, and compares each SHA-256. A call that was cut off is
// finished by the same call. Until then the store has the object restoring.json.
func Restore(ctx context.Context, from store.Store, s Snapshot, to store.Store, dsn string, done *Progress) error {
	digest := sha256.Sum256([]byte(dsn))
	own := restoring{s.ID, hex.EncodeToString(digest[:8])}
	var there restoring
	err := store.ReadJSON(ctx, to, RestoringKey, maxSnapshot, &there)
	again := err == nil && there == own
	if errors.Is(err, store.ErrNotExist) {
		err = nil
	}
	for o, lerr := range to.List(ctx, "") {
		if err = errors.Join(err, lerr); err == nil && !again {
			err = fmt.Errorf("%w; the store has %s", ErrNotEmpty, o.Key)
		}
		break
	}
	if err != nil {
		return err
	}
	if s.Database != nil && !again {
		if err := db.Empty(ctx, dsn); err != nil {
			return fmt.Errorf("%w; the database: %w", ErrNotEmpty, err)
		}
	}
	if err := store.WriteJSON(ctx, to, RestoringKey, own); err != nil {
		return err
	}
	if s.Database != nil {
		// It was empty when restoring.json was written: if it is not, the call that was cut off has restored it.
		if err := restoreDatabase(ctx, from, *s.Database, dsn); err != nil && !errors.Is(err, db.ErrNotEmpty) {
			return err
		}
	}
	err = withList(ctx, from, s, func(file string) error {
		for part := len(Source{}.parts()) - 1; part >= 0; part-- { // the marks last
			if err := restorePart(ctx, from, file, part, to, done); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return store.Remove(ctx, to, RestoringKey)
}

func restoreDatabase(ctx context.Context, from store.Store, c content, dsn string) error {
	dir, remove, err := scratch.Dir("restore-")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "database")
	if err = fetch(ctx, from, c, file); err == nil {
		err = db.Restore(ctx, dsn, file)
	}
	return errors.Join(err, remove())
}

func restorePart(ctx context.Context, from store.Store, list string, part int, to store.Store, done *Progress) error {
	l, err := openList(list)
	if err != nil {
		return err
	}
	defer l.close()
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(copies)
	for ; l.next != nil && within.Err() == nil; l.read() {
		if l.next.Part != part {
			continue
		}
		e := *l.next
		group.Go(func() error {
			err := store.Retry(within, func() error {
				r, err := open(within, from, e.content)
				if err != nil {
					return err
				}
				return errors.Join(to.Put(within, e.Key, r, store.PutOptions{ContentType: e.Type, Metadata: e.Metadata}), r.Close())
			})
			if err != nil {
				return fmt.Errorf("restoring %s: %w", e.Key, err)
			}
			done.Objects.Add(1)
			done.Written.Add(e.Size)
			return nil
		})
	}
	return errors.Join(group.Wait(), l.err)
}

// withList calls do with a file that has the list of a snapshot.
func withList(ctx context.Context, at store.Store, s Snapshot, do func(file string) error) error {
	dir, remove, err := scratch.Dir("backup-")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "list")
	if err = fetch(ctx, at, s.List, file); err == nil {
		err = do(file)
	}
	return errors.Join(err, remove())
}

// Check reads all that the snapshots of a backup have, and compares each SHA-256. It returns what is wrong, one error for each content.
// Of a place without a snapshot the error is ErrNone.
func Check(ctx context.Context, at store.Store, done *Progress) (wrong []error, err error) {
	all, err := All(ctx, at)
	if err == nil && len(all) == 0 {
		err = ErrNone
	}
	if err != nil {
		return nil, err
	}
	seen := map[content]bool{}
	for _, s := range all {
		cerr := contents(ctx, at, s, func(c content) error {
			if seen[c] {
				return nil
			}
			seen[c] = true
			done.Objects.Add(1)
			done.Written.Add(c.Size)
			if err := verify(ctx, at, c); err != nil {
				wrong = append(wrong, fmt.Errorf("snapshot %s: %w", s.ID, err))
			}
			return ctx.Err()
		})
		if cerr != nil && len(wrong) == 0 {
			return wrong, cerr
		}
	}
	return wrong, nil
}

// checked reads a content, and fails at its end if that is another one.
type checked struct {
	io.ReadCloser
	h    hash.Hash
	want content
	n    int64
}

func open(ctx context.Context, at store.Store, c content) (io.ReadCloser, error) {
	r, err := at.Open(ctx, c.key())
	if errors.Is(err, store.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: the object is missing", c.key(), errDamaged)
	}
	return &checked{ReadCloser: r, h: sha256.New(), want: c}, err
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	_, _ = c.h.Write(p[:n]) // it never fails
	if c.n += int64(n); errors.Is(err, io.EOF) && (content{hex.EncodeToString(c.h.Sum(nil)), c.n} != c.want) {
		return n, fmt.Errorf("%s: %w: its bytes have another SHA-256; remove the object, and the next snapshot copies it again if it is still in the store", c.want.key(), errDamaged)
	}
	return n, err
}
