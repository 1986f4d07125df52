package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/store/segment"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// sink stores results in the layout of the run, in two steps: a result is kept, and marked when the outage guard lets it
// pass. A packed result is marked by the commit of its segment.
type sink struct {
	cfg     Config
	w       *lane.Worker
	log     *segment.Log // nil: results are not packed
	pending pending
}

// keep stores what a visit found for a request, without a mark. Its row is in no segment yet.
func (s *sink) keep(ctx context.Context, q *request, got findings, name string, fresh bool) error {
	m, doc, err := got.document(s.cfg, *q)
	if err != nil {
		return err
	}
	if !s.cfg.Layout.Packs() {
		return got.store(ctx, s.w, s.cfg, *q, name, doc, fresh)
	}
	row, err := table.New(q.in, m, doc)
	if err != nil {
		return &invalidError{err}
	}
	row.ForcedBy = s.cfg.ForceID
	q.row = &row
	return nil
}

// mark writes the completion mark of a partition's metadata object key.
func (s *sink) mark(ctx context.Context, key, id, name string) error {
	if s.cfg.Layout.Packs() {
		return nil
	}
	if err := s.resolve(ctx, key, id, name); err != nil {
		return err
	}
	return store.Write(ctx, s.w.Store, key+hive.Success, nil, s.cfg.marker())
}

// resolve removes the dead letter of an earlier failure, before the mark: a marked domain
// is not visited again, so the dead letter could stay for ever.
func (s *sink) resolve(ctx context.Context, key, id, name string) error {
	if err := s.w.Resolve(ctx, domainDeadLetter(s.cfg, key, id, name)); err != nil {
		return fmt.Errorf("removing the dead letter of an earlier failure: %w", err)
	}
	return nil
}

// commit commits what was added to the segment.
func (s *sink) commit(ctx context.Context) error {
	for _, r := range s.pending.rows {
		if err := s.resolve(ctx, metadataKey(r.Partition(), r.RegistrableDomain), r.DomainID, r.RegistrableDomain); err != nil {
			return err
		}
	}
	return s.pending.commit(ctx, s.log, segment.Commit{ForcedBy: s.cfg.ForceID})
}

// late commits the rows of domains about which the lanes could not decide.
func (s *sink) late(ctx context.Context, files []undecidedFile) error {
	seen := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Unmarked {
			if seen[d.Key] || !s.cfg.Layout.Packs() {
				continue
			}
			seen[d.Key] = true
			var r table.Row
			if err := json.Unmarshal(d.Row, &r); err != nil {
				return fmt.Errorf("the row of %s: %w", d.ID, err)
			}
			if err := s.pending.add(evidence{}, r); err != nil { // it was not reached, so it has none
				return err
			}
		}
	}
	if len(s.pending.rows) == 0 {
		return nil
	}
	var err error
	if s.log, err = segment.Open(ctx, s.w.Store, late, s.cfg.Lane.RunID, func(segment.Commit) {}); err != nil {
		return err
	}
	return s.commit(ctx)
}

// open notes which results of the lane's hosts are done, and begins to write its segments.
func (l *laneRun) open(ctx context.Context) error {
	w, cfg, fn := l.fn.Worker, l.fn.Config, l.fn
	l.sink = sink{cfg: cfg, w: w}
	if !cfg.Layout.Packs() {
		l.listMarks(ctx)
		return nil
	}
	var err error
	if fn.earlier == nil {
		if fn.earlier, err = segment.List(ctx, w.Store, PackedRoot); err != nil {
			return err
		}
	}
	l.absent()
	if l.sink.log, err = fn.earlier.Open(ctx, l.n, cfg.Lanes, cfg.Lane.RunID, l.noteCommit()); err != nil {
		return fmt.Errorf("opening the lane's packed results: %w", err)
	}
	l.lane.Tick = l.flushFull
	return nil
}

// pack makes the evidence of a visit.
func (l *laneRun) pack(r *result, got findings) {
	var ids []string
	for _, q := range r.requests {
		if q.row != nil {
			ids = append(ids, q.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	e, err := got.pack(ids)
	if err != nil {
		l.fn.Worker.Log.Warn("evidence_file_save_failed", "registrable_domain", r.host.name, "error", err.Error())
		return
	}
	r.evidence = e
}

// rowJSON returns the row as it travels to Complete.
func (q request) rowJSON() []byte {
	if q.row == nil {
		return nil
	}
	b, _ := json.Marshal(q.row) // a struct of texts and numbers always encodes
	return b
}

// done counts a visit once its results cannot be lost any more.
func (l *laneRun) done(r result) {
	var rows []table.Row
	for _, q := range r.requests {
		if q.row != nil && q.state == collected {
			rows = append(rows, *q.row)
		}
	}
	if len(rows) == 0 {
		l.count(r)
		return
	}
	if err := l.sink.pending.add(r.evidence, rows...); err != nil {
		r.requests = slices.Clone(r.requests)
		for i := range r.requests {
			r.requests[i].state = unfinished
		}
		l.fn.Worker.Log.Error("store_failed", "registrable_domain", r.host.name, "error", err.Error())
		l.count(r)
		return
	}
	r.evidence = evidence{}
	for i := range r.requests {
		r.requests[i].row = nil
	}
	l.visits = append(l.visits, r)
	l.flushFull()
}

// flushFull commits the segment if it is large or old enough.
func (l *laneRun) flushFull() {
	if l.sink.pending.full(l.fn.Config.SegmentAge) {
		l.flush()
	}
}

// flush commits what the lane has gathered. If that fails, its domains are not done.
func (l *laneRun) flush() {
	if len(l.sink.pending.rows) == 0 {
		return
	}
	err := l.sink.commit(l.within)
	if err == nil {
		err = l.fn.Worker.Resolve(l.within, l.segmentDeadLetter(l.sink.log.Folder()))
	} else {
		l.segmentFailed(err)
	}
	for _, r := range l.visits {
		for i := range r.requests {
			if q := &r.requests[i]; err != nil && q.state == collected {
				q.state = unfinished
			}
		}
		l.count(r)
	}
	l.sink.pending, l.visits = pending{}, nil
}

// segmentDeadLetter is one dead letter for a lane or a segment: thousands, one for each
// domain, would tell a person no more.
func (l *laneRun) segmentDeadLetter(key string) ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: l.fn.Config.Lane.RunID, Kind: "store_failed", Stage: "store", Retryable: true,
		Input: ledger.Input{Key: key}}
}

func (l *laneRun) segmentFailed(err error) {
	w := l.fn.Worker
	if errors.Is(err, segment.ErrTakenOver) {
		w.Stop(fmt.Errorf("%w: %w", lease.ErrLost, err))
		return
	}
	if l.within.Err() != nil {
		return // the lane's lease is lost: its domains stay open, and are not failures
	}
	w.Log.Error("store_failed", "folder", l.sink.log.Folder(), "domains", len(l.sink.pending.rows), "error", ledger.Redact(err.Error()))
	d := l.segmentDeadLetter(l.sink.log.Folder())
	d.Error = err.Error()
	l.deadLetter(l.within, d)
}
