package ledger

import (
	"context"
	"errors"
	"iter"
	"path"
	"strings"

	"github.com/newsfork/seed-engine/io/store"
)

// WriteTotal records the sum of everything a run's stages counted: the object
// runs/{run_id}/total.json, written by the last stage of the graph.
func WriteTotal(ctx context.Context, s store.Store, runID string, t Tally) error {
	return writeOf(ctx, s, runID, "total.json", t)
}

// ReadTotal reads what WriteTotal wrote. The error matches store.ErrNotExist until the
// run's last stage has written it.
func ReadTotal(ctx context.Context, s store.Store, runID string) (Tally, error) {
	return loadOf[Tally](ctx, s, runID, "total.json")
}

// Counts in a total that make a run incomplete although it came to its end. The first
// two are only for the launcher and are not in reports.
const (
	Outage         = "outage"          // files whose marks were not written: our own network was down
	OutageTLS      = "outage_tls"      // of those, such that no certificate could be verified
	LanesLost      = "lanes_lost"      // lanes whose worker could not renew its lease
	WorkersStopped = "workers_stopped" // processes that stopped the run for a reason of their own
	NotStored      = "not_stored"      // results that the store or the database did not take
)

// LeftByLimit counts the known items that a run left to the next one because of its limit. It
// is a lower bound: the items that they lead to are unknown.
const LeftByLimit = "left_by_limit"

// OutsideHours counts sites that got no request because of the hours of the politeness file.
const OutsideHours = "sites_outside_hours"

// ErrNotStored ends a run that came to its end and could not keep all of it.
var ErrNotStored = errors.New("the store did not take all results: the log's event store_failed says which and why; look at the store, and run the same command again, which does only them")

// Minus returns what was added to o to make t, without timings, dead letters and
// warnings.
func (t Tally) Minus(o Tally) Tally {
	return Tally{
		Counts: t.Counts.Minus(o.Counts),
		HTTP: HTTP{Requests: t.HTTP.Requests - o.HTTP.Requests, Bytes: t.HTTP.Bytes - o.HTTP.Bytes, Retries: t.HTTP.Retries - o.HTTP.Retries, Absent: t.HTTP.Absent - o.HTTP.Absent,
			ByStatus: t.HTTP.ByStatus.Minus(o.HTTP.ByStatus), Failures: t.HTTP.Failures.Minus(o.HTTP.Failures), Examples: t.HTTP.Examples.minus(o.HTTP.Examples)},
		Store:      t.Store.Minus(o.Store),
		StoreBytes: Traffic{Read: t.StoreBytes.Read - o.StoreBytes.Read, Written: t.StoreBytes.Written - o.StoreBytes.Written},
	}
}

// DeadLetterIDs yields the ids of a job's dead letters without reading them.
func DeadLetterIDs(ctx context.Context, s store.Store, job string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for o, err := range deadLetterObjects(ctx, s, job) {
			if !yield(strings.TrimSuffix(path.Base(o.Key), ".json"), err) || err != nil {
				return
			}
		}
	}
}
