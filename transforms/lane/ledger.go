package lane

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/ledger"
)

// letters remembers which dead letters the job has, so that a success only
// takes one away where there is one.
type letters struct {
	sync.Mutex
	read bool
	ids  map[string]bool
}

func (w *Worker) knownLetters(ctx context.Context) error {
	if w.letters.read {
		return nil
	}
	ids := map[string]bool{}
	for id, err := range ledger.DeadLetterIDs(ctx, w.Store, w.cfg.Job) {
		if err != nil {
			return err
		}
		ids[id] = true
	}
	w.letters.ids, w.letters.read = ids, true
	return nil
}

// DeadLetter keeps what could not be done for a person and counts it.
func (w *Worker) DeadLetter(ctx context.Context, d ledger.DeadLetter) error {
	if err := ledger.Put(ctx, w.Store, d); err != nil {
		return fmt.Errorf("keeping a dead letter (%s): %w", d.Kind, err)
	}
	var t ledger.Tally
	t.DeadLetter(d.Kind)
	w.mu.Lock()
	w.letterTally.Add(t)
	w.mu.Unlock()
	w.letters.Lock()
	defer w.letters.Unlock()
	if w.letters.read {
		w.letters.ids[d.ID()] = true
	}
	return nil
}

// Forgive takes the dead letter of an input away after a success.
func (w *Worker) Forgive(ctx context.Context, d ledger.DeadLetter) error {
	w.letters.Lock()
	defer w.letters.Unlock()
	if err := w.knownLetters(ctx); err != nil {
		return fmt.Errorf("listing dead letters: %w", err)
	}
	if len(w.letters.ids) == 0 { // nearly always: spares every success its hash
		return nil
	}
	id := d.ID()
	if !w.letters.ids[id] {
		return nil
	}
	if err := ledger.Remove(ctx, w.Store, d.Job, id); err != nil {
		return err
	}
	delete(w.letters.ids, id)
	return nil
}

// Total writes the run's sum into the ledger.
func (w *Worker) Total(ctx context.Context, t ledger.Tally) error {
	if err := ledger.WriteTotal(ctx, w.Store, w.cfg.RunID, t); err != nil {
		return fmt.Errorf("writing the run's total: %w", err)
	}
	return nil
}

// Progress keeps a lane's progress object in the ledger fresh.
type Progress struct {
	w    *Worker
	lane int
	now  ledger.Progress
	sent ledger.Tally // requests and store calls since its beginning
	last time.Time

	counted ledger.Counts // by Beam's counters so far
}

// progressEvery is how often a lane tells the ledger how far it is.
const progressEvery = 5 * time.Second

// Progress begins the progress of lane n, which has that many hosts.
func (w *Worker) Progress(n, hosts int) *Progress {
	return &Progress{w: w, lane: n, now: ledger.Progress{Hosts: int64(hosts)}, last: time.Now()}
}

// Report notes one host more, and every five seconds writes the lane's
// figures. Progress is for those who watch: where it cannot be written, the
// lane goes on and the log says so.
func (p *Progress) Report(ctx context.Context, sum ledger.Tally) {
	p.now.HostsDone++
	if time.Since(p.last) < progressEvery {
		return
	}
	if err := p.write(ctx, sum); err != nil {
		p.w.Log.Warn("progress_not_written", "lane", p.lane, "error", ledger.Redact(err.Error()))
	}
}

// End writes the lane's last figures.
func (p *Progress) End(ctx context.Context, sum ledger.Tally) {
	p.now.Finished = true
	if err := p.write(ctx, sum); err != nil {
		p.w.Log.Warn("progress_not_written", "lane", p.lane, "error", ledger.Redact(err.Error()))
	}
}

func (p *Progress) write(ctx context.Context, sum ledger.Tally) error {
	for name, n := range sum.Counts {
		beam.NewCounter("lanes", name).Inc(ctx, n-p.counted[name])
	}
	p.counted = maps.Clone(sum.Counts)
	p.last = time.Now()
	p.sent.Add(p.w.unshown())
	var now ledger.Tally // a copy: sum is the lane's own, and goes on without them
	now.Add(sum)
	now.Add(p.sent)
	p.now.UpdatedAt, p.now.Tally = p.last, now
	return ledger.WriteProgress(ctx, p.w.Store, p.w.cfg.RunID, p.lane, p.now)
}
