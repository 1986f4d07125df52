package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

const (
	// kept runs are on the board; older ones are in the store alone.
	kept = 1000
	// A look at the store takes at most one part in lookShare of the time.
	lookShare   = 20
	lookActive  = 2 * time.Second  // at the runs that are not over
	lookNew     = 10 * time.Second // for runs that others started
	lookAll     = 5 * time.Minute  // for runs that were purged
	lookBack    = 10 * time.Minute // ids sort by their servers' clocks: a new one may stand behind a known one
	keepSamples = 240
	saveSamples = 15 * time.Second
	// reportWithin is how long after its end a run's report is waited for: it is
	// written after the state. A killed run has none.
	reportWithin = time.Minute
)

// entry is what the board knows of a run. It is not changed once it is shown.
type entry struct {
	job      job // zero where the server does not know it
	Run      ledger.Run
	Report   ledger.Report
	Control  ledger.Action // what an active run is asked to do
	Starting bool          // it is not in the ledger yet
	Broken   bool          // its state cannot be read
	Awaited  bool          // it is over, and its report is yet to come
	Unsaid   bool          // it is over, and nobody waited for it who could write a report
	Samples  []sample
}

// State is the run's state in a word.
func (e *entry) State() string {
	switch {
	case e.Broken:
		return "unreadable"
	case e.Starting:
		return "starting"
	case !e.Run.State.Over() && e.Control == ledger.ActionPause:
		return string(ledger.Paused)
	case !e.Run.State.Over() && e.Control == ledger.ActionCancel:
		return "cancelling"
	}
	return string(e.Run.State)
}

// Active says that the run is not over.
func (e *entry) Active() bool { return !e.Broken && (e.Starting || !e.Run.State.Over()) }

// sample is how far a run was at one time.
type sample struct {
	At       time.Time `json:"at"`
	Done     int64     `json:"done"` // hosts, of all lanes
	Requests int64     `json:"requests"`
	Failures int64     `json:"failures"` // requests failed below HTTP
}

// board holds the newest runs in memory, so that a thousand people who look
// at the dashboard cost the store nothing.
type board struct {
	store store.Store
	log   *slog.Logger
	jobs  jobList

	mu     sync.Mutex // of what follows, and of entries' replacement
	byID   map[string]*entry
	saved  map[string]time.Time // of each active run's samples
	newAt  time.Time            // when to look for new runs
	allAt  time.Time
	nextAt time.Time // when to look at the active ones
	okAt   time.Time // the store answered

	shown   atomic.Pointer[[]*entry] // newest first
	version atomic.Int64
	changed chan struct{} // closed and replaced at each change
}

func newBoard(s store.Store, log *slog.Logger, known jobList) *board {
	b := &board{store: s, log: log, jobs: known, byID: map[string]*entry{}, saved: map[string]time.Time{}, changed: make(chan struct{})}
	b.shown.Store(&[]*entry{})
	return b
}

func (b *board) newEntry(r ledger.Run) *entry {
	j, _ := b.jobs.named(r.Job)
	return &entry{job: j, Run: r}
}

// runs are the board's entries, newest first; not to be changed.
func (b *board) runs() []*entry { return *b.shown.Load() }

// change wakes those who wait for the next version.
func (b *board) change() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.show()
}

// show makes the entries visible; the caller holds mu.
func (b *board) show() {
	all := make([]*entry, 0, len(b.byID))
	for _, e := range b.byID {
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y *entry) int { return strings.Compare(y.Run.RunID, x.Run.RunID) })
	if len(all) > kept {
		for _, old := range all[kept:] {
			delete(b.byID, old.Run.RunID)
		}
		all = all[:kept]
	}
	b.shown.Store(&all)
	b.version.Add(1)
	close(b.changed)
	b.changed = make(chan struct{})
}

// next is closed at the next change.
func (b *board) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// started puts a run on the board that this server starts.
func (b *board) started(r ledger.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.State = ledger.Running
	e := b.newEntry(r)
	e.Starting, e.Report = true, ledger.BuildReport(e.job.Job, r, ledger.Tally{}, r.StartedAt)
	b.byID[r.RunID] = e
	b.nextAt = time.Time{}
	b.show()
}

