package removal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// What says what a job keeps of one source, such as a provider or a site: all that a removal removes, counts before and
// looks for afterwards.
type What struct {
	Job  string
	Kind string // what a source is: provider, site, publisher or domain
	// Read checks a name as a person writes it; nil: it must have the form of an id.
	Read func(name string) (string, error)

	// Migrate brings the tables of the job's database up to date; nil: the job has none. Names is a query for sources that
	// no table has rows of; "": there are none.
	Migrate func(ctx context.Context, d *db.DB) error
	Names   string
	// Tables have rows of a source, Others rows that name none. Hosts has until when hosts asked for no request: only
	// rows whose time is over are deleted, of all hosts.
	Tables []Table
	Others []string
	Hosts  string
	// Parts are kept in other ways.
	Parts []Part
	// Objects yields the objects of a source in the store. They are removed before the rows, which may be needed to find
	// them.
	Objects func(ctx context.Context, src Source) iter.Seq2[store.Object, error]

	// Lease is the source's in the database, but for its name. Alone works in its place: when no run does.
	Lease string
	Alone func(ctx context.Context, src Source, do func(context.Context, Source) error) error
	// Before adds to what was found what only the job knows; After is part of the transaction that empties the tables.
	Before func(ctx context.Context, src Source, now time.Time, r *Removed) error
	After  func(ctx context.Context, tx *sql.Tx, src Source, now time.Time) error
	// Erase erases what Parts deleted in the database's files.
	Erase func(ctx context.Context, d *db.DB) error
}

// Source is a source, and where the job keeps what it found of it.
type Source struct {
	Name  string
	Store store.Store
	DB    *db.DB // nil: the job has none
}

// Table is a table with rows of a source: those whose Column is its name, or one of the values that Of finds.
type Table struct {
	Name, Column string
	Of           func(ctx context.Context, src Source) ([]string, error)
}

// Part is anything else that is kept of a source.
type Part struct {
	Name string // in receipts, next to the tables
	// Count is negative where no source has such a part.
	Count  func(ctx context.Context, src Source) (int64, error)
	Remove func(ctx context.Context, src Source) error
}

// ErrNotErased means that everything was removed, but that the database's files could not be rewritten: they may still
// have the deleted text in their free parts.
var ErrNotErased = errors.New("its rows are removed, but their text may still be in free parts of the database's files; " +
	"remove it again when no run is using the database")

