// Package runs starts runs as child processes and shows them: the newest in memory, their filters, logs, failures and comparisons.
//
// No promise: see docs/library.md.
package runs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
)

const (
	// MaxEntries is how many runs are on the board; older ones are only in the store.
	MaxEntries = 1000
	// Reading the store takes at most one part in refreshShare of the time.
	refreshShare   = 20
	activeInterval = 2 * time.Second  // for runs that are not over
	newInterval    = 10 * time.Second // for runs that others started, and for the mark of a demo
	fullInterval   = 5 * time.Minute  // for runs that were purged
	maxClockSkew   = 10 * time.Minute // between servers: run ids sort by the clock of their server, so a new id may sort before a known one
	maxSamples     = 240
	saveInterval   = 15 * time.Second
	// MaxReportDelay is how long after its end a run's report is expected. It is
	// written after the state. A killed run has none.
	MaxReportDelay = time.Minute
)

// Entry is what the board knows about a run. It is replaced, not changed.
type Entry struct {
	Job           known.Job // zero if the server does not know it
	Run           ledger.Run
	Report        ledger.Report
	Control       ledger.Action // the last control request to an active run
	Starting      bool          // it is not in the ledger yet
	Broken        bool          // its state cannot be read
	ReportPending bool          // the run is over and its report may still come
	Samples       []Sample
}

// State is the run's state as one word.
func (e *Entry) State() string {
	switch {
	case e.Broken:
		return "unreadable"
	case e.Starting:
		return "starting"
	case e.Silent():
		return string(ledger.Silent)
	case !e.Run.State.Over() && e.Control == ledger.ActionPause:
		return string(ledger.Paused)
	case !e.Run.State.Over() && e.Control == ledger.ActionCancel:
		return "cancelling"
	}
	return string(e.Run.State)
}

// Active reports whether the run is not over.
func (e *Entry) Active() bool { return !e.Broken && (e.Starting || !e.Run.State.Over()) }

// Silent reports whether the run gives no sign of life; Error says since when.
func (e *Entry) Silent() bool { return !e.Run.State.Over() && e.Report.State == ledger.Silent }

// Nothing reports whether the run failed before it requested or counted anything.
func (e *Entry) Nothing() bool {
	return e.State() == string(ledger.Failed) && !e.ReportPending &&
		e.Report.HTTP.Requests == 0 && known.Total(e.Report.Counts) == 0 && len(e.Report.Lanes) == 0
}

// Sample is a run's progress at one time.
type Sample struct {
	At       time.Time `json:"at"`
	Done     int64     `json:"done"` // hosts, of all lanes
	Requests int64     `json:"requests"`
	Failures int64     `json:"failures"` // requests failed below HTTP
}

// Board has the newest runs in memory, so that the number of people at the
// dashboard does not change the number of store requests.
type Board struct {
	store store.Store
	log   *slog.Logger
	jobs  known.Jobs

	mu         sync.Mutex // of the fields below, and of replacing entries
	byID       map[string]*Entry
	saved      map[string]time.Time // when each active run's samples were last saved
	newAt      time.Time            // when to read new runs
	allAt      time.Time
	nextAt     time.Time // when to read the active runs
	answeredAt time.Time // when the store last answered

	shown   atomic.Pointer[[]*Entry] // newest first
	Version atomic.Int64
	changed chan struct{} // closed and replaced at each change
	demo    atomic.Bool   // the results in the store are invented
}

// NewBoard returns an empty board; Refresh fills it.
func NewBoard(s store.Store, log *slog.Logger, list known.Jobs) *Board {
	b := &Board{store: s, log: log, jobs: list, byID: map[string]*Entry{}, saved: map[string]time.Time{}, changed: make(chan struct{})}
	b.shown.Store(&[]*Entry{})
	return b
}

func (b *Board) newEntry(r ledger.Run) *Entry {
	j, _ := b.jobs.Named(r.Job)
	return &Entry{Job: j, Run: r}
}

// Runs are the board's entries, newest first. The caller must not change them.
func (b *Board) Runs() []*Entry { return *b.shown.Load() }

