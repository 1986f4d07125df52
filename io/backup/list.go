package backup

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// entry is a line of a list of objects. The lines are sorted by part and key.
type entry struct {
	Part     int               `json:"p"`
	Key      string            `json:"k"`
	ETag     string            `json:"e"`
	At       time.Time         `json:"t"`
	Type     string            `json:"c,omitempty"`
	Metadata map[string]string `json:"m,omitempty"`
	content
}

// listWriter writes a list to a file.
type listWriter struct {
	f *os.File
	z *gzip.Writer
	e *json.Encoder
}

func createList(file string) (*listWriter, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	z := gzip.NewWriter(f)
	return &listWriter{f, z, json.NewEncoder(z)}, nil
}

func (l *listWriter) add(e entry) error { return l.e.Encode(e) }

func (l *listWriter) close() error { return errors.Join(l.z.Close(), l.f.Close()) }

// listReader reads a list.
type listReader struct {
	f    *os.File
	d    *json.Decoder
	next *entry // nil: the end
	err  error
}

// openList opens the list in a file; "": an empty one.
func openList(file string) (*listReader, error) {
	if file == "" {
		return &listReader{}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &listReader{f: f, d: json.NewDecoder(z)}
	l.read()
	return l, l.err
}

func (l *listReader) close() {
	if l.f != nil {
		_ = l.f.Close() // it was only read
	}
}

// read reads the next entry.
func (l *listReader) read() {
	l.next = new(entry)
	if err := l.d.Decode(l.next); err != nil {
		l.next = nil
		if !errors.Is(err, io.EOF) {
			l.err = fmt.Errorf("reading the list of a snapshot: %w", err)
		}
	}
}

// find returns the entry of a key of a part. Keys are looked for in the order of the list.
func (l *listReader) find(part int, key string) *entry {
	for l.next != nil && (l.next.Part < part || l.next.Part == part && l.next.Key < key) {
		l.read()
	}
	if l.next != nil && l.next.Part == part && l.next.Key == key {
		return l.next
	}
	return nil
}

// fetch copies a content of a backup to a file.
func fetch(ctx context.Context, at store.Store, c content, file string) error {
	return store.Retry(ctx, func() error {
		r, err := open(ctx, at, c)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }() // it was only read
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Close())
	})
}

// prune removes all but the last keep snapshots of a store, and then the contents that none of the others has.
func prune(ctx context.Context, at store.Store, of string, keep int) error {
	all, err := All(ctx, at)
	if err != nil {
		return err
	}
	var old, others []Snapshot
	for _, s := range slices.Backward(all) {
		if s.Store != of || keep > 0 {
			others = append(others, s)
		} else {
			old = append(old, s)
		}
		if s.Store == of {
			keep--
		}
	}
	if len(old) == 0 {
		return nil
	}
	for _, s := range old {
		if err := store.Remove(ctx, at, snapshotPrefix+s.ID+".json"); err != nil {
			return err
		}
	}
	used := map[content]bool{}
	for _, s := range others {
		if err := contents(ctx, at, s, func(c content) error { used[c] = true; return nil }); err != nil {
			return err
		}
	}
	for o, err := range at.List(ctx, dataPrefix) {
		if err == nil && !used[content{path.Base(o.Key), o.Size}] {
			err = store.Remove(ctx, at, o.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// contents calls do for each content of a snapshot.
func contents(ctx context.Context, at store.Store, s Snapshot, do func(content) error) error {
	if s.Database != nil {
		if err := do(*s.Database); err != nil {
			return err
		}
	}
	if err := do(s.List); err != nil {
		return err
	}
	return withList(ctx, at, s, func(file string) error {
		l, err := openList(file)
		if err != nil {
			return err
		}
		defer l.close()
		for ; l.next != nil; l.read() {
			if err := do(l.next.content); err != nil {
				return err
			}
		}
		return l.err
	})
}
