package ledger

import (
	"context"
	"log/slog"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/store"
)

// LogLeaseEvent returns a function that logs the events of a kept lease.
func LogLeaseEvent(log *slog.Logger) func(lease.Event) {
	return func(e lease.Event) {
		args := []any{"lease", e.Lease.Name()}
		if e.Err != nil {
			args = append(args, "error", Redact(e.Err.Error()))
		}
		switch e.Kind {
		case lease.Unsure:
			log.Warn(string(e.Kind), append(args, "effect", "nothing is sent or written until it is renewed")...)
		case lease.Renewed:
			log.Warn(string(e.Kind), append(args, "unsure_s", e.For.Seconds())...)
		case lease.Lost:
			log.Error(string(e.Kind), args...)
		}
	}
}

// RunClosed returns a function that reports whether a holder's run was closed, by
// another run of its job, and its workers ended with it. It is false for workers
// outside their launcher, which can outlive it: their leases expire.
func RunClosed(s store.Store) func(context.Context, lease.Holder) bool {
	return func(ctx context.Context, h lease.Holder) bool {
		if h.RunID == "" {
			return false
		}
		r, err := Load(ctx, s, h.RunID)
		return err == nil && r.State.Over() && r.inLauncher() // another store's run is not known here
	}
}
