package ledger

import (
	"context"
	"log/slog"
	"slices"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/store"
)

// LeaseEvents tells the log what happens to a lease under a heartbeat.
func LeaseEvents(log *slog.Logger) func(lease.Event) {
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

// LeaseWaits tells the log whom a lease is waited for.
func LeaseWaits(log *slog.Logger) func(*lease.InUseError) {
	return func(held *lease.InUseError) {
		log.Warn("lease_waits", "lease", held.Name, "holder", held.Holder.String(), "until", held.ExpiresAt)
	}
}

// Gone says of a lease's holder whether the run was closed, by the next run of
// its job, whose workers live and die with their launcher. Workers elsewhere can
// outlive it: their leases expire.
func Gone(s store.Store) func(context.Context, lease.Holder) bool {
	return func(ctx context.Context, h lease.Holder) bool {
		if h.RunID == "" {
			return false
		}
		r, err := Load(ctx, s, h.RunID)
		return err == nil && r.State.Over() && slices.Contains([]string{"direct", "prism"}, r.Runner) // another store's run is not known here
	}
}
