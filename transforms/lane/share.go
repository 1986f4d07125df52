package lane

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

// heartbeat is how often a process says how many lanes it has at work, and reads what the others say. After two missed ones it uses the
// floor; after three the others share its part.
const heartbeat = 10 * time.Second

// limits are requests in flight, and requests started a second (0: as many as you like).
type limits struct {
	inFlight int
	rate     float64
}

// share returns a process's part of a job's limits. lanes has the lanes at work of all known processes, of which this one uses used; with
// 0 it gets the floor: one request in flight, and the rate of one of at least slots lanes.
//
// Each process gets one request in flight. The others go by the highest averages (D'Hondt): more lanes elsewhere never mean more for this
// process, so while some processes do not know of a change, their parts are not more than the whole.
func share(whole limits, slots int, process string, used int, lanes map[string]int) limits {
	all := 0
	for _, n := range lanes {
		all += n
	}
	if used == 0 {
		return limits{1, whole.rate / float64(max(slots, all, 1))}
	}
	all += used - lanes[process]
	of := func(name string) int {
		if name == process {
			return used
		}
		return lanes[name]
	}
	free := max(whole.inFlight-len(lanes), 0)
	seats, left := make(map[string]int, len(lanes)), free
	for name := range lanes { // nobody gets less than its quota, rounded down
		seats[name] = free * of(name) / all
		left -= seats[name]
	}
	for ; left > 0; left-- {
		var next string
		for name := range lanes {
			a, b := of(name)*(seats[next]+1), of(next)*(seats[name]+1)
			if next == "" || a > b || a == b && name < next {
				next = name
			}
		}
		seats[next]++
	}
	return limits{1 + seats[process], whole.rate * float64(used) / float64(all)}
}

// shares is what a process has told the others of its run, and what it knows of them.
//
// It uses more lanes than before only when all others have seen them, and says that it has fewer only when it uses no more. So all parts
// together are not more than the whole, but for the floor of a process that has just come.
type shares struct {
	every   time.Duration // a heartbeat
	process string
	begun   chan struct{} // a lane has begun, and the others do not know this process
	beats   sync.WaitGroup
	written bool // the store may have what this process said

	// Guarded by Worker.mu.
	peak   int            // most lanes at work here at once since the last heartbeat
	told   int            // how many the store says there are; 0 when it may say nothing
	toldAt time.Time      // since when it says as many, by the store's clock
	used   int            // how many the limits are for
	lanes  map[string]int // of all processes that are alive, this one too
	now    limits
}

// shareLimits keeps the process's part of the job's limits up to date until the worker ends, in a run that has other processes.
func (w *Worker) shareLimits(process string, every time.Duration) {
	s := &w.shares
	s.process, s.every, s.begun = process, every, make(chan struct{}, 1)
	w.shareUnknown()
	s.beats.Go(w.keepSharing)
}

func (w *Worker) keepSharing() {
	s := &w.shares
	late, next := time.AfterFunc(s.every, w.shareUnknown), time.NewTimer(s.every)
	defer func() { late.Stop(); next.Stop() }()
	for {
		select {
		case <-w.ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), leaveWithin)
			defer cancel()
			_ = w.leave(ctx) // the others find out by its age
			return
		case <-s.begun:
		case <-next.C:
		}
		at := time.Now()
		ctx, cancel := context.WithTimeout(w.ctx, s.every)
		pause, err := w.beat(ctx)
		cancel()
		switch {
		case err != nil && w.ctx.Err() == nil:
			w.Log.Warn("lanes_not_shared", "error", ledger.Redact(err.Error()), "why", "after two heartbeats without success this process sends one request at a time")
			next.Reset(s.every)
		case pause == 0:
			late.Stop()
			next.Stop()
		default:
			late.Reset(2*s.every - time.Since(at))
			next.Reset(pause - time.Since(at))
		}
	}
}

// leaveWithin bounds the removal of what a process said, when it ends.
const leaveWithin = 2 * time.Second

func (w *Worker) leave(ctx context.Context) error {
	if !w.shares.written {
		return nil
	}
	if err := ledger.EndAlive(ctx, w.Store, w.cfg.RunID, w.shares.process); err != nil {
		return err
	}
	w.shares.written = false
	return nil
}

