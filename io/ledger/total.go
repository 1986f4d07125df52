package ledger

import (
	"context"
	"fmt"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// WriteTotal records the sum of everything a run's stages counted: the object
// runs/{run_id}/total.json, written by the last stage of the graph.
func WriteTotal(ctx context.Context, s store.Store, runID string, t Tally) error {
	if err := checkName("run id", runID); err != nil {
		return fmt.Errorf("writing the total of a run: %w", err)
	}
	return save(ctx, s, runKey(runID, "total.json"), total{t, time.Now().UTC()})
}

// total is the object runs/{run_id}/total.json.
type total struct {
	Tally
	WrittenAt time.Time `json:"written_at"`
}

func decodeTotal(b []byte) (total, error) {
	var t total
	err := parse("total", b, &t)
	return t, err
}

// ReadTotal reads what WriteTotal wrote; the error matches store.ErrNotExist
// while the run has not come to its end.
func ReadTotal(ctx context.Context, s store.Store, runID string) (Tally, error) {
	if err := checkName("run id", runID); err != nil {
		return Tally{}, fmt.Errorf("reading the total of a run: %w", err)
	}
	t, err := load(ctx, s, runKey(runID, "total.json"), decodeTotal)
	return t.Tally, err
}

// Counts in a total by which a run that came to its end is not a complete one.
// The first two are for the launcher alone; a report keeps the others.
const (
	Outage         = "outage"          // files whose marks were not written: our own network was down
	OutageTLS      = "outage_tls"      // of those, such that no certificate could be verified
	LanesLost      = "lanes_lost"      // lanes whose worker could not renew its lease
	WorkersStopped = "workers_stopped" // processes that stopped the run for a reason of their own
)

// Minus is what was added to o to make t, of what only sums: timings, which have
// a maximum, dead letters and warnings are not in it.
func (t Tally) Minus(o Tally) Tally {
	return Tally{
		Counts: t.Counts.Minus(o.Counts),
		HTTP: HTTP{Requests: t.HTTP.Requests - o.HTTP.Requests, Bytes: t.HTTP.Bytes - o.HTTP.Bytes, Retries: t.HTTP.Retries - o.HTTP.Retries,
			ByStatus: t.HTTP.ByStatus.Minus(o.HTTP.ByStatus), Failures: t.HTTP.Failures.Minus(o.HTTP.Failures)},
		Store: t.Store.Minus(o.Store),
	}
}

// DeadLetterIDs yields the ids of a job's dead letters without reading them.
func DeadLetterIDs(ctx context.Context, s store.Store, job string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key, err := range deadLetterKeys(ctx, s, job) {
			if !yield(strings.TrimSuffix(path.Base(key), ".json"), err) || err != nil {
				return
			}
		}
	}
}