// idForm is the form of the ids of providers, sites and publishers.
var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,127}$`)

// Named checks the name of a source.
func (w What) Named(name string) (string, error) {
	if w.Read != nil {
		return w.Read(name)
	}
	if !idForm.MatchString(name) {
		return "", fmt.Errorf("%s: write the id of a %s", w.Kind, w.Kind)
	}
	return name, nil
}

// Known are the sources that the job's database knows, sorted.
func (w What) Known(ctx context.Context, d *db.DB) ([]string, error) {
	var queries []string
	if w.Names != "" {
		queries = append(queries, w.Names)
	}
	for _, t := range w.Tables {
		if t.Of == nil {
			queries = append(queries, `SELECT `+t.Column+` FROM `+t.Name)
		}
	}
	if len(queries) == 0 || d == nil {
		return nil, nil
	}
	return db.Texts(ctx, d, strings.Join(queries, ` UNION `)+` ORDER BY 1`)
}

// found is what is there of a source.
type found struct {
	Removed
	values  map[string][]string // of the tables' columns
	keys    []string            // of objects
	letters []string            // ids of dead letters
}

// Total is how many rows, objects and dead letters there are.
func (r Removed) Total() int64 {
	n := r.Objects + r.DeadLetters
	for _, rows := range r.Rows {
		n += rows
	}
	return n
}

// Find says what is kept of a source.
func (w What) Find(ctx context.Context, src Source) (Removed, error) {
	f, err := w.find(ctx, src, nil)
	return f.Removed, err
}

// find says what is there of a source, by the values of the tables' columns that were found before; nil: none were.
func (w What) find(ctx context.Context, src Source, values map[string][]string) (f found, err error) {
	f = found{Removed: Removed{Rows: map[string]int64{}}, values: map[string][]string{}}
	for _, t := range w.Tables {
		of, known := values[t.Name]
		switch {
		case known:
		case t.Of == nil:
			of = []string{src.Name}
		default:
			if of, err = t.Of(ctx, src); err != nil {
				return f, err
			}
		}
		f.values[t.Name] = of
		var n int64
		query := `SELECT COUNT(*) FROM ` + t.Name + ` WHERE ` + t.Column + ` ` + src.DB.AnyOf(1)
		if err := src.DB.QueryRowContext(ctx, query, src.DB.List(of)).Scan(&n); err != nil {
			return f, fmt.Errorf("counting the rows of %s: %w", t.Name, err)
		}
		f.Rows[t.Name] = n
	}
	for _, p := range w.Parts {
		n, err := p.Count(ctx, src)
		if err != nil {
			return f, fmt.Errorf("counting what %s has: %w", p.Name, err)
		}
		if n >= 0 {
			f.Rows[p.Name] = n
		}
	}
	sum := sha256.New()
	for o, err := range w.Objects(ctx, src) {
		if err != nil {
			return f, fmt.Errorf("looking for its objects: %w", err)
		}
		_, _ = fmt.Fprintf(sum, "%s %s %d\n", o.Key, o.ETag, o.Size) // a hash takes everything
		f.keys = append(f.keys, o.Key)
	}
	if f.Objects = int64(len(f.keys)); f.Objects > 0 {
		f.ObjectsSHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	for l, err := range ledger.ListDeadLetters(ctx, src.Store, w.Job, "") {
		if err != nil {
			return f, err
		}
		if l.Input.Source == src.Name || strings.HasSuffix(l.Input.DomainID, ":"+src.Name) {
			f.letters = append(f.letters, l.ID())
		}
	}
	f.DeadLetters = int64(len(f.letters))
	return f, nil
}

// Remove removes everything that the job keeps of a source, and writes the receipts of the open requests to remove it. by
// says who does it. It fails while a run works at the source. After ErrNotErased a request stays open, and what was removed
// is written down for the receipt of a later call, which repeats the last step.
func (w What) Remove(ctx context.Context, src Source, by string, now time.Time) (Removed, []Receipt, error) {
	asked, err := OpenOf(ctx, src.Store, w.Job, src.Name)
	if err != nil {
		return Removed{}, nil, err
	}
	tries := make([]Removed, len(asked))
	var values map[string][]string
	r, removed := w.removeAll(ctx, src, now, func(f found) (err error) {
		f.At, f.By, values = now, by, f.values
		for i, e := range asked {
			if tries[i], err = begin(ctx, src.Store, e, f.Removed); err != nil {
				return err
			}
		}
		return nil
	})
	for i, e := range asked {
		if tries[i].At.IsZero() { // it ended before it had looked
			tries[i] = Removed{At: now, By: by}
		}
		if err := end(ctx, src.Store, e, tries[i], removed); err != nil {
			return r, nil, errors.Join(removed, err)
		}
	}
	if removed != nil || len(asked) == 0 {
		return r, nil, removed
	}
	left, err := w.nothing(ctx, src, values)
	if err != nil {
		return r, nil, err
	}
	database := ""
	if src.DB != nil {
		database = string(src.DB.Dialect)
	}
	var receipts []Receipt
	for _, e := range asked {
		done, err := Done(ctx, src.Store, e, Receipt{DoneAt: now.UTC(), By: by, Left: left, Erased: src.DB != nil, Database: database})
		if err != nil {
			return r, receipts, err
		}
		receipts = append(receipts, done)
	}
	return r, receipts, nil
}

// nothing counts what is left of a source. Anything is an error, because a receipt says that nothing is.
func (w What) nothing(ctx context.Context, src Source, values map[string][]string) (map[string]int64, error) {
	left, err := w.find(ctx, src, values)
	if err != nil {
		return nil, fmt.Errorf("looking for what is left of %s: %w", src.Name, err)
	}
	for _, table := range slices.Sorted(maps.Keys(left.Rows)) {
		if n := left.Rows[table]; n > 0 {
			return nil, fmt.Errorf("%d rows of %s were written while %s was removed; remove it again when no run is at work", n, table, src.Name)
		}
	}
	if len(left.keys) > 0 {
		return nil, fmt.Errorf("%s was written while %s was removed; remove it again when no run is at work", left.keys[0], src.Name)
	}
	if w.Objects != nil {
		left.Rows["objects"] = 0 // as was found above
	}
	return left.Rows, nil
}

// removeAll removes a source and erases it. It calls begin with what it will remove before it removes anything.
func (w What) removeAll(ctx context.Context, src Source, now time.Time, begin func(found) error) (r Removed, err error) {
	err = w.alone(ctx, src, func(ctx context.Context, src Source) (err error) {
		r, err = w.remove(ctx, src, now, begin)
		return err
	})
	if err == nil && w.Lease != "" {
		err = lease.Forget(ctx, src.DB, w.Lease+src.Name)
	}
	if err != nil {
		return r, fmt.Errorf("removing %s: %w", src.Name, err)
	}
	if src.DB == nil {
		return r, nil
	}
	tables := []string{lease.Table}
	for _, t := range w.Tables {
		tables = append(tables, t.Name)
	}
	if err = src.DB.Erase(ctx, tables...); err == nil && w.Erase != nil {
		err = w.Erase(ctx, src.DB)
	}
	if err != nil {
		return r, fmt.Errorf("removing %s: %w: %w", src.Name, ErrNotErased, err)
	}
	return r, nil
}

// alone calls do under the source's lease.
func (w What) alone(ctx context.Context, src Source, do func(context.Context, Source) error) error {
	if w.Alone != nil {
		return w.Alone(ctx, src, do)
	}
	holder := lease.CurrentHolder()
	holder.Job = w.Job
	l, err := lease.Acquire(ctx, lease.InDB(src.DB), w.Lease+src.Name, holder, time.Minute)
	if err != nil {
		return err
	}
	ctx, release := l.Keep(ctx, func(lease.Event) {}) // ctx ends when the lease is lost
	err = do(ctx, src)
	return errors.Join(err, release())
}

func (w What) remove(ctx context.Context, src Source, now time.Time, begin func(found) error) (Removed, error) {
	f, err := w.find(ctx, src, nil)
	if err == nil && w.Before != nil {
		err = w.Before(ctx, src, now, &f.Removed)
	}
	if err == nil {
		err = begin(f)
	}
	if err != nil {
		return f.Removed, err
	}
	for _, key := range f.keys {
		if err := store.Remove(ctx, src.Store, key); err != nil {
			return f.Removed, err
		}
	}
	for _, p := range w.Parts {
		if err := p.Remove(ctx, src); err != nil {
			return f.Removed, err
		}
	}
	if err := ledger.RemoveSite(ctx, src.Store, w.Job, src.Name); err != nil {
		return f.Removed, err
	}
	if src.DB != nil {
		if err := w.empty(ctx, src, f.values, now); err != nil {
			return f.Removed, err
		}
	}
	for _, id := range f.letters {
		if err := ledger.Remove(ctx, src.Store, w.Job, id); err != nil {
			return f.Removed, err
		}
	}
	return f.Removed, nil
}

// empty deletes a source's rows.
func (w What) empty(ctx context.Context, src Source, values map[string][]string, now time.Time) error {
	return src.DB.Tx(ctx, func(tx *sql.Tx) error {
		for _, t := range w.Tables {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+t.Name+` WHERE `+t.Column+` `+src.DB.AnyOf(1), src.DB.List(values[t.Name])); err != nil {
				return fmt.Errorf("deleting the rows of %s: %w", t.Name, err)
			}
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+w.Hosts+` WHERE next_at <= $1`, db.Micros(now)); err != nil {
			return fmt.Errorf("deleting pauses that are over: %w", err)
		}
		if w.After == nil {
			return nil
		}
		return w.After(ctx, tx, src, now)
	})
}

// Do does the open requests about the job's sources, each source once, and calls said with what came of it. What cannot be
// done does not keep it from the others, and stays open.
func (w What) Do(ctx context.Context, src Source, by string, now time.Time, said func(e Entry, r Removed, receipts []Receipt, err error)) error {
	open, err := OpenOf(ctx, src.Store, w.Job, "")
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, e := range open {
		if done[e.Provider] {
			continue
		}
		done[e.Provider], src.Name = true, e.Provider
		r, receipts, err := w.Remove(ctx, src, by, now)
		said(e, r, receipts, err)
	}
	return nil
}

// Under yields the objects whose keys begin with a source's prefix.
func Under(prefixes ...string) func(context.Context, Source) iter.Seq2[store.Object, error] {
	return func(ctx context.Context, src Source) iter.Seq2[store.Object, error] {
		return func(yield func(store.Object, error) bool) {
			for _, prefix := range prefixes {
				for o, err := range src.Store.List(ctx, prefix+src.Name+"/") {
					if !yield(o, err) {
						return
					}
				}
			}
		}
	}
}

// Rows are tables with a source's name in one column.
func Rows(column string, tables ...string) (all []Table) {
	for _, name := range tables {
		all = append(all, Table{Name: name, Column: column})
	}
	return all
}