// Change shows the entries as a new version.
func (b *Board) Change() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.show()
}

// show publishes the entries as a new version. The caller holds mu.
func (b *Board) show() {
	all := make([]*Entry, 0, len(b.byID))
	for _, e := range b.byID {
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y *Entry) int { return strings.Compare(y.Run.RunID, x.Run.RunID) })
	if len(all) > MaxEntries {
		for _, old := range all[MaxEntries:] {
			delete(b.byID, old.Run.RunID)
		}
		all = all[:MaxEntries]
	}
	b.shown.Store(&all)
	b.Version.Add(1)
	close(b.changed)
	b.changed = make(chan struct{})
}

// Next is closed at the next change.
func (b *Board) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Started adds a run that this server starts.
func (b *Board) Started(r ledger.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.State = ledger.Running
	e := b.newEntry(r)
	e.Starting, e.Report = true, ledger.BuildReport(e.Job.Job.Job, r, ledger.Tally{}, r.StartedAt)
	b.byID[r.RunID] = e
	b.nextAt = time.Time{}
	b.show()
}

// Find returns a run, from the store if it is not on the board. The error matches
// store.ErrNotExist when there is none.
func (b *Board) Find(ctx context.Context, id string, now time.Time) (*Entry, error) {
	b.mu.Lock()
	e := b.byID[id]
	b.mu.Unlock()
	if e != nil {
		return e, nil
	}
	return b.read(ctx, id, nil, now)
}

// Ready reports whether the store has answered within the last minute.
func (b *Board) Ready(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.answeredAt.IsZero() && now.Sub(b.answeredAt) < time.Minute
}

// Demo reports whether a run has marked the store as a demo's: its results are invented.
func (b *Board) Demo() bool { return b.demo.Load() }

// Refresh reads from the store what is due.
func (b *Board) Refresh(ctx context.Context, now time.Time) error {
	b.mu.Lock()
	news, all, active := !now.Before(b.newAt), !now.Before(b.allAt), !now.Before(b.nextAt)
	b.mu.Unlock()
	begin := time.Now()
	var err error
	if news {
		err = b.refreshNew(ctx, all, now)
		if !b.demo.Load() {
			is, derr := ledger.IsDemo(ctx, b.store)
			if err = errors.Join(err, derr); is {
				b.demo.Store(true)
				b.Change()
			}
		}
	}
	if active && err == nil {
		err = b.refreshActive(ctx, now)
	}
	if !news && !active {
		return nil
	}
	took := time.Since(begin)
	b.mu.Lock()
	defer b.mu.Unlock()
	if active {
		b.nextAt = now.Add(max(activeInterval, refreshShare*took))
	}
	if news {
		b.newAt = now.Add(max(newInterval, refreshShare*took))
	}
	if err == nil {
		b.answeredAt = now
		if all {
			b.allAt = now.Add(fullInterval)
		}
	}
	return err
}

// refreshNew reads the runs that are not on the board. With all it lists every run
// and removes those that are gone from the store.
func (b *Board) refreshNew(ctx context.Context, all bool, now time.Time) error {
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
		old := known != nil && known.Run.StartedAt.Before(now.Add(-maxClockSkew))
		if !all && old || len(there) >= MaxEntries {
			break
		}
	}
	entries := make([]*Entry, len(fresh))
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
			b.byID[id] = &Entry{Run: ledger.Run{RunID: id}, Broken: true}
			changed = true
		}
	}
	if all && len(there) < MaxEntries {
		for id, e := range b.byID {
			if !there[id] && !e.Starting {
				delete(b.byID, id)
				changed = true
			}
		}
	}
	if changed || b.answeredAt.IsZero() {
		b.show()
	}
	return nil
}

// refreshActive reads again the runs that were not over or had no report yet.
func (b *Board) refreshActive(ctx context.Context, now time.Time) error {
	for _, e := range b.Runs() {
		if !e.Active() && !e.ReportPending {
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
			b.saveSamples(ctx, fresh, now)
		}
	}
	return nil
}

