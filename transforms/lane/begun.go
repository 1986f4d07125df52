package lane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/transforms/parse/budget"
)

const (
	// maxDeaths is how many processes may die while they read a unit, the last one alone for aloneAfter. Twice
	// as many may if none read it so long.
	maxDeaths = 2
	// begunAfter is how long a document is read before the store has a record of that. Most are read in less,
	// and cost no call; what takes the memory of a process takes longer.
	begunAfter = 100 * time.Millisecond
	// aloneAfter is how long a unit is read alone before a death is a sign against it: a kill from outside
	// should rarely meet it.
	aloneAfter = 50 * time.Millisecond
	// careful is how long a process has such a record written at once, after another one died.
	careful = 5 * time.Minute
)

// diedError refuses a unit at which processes died.
type diedError struct{ Deaths int }

func (e *diedError) Error() string {
	return fmt.Sprintf("the process died %d times while it read this, at least once with nothing else at work: too little memory, or a fault of the program; replay its dead letter when one of them has changed", e.Deaths)
}

// begun records which units' documents this process reads, so that a later process learns at which
// ones it died: in a local file at once, for the next process of this machine, and in the store.
type begun struct {
	writes sync.WaitGroup

	mu      sync.Mutex
	deaths  map[string]ledger.Deaths // by unit
	careful time.Time                // until when the store's record is written first
	file    *os.File                 // nil: none, or not yet
	tried   bool                     // to make it
	remove  func() error
	slots   int64   // of the file, which has a line or spaces in each
	free    []int64 // slots with spaces
}

// Unit returns a context for the work on a unit, which has the input of its dead letters, until end is called. The error is a *diedError.
// A unit at which one process died is read while nothing else is.
func (w *Worker) Unit(ctx context.Context, in ledger.Input) (within context.Context, end func(), err error) {
	unit := ledger.Unit(w.cfg.Job, in)
	w.begun.mu.Lock()
	d := w.begun.deaths[unit]
	w.begun.mu.Unlock()
	if d.Count >= maxDeaths && d.Alone || d.Count >= 2*maxDeaths {
		return ctx, func() {}, &diedError{d.Count}
	}
	var read atomic.Bool
	within = budget.Watch(ctx, d.Count > 0, func() func() {
		read.Store(true)
		return w.begin(unit, d.Count > 0)
	})
	return within, func() {
		if d.Count > 0 && read.Load() && ctx.Err() == nil {
			w.survived(unit)
		}
	}, nil
}

// begin records that a unit's document is read, until ended is called.
func (w *Worker) begin(unit string, alone bool) (ended func()) {
	b := &w.begun
	over := make(chan struct{})
	var slot int64
	say := func() {
		if alone {
			b.sign(slot, unit, over)
		}
		w.kept(func(ctx context.Context) error {
			return ledger.SayBegun(ctx, w.Store, w.cfg.Job, unit, processName(), alone)
		})
	}
	unsay := func() {
		select {
		case <-over:
		case <-w.ctx.Done(): // the process ends in order
		}
		w.kept(func(ctx context.Context) error {
			return ledger.EndBegun(ctx, w.Store, w.cfg.Job, unit, processName(), alone)
		})
		b.writes.Done()
	}
	if alone {
		debug.FreeOSMemory() // before it counts: a kill from outside meanwhile is no sign against the unit
	}
	b.mu.Lock()
	slot = b.note(w.journal(), unit)
	at := begunAfter
	switch {
	case alone:
		at = aloneAfter
	case time.Now().Before(b.careful):
		at = 0
	}
	b.mu.Unlock()
	b.writes.Add(1)
	stop := func() bool { return false }
	if at == 0 {
		say()
		go unsay()
	} else {
		stop = time.AfterFunc(at, func() { say(); unsay() }).Stop
	}
	return func() {
		close(over)
		b.clear(slot)
		if stop() {
			b.writes.Done()
		}
	}
}

// kept writes to the store, which may be out of reach: then a death may not be known.
func (w *Worker) kept(write func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 10*time.Second)
	defer cancel()
	if err := write(ctx); err != nil {
		w.Log.Warn("deaths_not_kept", "error", ledger.Redact(err.Error()))
	}
}

