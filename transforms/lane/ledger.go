package lane

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

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
	w.count(t)
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

// Progress keeps a lane's progress object in the ledger fresh, and Beam's
// counters of the lanes for the runner's console.
type Progress struct {
	w       *Worker
	lane    int
	counted ledger.Counts // by Beam's counters so far
	told    time.Time     // when Beam's counters were told last
	stop    context.CancelFunc
	stopped chan struct{}

	mu  sync.Mutex
	now ledger.Progress
}

// progressEvery is how often a lane tells the ledger how far it is.
const progressEvery = 5 * time.Second

// Progress begins the progress of lane n, which has that many hosts. Every five
// seconds the lane's figures are written, also while one host keeps it waiting
// and in a pause, until End.
func (w *Worker) Progress(n, hosts int) *Progress {
	ctx, stop := context.WithCancel(w.ctx)
	p := &Progress{w: w, lane: n, stop: stop, stopped: make(chan struct{}), now: ledger.Progress{Hosts: int64(hosts)}, told: time.Now()}
	go func() {
		defer close(p.stopped)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.write(ctx)
			}
		}
	}()
	return p
}

// Report notes one host more. sum is what the lane has counted so far, for Beam's
// counters; the progress object has what Worker.Count was given. As End it is
// for the ProcessElement goroutine, whose context ctx is.
func (p *Progress) Report(ctx context.Context, sum ledger.Tally) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.HostsDone++
	if time.Since(p.told) >= time.Second { // for each host it would cost
		p.tell(ctx, sum)
	}
}

// End writes the lane's last figures.
func (p *Progress) End(ctx context.Context, sum ledger.Tally) {
	p.stop()
	<-p.stopped
	p.mu.Lock()
	p.now.Finished = true
	p.tell(ctx, sum)
	p.mu.Unlock()
	p.write(ctx)
}

func (p *Progress) tell(ctx context.Context, sum ledger.Tally) {
	grown := ledger.Counts{}
	for name, n := range sum.Counts {
		grown[name] = n - p.counted[name]
	}
	count(ctx, "lanes", grown)
	p.counted, p.told = maps.Clone(sum.Counts), time.Now()
}

// write puts the figures into the ledger. They are for those who watch: where
// they cannot be written, the lane goes on and the log says so.
func (p *Progress) write(ctx context.Context) {
	p.mu.Lock()
	p.now.Tally.Add(p.w.unshown())
	now := p.now
	now.UpdatedAt, now.Waits, now.Tally = time.Now(), p.w.waiting(), ledger.Tally{}
	now.Tally.Add(p.now.Tally)
	p.mu.Unlock()
	if err := ledger.WriteProgress(ctx, p.w.Store, p.w.cfg.RunID, p.lane, now); err != nil && ctx.Err() == nil {
		p.w.Log.Warn("progress_not_written", "lane", p.lane, "error", ledger.Redact(err.Error()))
	}
}
