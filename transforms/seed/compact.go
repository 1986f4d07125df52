package seed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/delta"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Compacted says what Compact did.
type Compacted struct {
	Replaced int64 // parts
	By       int64 // parts
}

// Compact merges small parts of each lane by one commit, and removes the files that the table has not named for delta.Retention. It may be
// killed anywhere. The caller must have the job's lease.
func Compact(ctx context.Context, s store.Store, runID string) (done Compacted, err error) {
	tables, err := domaintable.Tables(ctx, s)
	if err != nil || tables[""] == nil {
		return done, err
	}
	log, parts, err := tables[""].Begin(ctx, "compact")
	if err != nil {
		return done, err
	}
	small := slices.DeleteFunc(slices.Clone(parts), func(p domaintable.Part) bool {
		return p.Rows.Size+p.WARC.Size >= segmentBytes/2 || p.Count >= segmentRows/2
	})
	alike := func(a, b domaintable.Part) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.N, b.N), cmp.Compare(a.ForcedBy, b.ForcedBy))
	}
	slices.SortStableFunc(small, func(a, b domaintable.Part) int { return cmp.Or(alike(a, b), a.Oldest.Compare(b.Oldest)) })
	m := merger{s: s, change: domaintable.Change{Operation: "OPTIMIZE", RunID: runID, Rewrite: true}}
	for i, p := range small {
		if i > 0 && alike(small[i-1], p) != 0 || m.pending.size >= segmentBytes || len(m.pending.rows) >= segmentRows {
			if err := m.flush(ctx); err != nil {
				return done, err
			}
		}
		if _, err := m.pending.addPart(ctx, s, p, func(table.Row) bool { return true }); err == nil {
			m.of = append(m.of, p)
		} else if !m.left.takes(err) {
			return done, err
		}
	}
	if err := m.flush(ctx); err != nil {
		return done, err
	}
	if len(m.change.Add) > 0 {
		if err := log.Commit(ctx, m.change); err != nil {
			return done, err
		}
	}
	if err := sweep(ctx, s, tables, delta.Retention); err != nil {
		return done, err
	}
	return Compacted{Replaced: int64(len(m.change.Remove)), By: int64(len(m.change.Add))}, m.left.err(len(parts))
}

// merger merges parts.
type merger struct {
	s       store.Store
	pending pending
	of      []domaintable.Part // those in pending
	change  domaintable.Change
	left    unread
}

// flush writes the merged part, if it is one of several.
func (m *merger) flush(ctx context.Context) error {
	of, p := m.of, m.pending
	m.of, m.pending = nil, pending{}
	if len(of) < 2 {
		return nil
	}
	written, err := domaintable.Write(ctx, m.s, domaintable.Part{N: of[0].N, Of: of[0].Of, ForcedBy: of[0].ForcedBy}, p.rows, p.records)
	m.change.Add, m.change.Remove = append(m.change.Add, written), append(m.change.Remove, of...)
	return err
}

// sweep removes the objects that no version since keep before now names, and their entries of the log: earlier versions cannot be read
// any more. No writer may be at work.
func sweep(ctx context.Context, s store.Store, tables map[string]*domaintable.Table, keep time.Duration) error {
	for key, err := range left(ctx, s, tables, keep) {
		if err != nil {
			return err
		}
		if err := store.Remove(ctx, s, key); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := t.Trim(ctx, keep); err != nil {
			return err
		}
	}
	return nil
}

// left yields the objects of parts that no version since keep before now names, of the table and of what is staged.
func left(ctx context.Context, s store.Store, tables map[string]*domaintable.Table, keep time.Duration) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		named := map[string]bool{}
		for _, t := range tables {
			if err := t.Named(ctx, keep, func(id string) { named[id] = true }); err != nil {
				yield("", err)
				return
			}
		}
		for o, err := range s.List(ctx, domaintable.Root) {
			if err != nil {
				yield("", fmt.Errorf("listing %s: %w", domaintable.Root, err))
				return
			}
			if id, ok := domaintable.IDOf(o.Key); ok && !named[id] && !yield(o.Key, nil) {
				return
			}
		}
	}
}

// Materialized says what Materialize did.
type Materialized struct {
	Parts   int64 // that were read
	Written int64 // domains, for each partition
	There   int64 // domains whose objects were there before
}

// materializedFrom is the metadata of a mark that Materialize wrote: which visit the
// objects have.
const materializedFrom = "collected_at"