// survived forgets the deaths of a unit that was read since.
func (w *Worker) survived(unit string) {
	w.kept(func(ctx context.Context) error { return ledger.ForgetUnit(ctx, w.Store, w.cfg.Job, unit) })
	w.begun.mu.Lock()
	delete(w.begun.deaths, unit)
	w.begun.mu.Unlock()
}

// Finished forgets the deaths of a unit that a process had finished when it died.
func (w *Worker) Finished(in ledger.Input) {
	unit := ledger.Unit(w.cfg.Job, in)
	w.begun.mu.Lock()
	_, died := w.begun.deaths[unit]
	w.begun.mu.Unlock()
	if died {
		w.survived(unit)
	}
}

// learnDeaths reads at which units other processes died. after: one has just died.
func (w *Worker) learnDeaths(after bool) {
	w.kept(func(ctx context.Context) (err error) {
		scratch.Ended(w.journal(), func(dir string) bool {
			if err == nil {
				err = w.takeJournal(ctx, dir)
			}
			return err == nil
		})
		if err != nil {
			return err
		}
		deaths, err := ledger.ListDeaths(ctx, w.Store, w.cfg.Job, processName())
		if err != nil {
			return err
		}
		w.begun.mu.Lock()
		defer w.begun.mu.Unlock()
		if w.begun.deaths = deaths; after || len(deaths) > 0 {
			w.begun.careful = time.Now().Add(careful)
		}
		return nil
	})
}

// journal begins the name of the folders of local files about this job and store.
func (w *Worker) journal() string {
	sum := sha256.Sum256([]byte(w.cfg.Job + "\x00" + w.cfg.Store))
	return scratch.Records + hex.EncodeToString(sum[:6]) + "-"
}

// takeJournal copies what a dead process was reading from its local file to the store.
func (w *Worker) takeJournal(ctx context.Context, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			unit, mode, ok := strings.Cut(strings.TrimSpace(line), " ")
			if !ok {
				continue
			}
			if err := ledger.SayBegun(ctx, w.Store, w.cfg.Job, unit, f.Name(), mode == "alone"); err != nil {
				return err
			}
		}
	}
	return nil
}

// slotSize is the length of a line: a unit's id, a word, a newline.
const slotSize = 32

// note writes a unit to the local file, which the first call makes. Without a file the slot is below 0. The
// caller has locked mu.
func (b *begun) note(prefix, unit string) (slot int64) {
	if !b.tried {
		b.tried = true
		dir, remove, err := scratch.Dir(prefix)
		if err == nil {
			b.file, err = os.Create(filepath.Join(dir, processName()))
			b.remove = remove
		}
		if err != nil {
			b.file = nil // the store alone has the records
		}
	}
	if b.file == nil {
		return -1
	}
	if n := len(b.free); n > 0 {
		slot, b.free = b.free[n-1], b.free[:n-1]
	} else {
		slot = b.slots
		b.slots++
	}
	b.write(slot, unit+" begun")
	return slot
}

// sign says in a slot that its unit has been read alone for aloneAfter, and is not over.
func (b *begun) sign(slot int64, unit string, over <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-over: // the slot may be another unit's
		return
	default:
	}
	if slot >= 0 && b.file != nil {
		b.write(slot, unit+" alone")
	}
}

// write fills a slot. An error, such as of a full disk, is no reason not to read the unit.
func (b *begun) write(slot int64, line string) {
	_, _ = b.file.WriteAt(fmt.Appendf(nil, "%-*s\n", slotSize-1, line), slot*slotSize)
}

func (b *begun) clear(slot int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slot >= 0 && b.file != nil {
		b.write(slot, "")
		b.free = append(b.free, slot)
	}
}

// close waits for the store's records to be removed, and removes the local file.
func (b *begun) close() {
	b.writes.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil {
		_ = b.file.Close() // the next line removes it
		b.file = nil
	}
	if b.remove != nil {
		_ = b.remove() // what stays, a later process removes
	}
}