// find gives one run, from the store if the board has it no more; the error
// matches store.ErrNotExist when there is none.
func (b *board) find(ctx context.Context, id string, now time.Time) (*entry, error) {
	b.mu.Lock()
	e := b.byID[id]
	b.mu.Unlock()
	if e != nil {
		return e, nil
	}
	return b.read(ctx, id, nil, now)
}

// ready says whether the store has answered of late.
func (b *board) ready(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.okAt.IsZero() && now.Sub(b.okAt) < time.Minute
}

// look brings the board up to date with the store, as far as it is time for it.
func (b *board) look(ctx context.Context, now time.Time) error {
	b.mu.Lock()
	news, all, active := !now.Before(b.newAt), !now.Before(b.allAt), !now.Before(b.nextAt)
	b.mu.Unlock()
	begin := time.Now()
	var err error
	if news {
		err = b.lookForNew(ctx, all, now)
	}
	if active && err == nil {
		err = b.lookAtActive(ctx, now)
	}
	if !news && !active {
		return nil
	}
	took := time.Since(begin)
	b.mu.Lock()
	defer b.mu.Unlock()
	if active {
		b.nextAt = now.Add(max(lookActive, lookShare*took))
	}
	if news {
		b.newAt = now.Add(max(lookNew, lookShare*took))
	}
	if err == nil {
		b.okAt = now
		if all {
			b.allAt = now.Add(lookAll)
		}
	}
	return err
}

