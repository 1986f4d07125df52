package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/delta"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// sink stores results in the layout of the run, in two steps: a result is kept, and marked when the outage guard lets it
// pass. A row of the table is marked by the commit of its part.
type sink struct {
	cfg     Config
	w       *lane.Worker
	log     *domaintable.Writer // nil: results are no rows of the table
	part    domaintable.Part    // whose rows are pending
	pending pending
	again   Wanted // those of which the table has rows
}

// tables are what the lanes of a process share: they commit together.
type tables struct {
	mu  sync.Mutex
	all map[string]*domaintable.Table // by the id of the forced run, "" for the table
}

func (t *tables) open(ctx context.Context, w *lane.Worker, forceID string) (*domaintable.Table, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[forceID] == nil {
		one, err := domaintable.Open(ctx, w.Store, forceID, func(err error) {
			w.Log.Warn("checkpoint_failed", "key", domaintable.Root, "error", ledger.Redact(err.Error()))
		})
		if err != nil {
			return nil, err
		}
		if t.all == nil {
			t.all = map[string]*domaintable.Table{}
		}
		t.all[forceID] = one
	}
	return t.all[forceID], nil
}

// begin begins to write to the table, or to what a forced run stages. It returns the parts that there are, and those that count as
// done in this run.
func (s *sink) begin(ctx context.Context, name string) (there, done []domaintable.Part, err error) {
	all, id := lane.Shared[tables](s.w), s.cfg.ForceID
	t, err := all.open(ctx, s.w, id)
	if err != nil {
		return nil, nil, err
	}
	if s.log, done, err = t.Begin(ctx, name); err != nil || id == "" {
		return done, done, err
	}
	main, err := all.open(ctx, s.w, "")
	if err != nil {
		return nil, nil, err
	}
	if there, err = main.Parts(ctx); err != nil {
		return nil, nil, err
	}
	there = append(there, done...)
	for _, p := range there {
		if p.ForcedBy == id && !slices.ContainsFunc(done, func(o domaintable.Part) bool { return o.ID == p.ID }) {
			done = append(done, p)
		}
	}
	return there, done, nil
}

// keep stores what a visit found for a request, without a mark. Its row is in no part yet.
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

// commit commits what was added to the part, in place of the rows that the table has of the same domains.
func (s *sink) commit(ctx context.Context) error {
	for _, r := range s.pending.rows {
		if err := s.resolve(ctx, metadataKey(r.Partition(), r.RegistrableDomain), r.DomainID, r.RegistrableDomain); err != nil {
			return err
		}
	}
	p, err := domaintable.Write(ctx, s.w.Store, s.part, s.pending.rows, s.pending.records)
	if err != nil {
		return err
	}
	c := domaintable.Change{Operation: "WRITE", RunID: s.cfg.Lane.RunID, Add: []domaintable.Part{p}}
	_, err = replace(ctx, s.w.Store, s.log, c, s.again)
	return err
}

// lateName is the name under which Complete writes the domains about which the lanes could not decide.
const lateName = "late"

// late commits the rows of domains about which the lanes could not decide.
func (s *sink) late(ctx context.Context, files []undecidedFile) error {
	seen := map[string]bool{}
	s.part, s.again = domaintable.Part{RunID: s.cfg.Lane.RunID, ForcedBy: s.cfg.ForceID}, Wanted{}
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
			s.again.Add(r.Partition(), r.RegistrableDomain) // a killed try may have written it
		}
	}
	if len(s.pending.rows) == 0 {
		return nil
	}
	if _, _, err := s.begin(ctx, lateName); err != nil {
		return err
	}
	return s.commit(ctx)
}

// open notes which results of the lane's hosts are done, and begins to write its parts.
func (l *laneRun) open(ctx context.Context) error {
	w, cfg := l.fn.Worker, l.fn.Config
	l.sink = sink{cfg: cfg, w: w}
	if !cfg.Layout.Packs() {
		l.listMarks(ctx)
		return nil
	}
	there, done, err := l.sink.begin(ctx, fmt.Sprintf("lane-%05d-of-%05d", l.n, cfg.Lanes))
	if err != nil {
		return fmt.Errorf("opening the table: %w", err)
	}
	other := func(p domaintable.Part) bool { return !shared(p, l.n, cfg.Lanes) }
	l.packed.parts = slices.DeleteFunc(slices.Clone(there), other)
	l.sink.part = domaintable.Part{N: l.n, Of: cfg.Lanes, RunID: cfg.Lane.RunID, ForcedBy: cfg.ForceID}
	l.sink.again = Wanted{}
	l.absent()
	note := l.noteDone()
	err = namesOf(ctx, w.Store, slices.DeleteFunc(slices.Clone(done), other), func(_ domaintable.Part, done []domaintable.Done) { note(done) })
	if err != nil {
		return fmt.Errorf("opening the table: %w", err)
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
			if q.mark == markPresent {
				l.sink.again.Add(q.in, r.host.name)
			}
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

// flushFull commits the part if it is large or old enough.
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
		err = l.fn.Worker.Resolve(l.within, l.segmentDeadLetter(l.sink.log.Name))
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
	l.sink.pending, l.sink.again, l.visits = pending{}, Wanted{}, nil
}

// segmentDeadLetter is one dead letter for a lane or a segment: thousands, one for each
// domain, would tell a person no more.
func (l *laneRun) segmentDeadLetter(key string) ledger.DeadLetter {
	return ledger.DeadLetter{Job: Job, RunID: l.fn.Config.Lane.RunID, Kind: "store_failed", Stage: "store", Retryable: true,
		Input: ledger.Input{Key: key}}
}

func (l *laneRun) segmentFailed(err error) {
	w := l.fn.Worker
	if errors.Is(err, delta.ErrTakenOver) {
		w.Stop(fmt.Errorf("%w: %w", lease.ErrLost, err))
		return
	}
	if l.within.Err() != nil {
		return // the lane's lease is lost: its domains stay open, and are not failures
	}
	w.Log.Error("store_failed", "writer", l.sink.log.Name, "domains", len(l.sink.pending.rows), "error", ledger.Redact(err.Error()))
	d := l.segmentDeadLetter(l.sink.log.Name)
	d.Error = err.Error()
	l.deadLetter(l.within, d)
}
