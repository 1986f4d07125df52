package seed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/store/segment"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Compacted says what Compact did.
type Compacted struct {
	Replaced int64 // segments
	By       int64 // segments
	Dropped  int64 // rows of domains that a later run visited again
}

// Compact merges small segments of each lane, and drops the rows of domains that were
// visited again. It may be killed anywhere: a merged segment's commit names those that
// it replaces, so no domain is lost or there twice. The caller must have the job's lease.
func Compact(ctx context.Context, s store.Store, runID string) (done Compacted, err error) {
	all := func(table.Row) bool { return true }
	together := func(ctx context.Context, m *merger, c segment.Commit) error { return m.add(ctx, c) }
	err = rewrite(ctx, s, runID, &done, small, all, together)
	return done, err
}

// rewrite gives the chosen segments of each lane to add, with a merger that keeps the rows
// for which keep is true, without those of domains that were visited again: what it
// writes is newer than every other segment. Segments that are damaged or missing stay,
// and its error names them after the others are done.
func rewrite(ctx context.Context, s store.Store, runID string, done *Compacted, chosen func(segment.Commit) bool, keep func(table.Row) bool,
	add func(context.Context, *merger, segment.Commit) error) error {
	commits, err := packedCommits(ctx, s)
	if err != nil {
		return err
	}
	newest := newestCommits(commits)
	x, err := segment.List(ctx, s, PackedRoot)
	if err != nil {
		return err
	}
	var left unread
	for _, dir := range x.Folders() {
		var own []segment.Commit
		log, err := segment.Open(ctx, s, dir, runID, func(c segment.Commit) {
			if chosen(c) {
				own = append(own, c)
			}
		})
		if err != nil {
			return err
		}
		m := merger{log: log, s: s, done: done, keep: func(r table.Row, c segment.Commit) bool {
			return keep(r) && newest[visitedAs(r.Partition(), r.RegistrableDomain)] == c.Key
		}}
		for _, c := range own {
			if err := add(ctx, &m, c); err != nil && !left.takes(err) {
				return err
			}
		}
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	return left.err(len(commits))
}

// merger merges segments of one folder.
type merger struct {
	log     *segment.Log
	s       store.Store
	keep    func(r table.Row, of segment.Commit) bool
	done    *Compacted
	pending pending
	of      []segment.Commit // the segments in pending
	dropped int64
}

// small reports whether a segment is worth merging.
func small(c segment.Commit) bool {
	var size, rows int64
	for _, f := range c.Files {
		size += f.Size
	}
	if f, ok := c.File(rowsFile); ok {
		rows = f.Count
	}
	return size < segmentBytes/2 && rows < segmentRows/2
}

func (m *merger) add(ctx context.Context, c segment.Commit) error {
	if len(m.of) > 0 && m.of[0].ForcedBy != c.ForcedBy {
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	rows, records, err := readSegment(ctx, m.s, c)
	if err != nil {
		return err
	}
	all := len(rows)
	rows = slices.DeleteFunc(rows, func(r table.Row) bool { return !m.keep(r, c) })
	m.dropped += int64(all - len(rows))
	for len(rows) > 0 {
		same := 1 // the rows of one visit follow each other and have the same evidence
		for same < len(rows) && len(rows[0].Evidence) > 0 && slices.Equal(rows[same].Evidence, rows[0].Evidence) {
			same++
		}
		e, err := copyEvidence(records, rows[0].Evidence)
		if err != nil {
			return fmt.Errorf("the evidence of %s: %w", rows[0].DomainID, err)
		}
		if err := m.pending.add(e, rows[:same]...); err != nil {
			return err
		}
		rows = rows[same:]
	}
	m.of = append(m.of, c)
	if m.pending.size >= segmentBytes || len(m.pending.rows) >= segmentRows {
		return m.flush(ctx)
	}
	return nil
}

// copyEvidence takes records out of a WARC file as they are.
func copyEvidence(records []byte, at []table.Evidence) (e evidence, err error) {
	for _, a := range at {
		b, err := member(records, a)
		if err != nil {
			return evidence{}, err
		}
		e.at = append(e.at, table.Evidence{File: a.File, Offset: int64(len(e.records)), Length: a.Length})
		e.records = append(e.records, b...)
	}
	e.size = len(e.records)
	return e, nil
}

// flush commits the merged segment, if that changes something, and removes those that
// it replaces.
func (m *merger) flush(ctx context.Context) error {
	of, p, dropped := m.of, m.pending, m.dropped
	m.of, m.pending, m.dropped = nil, pending{}, 0
	if len(of) < 2 && dropped == 0 {
		return nil
	}
	if len(p.rows) > 0 {
		c := segment.Commit{ForcedBy: of[0].ForcedBy}
		for _, o := range of {
			c.Replaces = append(c.Replaces, o.Key)
		}
		if err := p.commit(ctx, m.log, c); err != nil {
			return err
		}
		m.done.By++
	}
	for _, o := range of { // their rows are all in the new one, or visited again since
		if err := m.log.Remove(ctx, o); err != nil {
			return err
		}
		m.done.Replaced++
	}
	m.done.Dropped += dropped
	return nil
}

// Materialized says what Materialize did.
type Materialized struct {
	Segments int64 // that were read
	Written  int64 // domains, for each partition
	There    int64 // domains whose objects were there before
}

// materializedFrom is the metadata of a mark that Materialize wrote: which visit the
// objects have.
const materializedFrom = "collected_at"

// Materialize writes the objects' layout of all packed results: the bytes that Objects
// would have written, and their marks. Of several visits of a domain the newest counts.
// A call that was cut off is resumed by the next one. Segments that are damaged or
// missing are left out: the error names them, at most maxNamed, after the others are
// written.
func Materialize(ctx context.Context, s store.Store) (done Materialized, err error) {
	commits, err := packedCommits(ctx, s)
	if err != nil {
		return done, err
	}
	newest := newestCommits(commits)
	var left unread
	for _, c := range commits {
		rows, records, err := readSegment(ctx, s, c)
		if left.takes(err) {
			continue
		}
		if err != nil {
			return done, err
		}
		done.Segments++
		rows = slices.DeleteFunc(rows, func(r table.Row) bool { return newest[visitedAs(r.Partition(), r.RegistrableDomain)] != c.Key })
		written := make([]bool, len(rows))
		var writes errgroup.Group
		writes.SetLimit(maxMaterialized)
		for i, r := range rows {
			writes.Go(func() (err error) { written[i], err = materialize(ctx, s, r, records); return err })
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
	return done, left.err(len(commits))
}

// unread is why segments could not be read that are damaged or missing.
type unread []error

// maxNamed is how many segments an error names.
const maxNamed = 10

// takes reports whether err says that a segment is damaged or missing, and keeps it.
func (u *unread) takes(err error) bool {
	takes := errors.Is(err, segment.ErrDamaged) || errors.Is(err, store.ErrNotExist)
	if takes {
		*u = append(*u, err)
	}
	return takes
}

func (u unread) err(of int) error {
	if len(u) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d segments could not be read: %w", len(u), of, errors.Join(u[:min(len(u), maxNamed)]...))
}

// maxMaterialized is how many domains are written at the same time.
const maxMaterialized = 64

// packedCommits returns all commits of packed results, the oldest first.
func packedCommits(ctx context.Context, s store.Store) (all []segment.Commit, err error) {
	x, err := segment.List(ctx, s, PackedRoot)
	if err != nil {
		return nil, err
	}
	for c, err := range x.Commits(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b segment.Commit) int { return a.At.Compare(b.At) })
	return all, nil
}

// visited identifies a domain in a partition with few bytes.
type visited [16]byte

func visitedAs(p hive.Partition, name string) visited {
	sum := sha256.Sum256([]byte(p.Country + "/" + p.Category + "/" + p.Date + "/" + name))
	return visited(sum[:16])
}

// newestCommits returns the key of the newest commit of each domain, and lets commits
// forget their names. commits are sorted by time.
func newestCommits(commits []segment.Commit) map[visited]string {
	newest := map[visited]string{}
	for i, c := range commits {
		for _, d := range c.Done {
			p := partitionOf(d)
			for _, name := range d.Names {
				newest[visitedAs(p, name)] = c.Key
			}
		}
		commits[i].Done = nil
	}
	return newest
}

// readSegment reads a segment's rows and its WARC file.
func readSegment(ctx context.Context, s store.Store, c segment.Commit) (rows []table.Row, records []byte, err error) {
	for _, f := range c.Files {
		b, err := segment.Read(ctx, s, f)
		if err != nil {
			return nil, nil, err
		}
		if of, _ := c.File(rowsFile); of.Key != f.Key {
			records = b
			continue
		}
		if rows, err = table.Decode(b); err != nil {
			return nil, nil, fmt.Errorf("%s: %w: %w", f.Key, segment.ErrDamaged, err)
		}
	}
	return rows, records, nil
}

// member returns the bytes of a record.
func member(records []byte, e table.Evidence) ([]byte, error) {
	if e.Offset < 0 || e.Length < 0 || e.Offset > int64(len(records)) || e.Length > int64(len(records))-e.Offset {
		return nil, errors.New("its WARC file has no such bytes")
	}
	return records[e.Offset : e.Offset+e.Length], nil
}

// materialize writes the objects of one row, its mark last, unless they are there.
func materialize(ctx context.Context, s store.Store, r table.Row, records []byte) (written bool, err error) {
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
	o := Config{ForceID: r.ForcedBy}.marker()
	if o.Metadata == nil {
		o.Metadata = map[string]string{}
	}
	o.Metadata[materializedFrom] = at
	return true, store.Write(ctx, s, key+hive.Success, nil, o)
}