// beat says how many lanes are at work here, reads what the others say, and sets the
// limits. again is the time until the next heartbeat; 0 if no lane is at work.
func (w *Worker) beat(ctx context.Context) (again time.Duration, err error) {
	s := &w.shares
	w.mu.Lock()
	n := s.peak // a lane that ends is mostly followed by the next
	s.peak = w.active
	s.told, s.used = min(s.told, n), min(s.used, n)
	w.limit()
	w.mu.Unlock()
	if n == 0 {
		return 0, w.leave(ctx)
	}
	s.written = true
	if err := ledger.SayAlive(ctx, w.Store, w.cfg.RunID, s.process, n); err != nil {
		return 0, err
	}
	all, err := ledger.ListAlive(ctx, w.Store, w.cfg.RunID)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := s.learn(n, all); err != nil {
		return 0, err
	}
	w.limit()
	if s.used < n {
		return s.every / 5, nil // the others may be waiting in the same way
	}
	return s.every, nil
}

// learn takes a listing that was read after this process had said that it has n lanes.
// Ages are those of the store's clock, at the time of the newest object.
func (s *shares) learn(n int, all []ledger.Alive) error {
	i := slices.IndexFunc(all, func(a ledger.Alive) bool { return a.Process == s.process })
	if i < 0 {
		return fmt.Errorf("what process %s just wrote is not in the listing", s.process)
	}
	mine := all[i].At
	newest := slices.MaxFunc(all, func(a, b ledger.Alive) int { return a.At.Compare(b.At) }).At
	all = slices.DeleteFunc(all, func(a ledger.Alive) bool {
		return a.Process == s.process || a.Lanes < 1 || newest.Sub(a.At) > 3*s.every
	})
	s.lanes = map[string]int{s.process: n}
	for _, a := range all {
		s.lanes[a.Process] = a.Lanes
	}
	if s.seenBy(all) {
		s.used = s.told
	}
	if n > s.told {
		s.told, s.toldAt = n, mine
		if s.seenBy(all) {
			s.used = n
		}
	}
	return nil
}

// seenBy reports whether the others have read what this process told at toldAt: each reads after it has written. Some stores give times by
// the second.
func (s *shares) seenBy(others []ledger.Alive) bool {
	return !slices.ContainsFunc(others, func(a ledger.Alive) bool { return a.At.Sub(s.toldAt) < s.every/10 })
}

// shareUnknown sets the floor: the others may not know of this process.
func (w *Worker) shareUnknown() {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.shares
	s.told, s.used, s.lanes = 0, 0, nil
	w.limit()
}

// visitsAtOnce is how many visits each lane at work here may have, of n in the whole job: as large a part as this process has of the
// requests in flight. More would not be faster, and would be made again after a kill.
func (w *Worker) visitsAtOnce(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	part := 1.0
	if whole := w.cfg.Web.Concurrency; w.shares.process != "" && whole > 0 {
		part = float64(w.shares.now.inFlight) / float64(whole)
	}
	return max(1, min(n, int(math.Ceil(float64(n)*part/float64(max(w.active, 1))))))
}

// Part is this process's part of the lanes at work everywhere; while others are not known, that of one slot.
func (w *Worker) Part() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.shares
	all := 0
	for _, n := range s.lanes {
		all += n
	}
	if s.process != "" && all > 0 {
		return float64(s.lanes[s.process]) / float64(all)
	}
	return 1 / float64(max(w.cfg.Slots, 1))
}

// limit sets the limits of what is known. The caller has locked w.mu.
func (w *Worker) limit() {
	s := &w.shares
	now := share(limits{w.cfg.Web.Concurrency, w.cfg.Web.Rate}, w.cfg.Slots, s.process, s.used, s.lanes)
	if now == s.now || w.ctx.Err() != nil {
		return
	}
	s.now = now
	w.Web.SetLimits(now.inFlight, now.rate)
	w.Log.Debug("limits_shared", "concurrency", now.inFlight, "rate", now.rate, "lanes", s.used, "processes", len(s.lanes))
}