// lookForNew reads the runs that are not on the board yet; with all also
// forgets those that are gone from the store.
func (b *board) lookForNew(ctx context.Context, all bool, now time.Time) error {
	there := map[string]bool{}
	var fresh []ledger.Run
	var broken []string
	for r, err := range ledger.List(ctx, b.store) {
		switch {
		case err != nil && r.RunID == "":
			return err
		case err != nil:
			broken = append(broken, r.RunID)
		}
		there[r.RunID] = true
		b.mu.Lock()
		known := b.byID[r.RunID]
		b.mu.Unlock()
		if known == nil && err == nil {
			fresh = append(fresh, r)
		}
		old := known != nil && known.Run.StartedAt.Before(now.Add(-lookBack))
		if !all && old || len(there) >= kept {
			break
		}
	}
	entries := make([]*entry, len(fresh))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, r := range fresh {
		g.Go(func() error {
			var err error
			entries[i], err = b.entryOf(gctx, r, nil, now)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := len(entries) > 0
	for _, e := range entries {
		b.byID[e.Run.RunID] = e
	}
	for _, id := range broken {
		if b.byID[id] == nil {
			b.byID[id] = &entry{Run: ledger.Run{RunID: id}, Broken: true}
			changed = true
		}
	}
	if all && len(there) < kept {
		for id, e := range b.byID {
			if !there[id] && !e.Starting {
				delete(b.byID, id)
				changed = true
			}
		}
	}
	if changed || b.okAt.IsZero() {
		b.show()
	}
	return nil
}

// lookAtActive reads the runs again that were not over.
func (b *board) lookAtActive(ctx context.Context, now time.Time) error {
	for _, e := range b.runs() {
		if !e.Active() && !e.Awaited && !e.Unsaid {
			continue
		}
		fresh, err := b.read(ctx, e.Run.RunID, e, now)
		if errors.Is(err, store.ErrNotExist) && e.Starting {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return err
		}
		b.mu.Lock()
		if errors.Is(err, store.ErrNotExist) {
			delete(b.byID, e.Run.RunID)
		} else {
			b.byID[e.Run.RunID] = fresh
		}
		b.show()
		b.mu.Unlock()
		if fresh != nil {
			b.keepSamples(ctx, fresh, now)
		}
	}
	return nil
}

// again reads a run at once, after something was asked of it.
func (b *board) again(ctx context.Context, e *entry, now time.Time) error {
	fresh, err := b.read(ctx, e.Run.RunID, e, now)
	if errors.Is(err, store.ErrNotExist) {
		return nil // it is being started
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byID[e.Run.RunID] = fresh
	b.show()
	return nil
}

func (b *board) read(ctx context.Context, id string, before *entry, now time.Time) (*entry, error) {
	r, err := ledger.Load(ctx, b.store, id)
	if err != nil {
		return nil, err
	}
	return b.entryOf(ctx, r, before, now)
}

// entryOf reads all of a run but its state.
func (b *board) entryOf(ctx context.Context, r ledger.Run, before *entry, now time.Time) (*entry, error) {
	e := b.newEntry(r)
	err := store.ErrNotExist
	if r.State.Over() {
		e.Report, err = ledger.ReadReport(ctx, b.store, r.RunID)
		e.Awaited = errors.Is(err, store.ErrNotExist) && now.Sub(r.FinishedAt) < reportWithin
		e.Unsaid = errors.Is(err, store.ErrNotExist) && r.Async
	}
	if errors.Is(err, store.ErrNotExist) {
		e.Report, err = ledger.ReportSoFar(ctx, b.store, e.job.Job, r, now)
	}
	if err != nil {
		return &entry{Run: r, Broken: true}, nil // the listing continues; the command line says what is wrong
	}
	if before != nil && !before.Starting {
		e.Samples = before.Samples
	} else if e.Samples, err = readSamples(ctx, b.store, r.RunID); err != nil && !errors.Is(err, store.ErrNotExist) {
		return nil, err
	}
	if before != nil || !r.State.Over() {
		e.Samples = addSample(e.Samples, e.Report, now)
	}
	if r.State.Over() {
		return e, nil
	}
	c, err := ledger.ReadControl(ctx, b.store, r.RunID)
	if err != nil {
		return nil, err
	}
	e.Control = c.Action
	return e, nil
}

// addSample notes how far a run is, if that has changed; of too many samples
// every other one goes.
func addSample(all []sample, r ledger.Report, now time.Time) []sample {
	s := sample{At: now.UTC(), Requests: r.HTTP.Requests, Failures: r.HTTP.Unanswered()}
	for _, l := range r.Lanes {
		s.Done += l.HostsDone
	}
	if n := len(all); n > 0 && all[n-1].Done == s.Done && all[n-1].Requests == s.Requests {
		return all
	}
	all = append(slices.Clip(slices.Clone(all)), s)
	if len(all) <= keepSamples {
		return all
	}
	var half []sample
	for i, s := range all {
		if i%2 == 0 || i == len(all)-1 {
			half = append(half, s)
		}
	}
	return half
}

func samplesKey(id string) string { return "runs/" + id + "/samples.json" }

// keepSamples writes an active run's samples now and then, so that its chart
// outlives the server. They are for those who watch: the log says when they
// cannot be kept, and the run continues.
func (b *board) keepSamples(ctx context.Context, e *entry, now time.Time) {
	if last, ok := b.saved[e.Run.RunID]; ok && e.Active() && now.Sub(last) < saveSamples {
		return
	}
	b.saved[e.Run.RunID] = now
	if err := putJSON(ctx, b.store.Put, samplesKey(e.Run.RunID), e.Samples); err != nil {
		b.log.Warn("samples_not_kept", "run_id", e.Run.RunID, "error", ledger.Redact(err.Error()))
	}
	if !e.Active() {
		delete(b.saved, e.Run.RunID)
	}
}

func readSamples(ctx context.Context, s store.Store, id string) ([]sample, error) {
	var all []sample
	err := getJSON(ctx, s, samplesKey(id), &all)
	return all, err
}

// maxObject bounds what is read of one of the server's own objects.
const maxObject = 16 << 20

func getJSON(ctx context.Context, s store.Store, key string, v any) error {
	var b []byte
	err := store.Retry(ctx, func() error {
		r, err := s.Open(ctx, key)
		if err != nil {
			return err
		}
		b, err = io.ReadAll(io.LimitReader(r, maxObject))
		return errors.Join(err, r.Close())
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	return nil
}

type putFunc func(context.Context, string, io.Reader, store.PutOptions) error

func putJSON(ctx context.Context, put putFunc, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", key, err)
	}
	err = store.Retry(ctx, func() error {
		return put(ctx, key, strings.NewReader(string(b)), store.PutOptions{ContentType: "application/json"})
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}