// RefreshRun reads a run at once, after a control request to it.
func (b *Board) RefreshRun(ctx context.Context, e *Entry, now time.Time) error {
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

func (b *Board) read(ctx context.Context, id string, before *Entry, now time.Time) (*Entry, error) {
	r, err := ledger.Load(ctx, b.store, id)
	if err != nil {
		return nil, err
	}
	return b.entryOf(ctx, r, before, now)
}

// entryOf reads a run's report, samples and control object.
func (b *Board) entryOf(ctx context.Context, r ledger.Run, before *Entry, now time.Time) (*Entry, error) {
	e := b.newEntry(r)
	err := store.ErrNotExist
	if r.State.Over() {
		e.Report, err = ledger.ReadReport(ctx, b.store, r.RunID)
		e.ReportPending = errors.Is(err, store.ErrNotExist) && now.Sub(r.FinishedAt) < MaxReportDelay
	}
	if errors.Is(err, store.ErrNotExist) {
		e.Report, err = ledger.ReportSoFar(ctx, b.store, e.Job.Job.Job, r, now)
	}
	if err != nil {
		return &Entry{Run: r, Broken: true}, nil // one unreadable run does not stop the others; the command line says what is wrong with it
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

// addSample adds a sample if the run has made progress. When there are too many, it
// removes every other one.
func addSample(all []Sample, r ledger.Report, now time.Time) []Sample {
	s := Sample{At: now.UTC(), Requests: r.HTTP.Requests, Failures: r.HTTP.Unanswered()}
	for _, l := range r.Lanes {
		s.Done += l.HostsDone
	}
	if n := len(all); n > 0 && all[n-1].Done == s.Done && all[n-1].Requests == s.Requests {
		return all
	}
	all = append(slices.Clip(slices.Clone(all)), s)
	if len(all) <= maxSamples {
		return all
	}
	var half []Sample
	for i, s := range all {
		if i%2 == 0 || i == len(all)-1 {
			half = append(half, s)
		}
	}
	return half
}

func samplesKey(id string) string { return "runs/" + id + "/samples.json" }

// saveSamples writes an active run's samples every saveInterval, so that its chart
// is still there after a restart of the server. A failure is only logged: the
// samples are not important enough to stop anything.
func (b *Board) saveSamples(ctx context.Context, e *Entry, now time.Time) {
	if last, ok := b.saved[e.Run.RunID]; ok && e.Active() && now.Sub(last) < saveInterval {
		return
	}
	b.saved[e.Run.RunID] = now
	if err := store.WriteJSON(ctx, b.store, samplesKey(e.Run.RunID), e.Samples); err != nil {
		b.log.Warn("samples_not_kept", "run_id", e.Run.RunID, "error", ledger.Redact(err.Error()))
	}
	if !e.Active() {
		delete(b.saved, e.Run.RunID)
	}
}

func readSamples(ctx context.Context, s store.Store, id string) ([]Sample, error) {
	var all []Sample
	err := store.ReadJSON(ctx, s, samplesKey(id), known.MaxObject, &all)
	return all, err
}

// Error is why the run failed or was interrupted. Either the run or its report may
// lack it.
func (e *Entry) Error() string { return cmp.Or(e.Run.Error, e.Report.Error) }

// Unfinished reports whether the run ended without doing its work, and nobody asked for
// that.
func (e *Entry) Unfinished() bool {
	return !e.Broken && (e.Run.State == ledger.Failed || e.Run.State == ledger.Interrupted)
}

// PerSecond is how many requests a second the run makes on average.
func (e *Entry) PerSecond() float64 {
	if e.Report.Duration <= 0 {
		return 0
	}
	return float64(e.Report.HTTP.Requests) / e.Report.Duration
}

// Failed are the run's requests that got no answer.
func (e *Entry) Failed() int64 { return e.Report.HTTP.Unanswered() }

// Done is the job's main count, with its name.
func (e *Entry) Done() string {
	if e.Job.Done == "" {
		return ""
	}
	return ledger.FormatCount(e.Report.Counts[e.Job.Done]) + " " + known.Words(e.Job.Done)
}
