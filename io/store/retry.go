package store

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/newsfork/seed-engine/io/fault"
)

const (
	// Retries is how often Retry tries again after a call that failed.
	Retries = 3
	// throttledRetries is the same after a call that was refused because there are too
	// many. That says nothing against the call, and a bucket stays so until there are fewer
	// calls, or until it has grown: so there are more tries, over about a minute.
	throttledRetries = 10

	// The waits before the retries are 200 ms, 400 ms and so on, each longer or
	// shorter by up to a half at random, so that workers do not retry in step.
	firstWait = 200 * time.Millisecond
	maxWait   = 10 * time.Second
)

// Retryable reports whether the same call can succeed later, without a person: after a
// 5xx, throttling, a timeout, a full disk, a connection that was reset or could not be
// made, or a body that broke off. An absent or existing key, a refused permission, any
// other 4xx and a cancelled context are final. A deadline is retryable; whether it was
// the caller's own deadline, only the caller's context says.
func Retryable(err error) bool {
	lack := ours(err)
	return lack != nil && !lack.Lasts && !fault.Stops(err)
}

// ours returns what our side lacks, so that the same call may succeed later.
func ours(err error) *fault.Shortage {
	switch {
	case errors.Is(err, errConnectionBroken), errors.Is(err, errNotAllowedNow):
		return &fault.Shortage{Lacks: "the store cannot be reached: look whether it runs, and at the network", Err: err, Some: true}
	case errors.Is(err, ErrGone):
		return &fault.Shortage{Lacks: "the store is gone", Err: err, Lasts: true}
	}
	_, lack := fault.Of(fault.Store, err)
	return lack
}

// errConnectionBroken marks a failure of the connection while a body was read. By
// itself io.ErrUnexpectedEOF is not enough: a truncated JSON file gives it too.
var errConnectionBroken = errors.New("the connection broke while reading")

// Retry runs op again, with growing waits, while its error is Retryable and ctx is not
// done: up to Retries times after failures, and for longer where there are too many
// calls. For a Counted store it waits for all that our side lacks, for fault.MaxWait. It
// returns the last error. op must start from the beginning each time: a body to Put has
// to be rewound.
func Retry(ctx context.Context, op func() error) error {
	began := time.Now()
	wait := firstWait
	for failed, refused := 0, 0; ; {
		err := op()
		if fault.Throttled(err) {
			refused++
		} else {
			failed++
		}
		var p *patient
		lack := ours(err)
		switch {
		case lack == nil, ctx.Err() != nil, fault.Stops(err):
			return err
		case errors.As(err, &p) && p.waits(lack):
			if time.Since(began) >= fault.MaxWait || p.kind.Outage() >= fault.MaxWait { // a renewal of a lease has less time than MaxWait
				return p.giveUp(err, lack, began)
			}
			if failed+refused == 1 {
				p.calls.Shortages.Wait(lack)
			}
		case failed > Retries || refused > throttledRetries || lack.Lasts:
			return err
		}
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		wait = min(2*wait, maxWait)
	}
}

// patient is an error of a call to a Patient store.
type patient struct {
	error
	calls *Calls
	kind  *fault.Answers
}

func (p *patient) Unwrap() error { return p.error }

// waits reports whether to wait for what is short. What a person must mend is waited for
// only if it was there before: else the store's address or its rights are wrong. A file
// that may not be written says nothing about others.
func (p *patient) waits(lack *fault.Shortage) bool {
	return !p.calls.ended.Load() && (!lack.Lasts || p.kind.Since(time.Time{}) && !errors.Is(p.error, fs.ErrPermission))
}

// giveUp ends a wait that was in vain. If other calls were answered meanwhile, err is that
// key's own; otherwise the run must stop.
func (p *patient) giveUp(err error, lack *fault.Shortage, began time.Time) error {
	if lack.Some && p.kind.Since(began) {
		return err
	}
	return p.calls.Shortages.GiveUp(&fault.Shortage{Lacks: lack.Lacks, Err: err})
}
