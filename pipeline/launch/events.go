package launch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/event"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// eventsEvery is the time between two looks for what a stream stored.
const eventsEvery = time.Minute

// openEvents opens what --events names.
func (r *run) openEvents(ctx context.Context) (err error) {
	if r.o.Events == "" {
		return nil
	}
	if err := queue.CheckOut(r.o.Events); err != nil {
		return usage.Errorf("--events: %w", err)
	}
	if r.events, err = queue.OpenOut(ctx, r.o.Events); err != nil {
		return err
	}
	r.undo = append(r.undo, r.events.Close)
	return nil
}

// beginEvents begins to send events of the rows that the run stores. Those of a stream go out from time to time; end sends the rest.
func (r *run) beginEvents(ctx context.Context, id string) (end func(*ledger.Report), err error) {
	if r.events == nil {
		return func(*ledger.Report) {}, nil
	}
	if err := event.Begin(ctx, r.store, r.job, time.Now()); err != nil {
		return nil, err
	}
	streamed, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seen := int64(-1); r.o.Streaming; {
			select {
			case <-streamed.Done():
				return
			case <-time.After(eventsEvery):
			}
			if n := r.kept(streamed, id); n != seen && r.sendEvents(streamed, id) == nil { // no listing while nothing comes
				seen = n
			}
		}
	}()
	return func(report *ledger.Report) {
		stop()
		<-done
		if report == nil || report.State == ledger.Interrupted || report.State == ledger.Cancelled { // who ends a run does not wait: the next run sends
			return
		}
		_ = r.interruptible(ctx, func(ctx context.Context) error { return r.sendEvents(ctx, id) }) // it has warned
	}, nil
}

// kept is how many items the run has stored so far.
func (r *run) kept(ctx context.Context, id string) int64 {
	counter := r.o.Target().LiveCount
	if w, ok := lane.Find(id); ok {
		return w.Live().Counts[counter]
	}
	p, err := ledger.ReadProgress(ctx, r.store, id)
	if err != nil {
		return -1 // look
	}
	return p.Tally.Counts[counter]
}

// sendEvents sends what is stored and not sent. What cannot be sent waits for the next run: the result of this one is the same.
func (r *run) sendEvents(ctx context.Context, id string) error {
	sent, err := r.trySendEvents(ctx)
	switch {
	case err != nil:
		r.log(id).Warn("events_not_sent", "sent", sent, "error", ledger.Redact(err.Error()))
	case sent > 0:
		r.log(id).Info("events_sent", "sent", sent)
	}
	return err
}

func (r *run) trySendEvents(ctx context.Context) (sent int, err error) {
	now := time.Now()
	all := r.o.Target().Rows
	what := all[slices.IndexFunc(all, func(w rows.What) bool { return w.Event != nil })]
	src := rows.Source{Store: r.store}
	if what.Migrate != nil {
		if src.DB, err = what.Open(ctx, r.o.DB); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, src.DB.Close()) }()
	}
	return event.Send(ctx, what, src, r.events, now)
}
