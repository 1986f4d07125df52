package ledger

import (
	"context"
	"errors"
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
	Outage         = "outage"          // files whose marks were held back: our own network was down
	OutageTLS      = "outage_tls"      // of those, such that no certificate could be verified
	LanesLost      = "lanes_lost"      // lanes whose worker could not renew its lease
	WorkersStopped = "workers_stopped" // processes that stopped the run for a reason of their own
)

// keeping names what a job is for: the count of what it could keep, and the
// dead letters of what its store did not take.
var keeping = map[string]struct{ kept, letter string }{
	"seed":    {"domains_collected", "store_failed"},
	"migrate": {"files_verified", "copy_failed"},
}

// KeptNothing says that a run of the job came to its end and could not keep
// anything of what it was for: it has failed.
func (t Tally) KeptNothing(job string) bool {
	k, ok := keeping[job]
	return ok && t.DeadLetters[k.letter] > 0 && t.Counts[k.kept] == 0
}

// KeptNothingError is why such a run failed, by one of its dead letters.
func KeptNothingError(ctx context.Context, s store.Store, job, runID string) error {
	reason := "see `dead-letters list`"
	for d, err := range ListDeadLetters(ctx, s, job, runID) {
		if err == nil && d.Kind == keeping[job].letter {
			reason = "one of the reasons: " + d.Error
			break
		}
	}
	return fmt.Errorf("nothing that the run brought could be kept (%s): see to the store, and run the same command again, which does what is missing", reason)
}

// Unmet says of a run of the job that came to its end that it failed all the
// same: sources of it, such as a catalog's sites, could not be crawled as they should.
func (t Tally) Unmet(job string) bool {
	// A site that is held brings nothing until a person has mended its file.
	return job == "catalog" && (t.Counts["sites_held"] > 0 || t.Counts["sites"] > 0 && t.Counts["sites_failed"] == t.Counts["sites"])
}

// UnmetError is why such a run failed, by the dead letters of its sources.
func UnmetError(ctx context.Context, s store.Store, job, runID string) error {
	var why []error
	for d, err := range ListDeadLetters(ctx, s, job, runID) {
		switch {
		case err != nil:
			why = append(why, err)
		case d.Input.Source != "" && d.Input.URL == "":
			why = append(why, fmt.Errorf("%s: %s", d.Input.Source, d.Error))
		}
	}
	if len(why) == 0 {
		return errors.New("the run did not do what it was for: see its dead letters")
	}
	return errors.Join(why...)
}

// Minus is what was added to o to make t, of what only sums: timings, which have
// a maximum, and dead letters are not in it.
func (t Tally) Minus(o Tally) Tally {
	minus := func(a, b Counts) Counts {
		d := Counts{}
		for k, n := range a {
			if n != b[k] {
				d[k] = n - b[k]
			}
		}
		return d
	}
	return Tally{
		Counts: minus(t.Counts, o.Counts),
		HTTP: HTTP{Requests: t.HTTP.Requests - o.HTTP.Requests, Bytes: t.HTTP.Bytes - o.HTTP.Bytes, Retries: t.HTTP.Retries - o.HTTP.Retries,
			ByStatus: minus(t.HTTP.ByStatus, o.HTTP.ByStatus), Failures: minus(t.HTTP.Failures, o.HTTP.Failures)},
		Store: minus(t.Store, o.Store),
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
