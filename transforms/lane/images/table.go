package images

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/parse/picture"
)

// Table is a job's table of images by address, and where their bytes are in the store.
type Table struct {
	Name, Source string // the table, and its column with the name of a source
	Prefix       string // of the keys of the bytes. One that ends with "{source}/" keeps sources apart.
}

const bySource = "{source}/"

// Root is what all keys begin with.
func (t Table) Root() string { return strings.TrimSuffix(t.Prefix, bySource) }

// Key returns the key of the bytes of a source's image in the store.
func (t Table) Key(source, hash, kind string) string {
	prefix := t.Root()
	if prefix != t.Prefix {
		prefix += source + "/"
	}
	return prefix + hash[:2] + "/" + hash + "." + picture.Info{Type: kind}.Extension()
}

// image is what the database has of an image.
type image struct {
	hash, kind, etag, modified, failure  string
	bytes, width, height                 int64
	fetchedAt, askedAt, askedIn, againAt int64
}

// read reads an image; one that was never requested is zero.
func (f *Fetcher) read(ctx context.Context, at string) (i image, err error) {
	err = f.DB.QueryRowContext(ctx, `SELECT hash, type, bytes, width, height, etag, last_modified, fetched_at, asked_at, asked_in, again_at, failure FROM `+f.Name+` WHERE `+f.Source+` = $1 AND url = $2`, f.Of, at).
		Scan(&i.hash, &i.kind, &i.bytes, &i.width, &i.height, &i.etag, &i.modified, &i.fetchedAt, &i.askedAt, &i.askedIn, &i.againAt, &i.failure)
	if errors.Is(err, sql.ErrNoRows) {
		return image{askedIn: -1}, nil
	}
	return i, err
}

func (f *Fetcher) keep(ctx context.Context, at string, i image) error {
	return f.DB.Tx(ctx, func(tx *sql.Tx) error {
		return f.DB.InsertRows(ctx, tx, f.Name, []string{f.Source, "url", "hash", "type", "bytes", "width", "height", "etag", "last_modified", "fetched_at", "asked_at", "asked_in", "again_at", "failure"},
			[][]any{{f.Of, at, i.hash, i.kind, i.bytes, i.width, i.height, i.etag, i.modified, i.fetchedAt, i.askedAt, i.askedIn, i.againAt, i.failure}},
			`ON CONFLICT (`+f.Source+`, url) DO UPDATE SET hash = excluded.hash, type = excluded.type, bytes = excluded.bytes, width = excluded.width, height = excluded.height, etag = excluded.etag,
			last_modified = excluded.last_modified, fetched_at = excluded.fetched_at, asked_at = excluded.asked_at, asked_in = excluded.asked_in, again_at = excluded.again_at, failure = excluded.failure`)
	})
}

// Known is what is known of an image.
type Known struct {
	URL, Hash, Type string    // Hash is "" if its bytes were never received
	Asked           time.Time // when it was requested last
}

// Known returns a source's images by address.
func (t Table) Known(ctx context.Context, d db.Querier, source string) (map[string]Known, error) {
	all := map[string]Known{}
	for k, err := range db.Select(ctx, d, func(r *sql.Rows) (k Known, err error) {
		var asked int64
		err = r.Scan(&k.URL, &k.Hash, &k.Type, &asked)
		k.Asked = db.Time(asked)
		return k, err
	}, `SELECT url, hash, type, asked_at FROM `+t.Name+` WHERE `+t.Source+` = $1`, source) {
		if err != nil {
			return nil, fmt.Errorf("reading the images of %s: %w", source, err)
		}
		all[k.URL] = k
	}
	return all, nil
}

// Sweep removes the images of all sources that nothing names any longer: first the bytes, so that the next sweep knows
// what is left after a kill. named returns the addresses that something of a source names.
func (t Table) Sweep(ctx context.Context, d *db.DB, s store.Store, named func(ctx context.Context, source string) ([]string, error)) error {
	sources, err := db.Texts(ctx, d, `SELECT DISTINCT `+t.Source+` FROM `+t.Name)
	if err != nil {
		return fmt.Errorf("reading whose images are kept: %w", err)
	}
	for _, source := range sources {
		still, err := named(ctx, source)
		if err != nil {
			return err
		}
		known, err := t.Known(ctx, d, source)
		if err != nil {
			return err
		}
		kept := map[string]bool{}
		for _, at := range still {
			kept[known[at].Hash] = true
			delete(known, at)
		}
		var gone []string
		for at, k := range known {
			gone = append(gone, at)
			if k.Hash == "" || kept[k.Hash] {
				continue
			}
			if err := s.Delete(ctx, t.Key(source, k.Hash, k.Type)); err != nil {
				return fmt.Errorf("removing an image of %s: %w", source, err)
			}
		}
		if _, err := d.ExecContext(ctx, `DELETE FROM `+t.Name+` WHERE `+t.Source+` = $1 AND url `+d.AnyOf(2), source, d.List(gone)); err != nil {
			return fmt.Errorf("removing the rows of images of %s: %w", source, err)
		}
	}
	return nil
}

// Objects yields the bytes of a source's images. Where sources share bytes, those that another source has are left out.
func (t Table) Objects(ctx context.Context, src removal.Source) iter.Seq2[store.Object, error] {
	scan := func(r *sql.Rows) (o store.Object, err error) {
		var hash, kind string
		err = r.Scan(&hash, &kind)
		o.Key, o.ETag = t.Key(src.Name, hash, kind), hash
		return o, err
	}
	return db.Select(ctx, src.DB, scan, fmt.Sprintf(`SELECT DISTINCT hash, type FROM %[1]s i WHERE %[2]s = $1 AND hash <> ''
		AND NOT EXISTS (SELECT 1 FROM %[1]s o WHERE o.hash = i.hash AND o.%[2]s <> i.%[2]s) ORDER BY hash, type`, t.Name, t.Source), src.Name)
}

// Audit calls found for images whose rows have no bytes in the store, and how to mend it.
func (t Table) Audit(ctx context.Context, s store.Store, d *db.DB, found func(what, key, mend string)) error {
	if d == nil {
		return nil
	}
	there, err := d.HasTable(ctx, t.Name)
	if err != nil || !there {
		return err
	}
	kept, err := store.Keys(ctx, s, t.Root())
	if err != nil {
		return err
	}
	for key, err := range db.Select(ctx, d, func(r *sql.Rows) (string, error) {
		var source, hash, kind string
		err := r.Scan(&source, &hash, &kind)
		return t.Key(source, hash, kind), err
	}, fmt.Sprintf(`SELECT DISTINCT %s, hash, type FROM %s WHERE hash <> '' ORDER BY hash`, t.Source, t.Name)) {
		if err != nil {
			return fmt.Errorf("reading the images: %w", err)
		}
		if _, there := slices.BinarySearch(kept, key); there {
			continue
		}
		there, err := store.Has(ctx, s, key) // a run may have stored it since the listing
		if err != nil {
			return fmt.Errorf("looking at %s: %w", key, err)
		}
		if !there {
			found("rows of images without bytes", key, "restore them from a backup; or set hash = '' in "+t.Name+", and a run with --images requests them again")
		}
	}
	return nil
}