// Materialize writes the objects' layout of the table: the bytes that Objects would have written, and their marks. A call that was
// cut off is resumed by the next one. Parts that are damaged or missing are left out: the error names them, at most maxNamed, after
// the others are written.
func Materialize(ctx context.Context, s store.Store) (done Materialized, err error) {
	parts, err := domaintable.All(ctx, s)
	if err != nil {
		return done, err
	}
	var left unread
	for _, p := range parts {
		rows, err := p.ReadRows(ctx, s)
		var records []byte
		if err == nil {
			records, err = p.ReadWARC(ctx, s)
		}
		if left.takes(err) {
			continue
		}
		if err != nil {
			return done, err
		}
		done.Parts++
		written := make([]bool, len(rows))
		var writes errgroup.Group
		writes.SetLimit(maxMaterialized)
		for i, r := range rows {
			writes.Go(func() (err error) { written[i], err = materialize(ctx, s, r, records, p.ForcedBy); return err })
		}
		if err := writes.Wait(); err != nil {
			return done, err
		}
		for _, w := range written {
			if w {
				done.Written++
			} else {
				done.There++
			}
		}
	}
	return done, left.err(len(parts))
}

// unread is why parts could not be read that are damaged or missing.
type unread []error

// maxNamed is how many parts an error names.
const maxNamed = 10

// takes reports whether err says that a part is damaged or missing, and keeps it.
func (u *unread) takes(err error) bool {
	takes := errors.Is(err, domaintable.ErrDamaged)
	if takes {
		*u = append(*u, err)
	}
	return takes
}

func (u unread) err(of int) error {
	if len(u) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d parts could not be read: %w", len(u), of, errors.Join(u[:min(len(u), maxNamed)]...))
}

// maxMaterialized is how many domains are written at the same time.
const maxMaterialized = 64

// visited identifies a domain in a partition with few bytes.
type visited [16]byte

func visitedAs(p hive.Partition, name string) visited {
	sum := sha256.Sum256([]byte(p.Country + "/" + p.Category + "/" + p.Date + "/" + name))
	return visited(sum[:16])
}

// member returns the bytes of a record.
func member(records []byte, e table.Evidence) ([]byte, error) {
	if e.Offset < 0 || e.Length < 0 || e.Offset > int64(len(records)) || e.Length > int64(len(records))-e.Offset {
		return nil, errors.New("its WARC file has no such bytes")
	}
	return records[e.Offset : e.Offset+e.Length], nil
}

// materialize writes the objects of one row, its mark last, unless they are there.
func materialize(ctx context.Context, s store.Store, r table.Row, records []byte, forceID string) (written bool, err error) {
	p, name := r.Partition(), r.RegistrableDomain
	dir, key, at := p.DomainDir(name)+"/", metadataKey(p, name), r.CollectedAt.UTC().Format("2006-01-02T15:04:05.000Z")
	there, err := marked(ctx, s, key+hive.Success, func(o store.Object) bool { return o.Metadata[materializedFrom] == at })
	if err != nil || there {
		return false, err
	}
	bodies := map[string][]byte{}
	for _, e := range r.Evidence {
		b, err := member(records, e)
		if err != nil {
			return false, fmt.Errorf("the evidence of %s: %w", r.DomainID, err)
		}
		rec, err := warc.Read(b)
		if err != nil {
			return false, fmt.Errorf("the evidence of %s: %w", r.DomainID, err)
		}
		if bodies[e.File], err = rec.Body(); err != nil {
			return false, fmt.Errorf("the evidence of %s: %w", r.DomainID, err)
		}
	}
	var items []store.Item
	for _, file := range slices.Sorted(maps.Keys(evidenceTypes)) {
		if body, ok := bodies[file]; ok {
			items = append(items, store.Item{Key: dir + file, Body: body, Options: store.PutOptions{ContentType: evidenceTypes[file]}})
		} else if err := store.Remove(ctx, s, dir+file); err != nil {
			return false, err
		}
	}
	items = append(items, store.Item{Key: key, Body: []byte(r.Document), Options: metadataOptions(p, r.DomainID, name)})
	if err := errors.Join(store.PutAll(ctx, s, items)...); err != nil {
		return false, err
	}
	o := Config{ForceID: forceID}.marker()
	if o.Metadata == nil {
		o.Metadata = map[string]string{}
	}
	o.Metadata[materializedFrom] = at
	return true, store.Write(ctx, s, key+hive.Success, nil, o)
}
