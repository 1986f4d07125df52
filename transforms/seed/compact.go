package seed

import (
	"context"
	"fmt"
	"slices"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/segment"
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
