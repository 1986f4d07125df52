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
	Outage         = "outage"          // files whose marks were not written: our own network was down
	OutageTLS      = "outage_tls"      // of those, such that no certificate could be verified
	LanesLost      = "lanes_lost"      // lanes whose worker could not renew its lease
	WorkersStopped = "workers_stopped" // processes that stopped the run for a reason of their own
)

// purpose is what a job's runs are for: when a run that came to its end missed
// it, which dead letters say why, and how the error is made of those.
type purpose struct {
	missed func(Tally) bool
	why    func(DeadLetter) bool
	enough int // so many of them are read, 0: all
	tell   func(whys []error) error
}

var purposes = map[string]purpose{
	"seed":    toKeep("domains_collected", "store_failed"),
	"migrate": toKeep("files_verified", "copy_failed"),
	"catalog": {
		// A site on hold brings nothing until a person has mended its file.
		missed: func(t Tally) bool {
			return t.Counts["sites_held"] > 0 || t.Counts["sites"] > 0 && t.Counts["sites_failed"] == t.Counts["sites"]
		},
		why: func(d DeadLetter) bool { return d.Input.Source != "" && d.Input.URL == "" },
		tell: func(whys []error) error {
			if len(whys) == 0 {
				return errors.New("no site could be crawled, or one is on hold: see the run's dead letters")
			}
			return errors.Join(whys...)
		},
	},
}

// toKeep is the purpose of a job that counts what it kept under a name, and
// leaves dead letters of a kind for what its store refused: to keep something.
func toKeep(kept, refused string) purpose {
	return purpose{
		missed: func(t Tally) bool { return t.DeadLetters[refused] > 0 && t.Counts[kept] == 0 },
		why:    func(d DeadLetter) bool { return d.Kind == refused },
		enough: 1,
		tell: func(whys []error) error {
			reason := errors.New("see `dead-letters list`")
			if len(whys) > 0 {
				reason = fmt.Errorf("one of the reasons: %w", whys[0])
			}
			return fmt.Errorf("nothing that the run brought could be kept (%w): see to the store, and run the same command again, which does what is missing", reason)
		},
	}
}

// Unmet is why a run that came to its end has failed all the same: it did not do
// what its job is for. It is nil where the run did.
func (t Tally) Unmet(ctx context.Context, s store.Store, job, runID string) error {
	p, ok := purposes[job]
	if !ok || !p.missed(t) {
		return nil
	}
	var whys []error
	for d, err := range ListDeadLetters(ctx, s, job, runID) {
		switch {
		case err != nil:
			whys = append(whys, err)
		case p.why(d) && d.Input.Source != "":
			whys = append(whys, fmt.Errorf("%s: %s", d.Input.Source, d.Error))
		case p.why(d):
			whys = append(whys, errors.New(d.Error))
		}
		if p.enough > 0 && len(whys) == p.enough {
			break
		}
	}
	return p.tell(whys)
}

// Minus is what was added to o to make t, of what only sums: timings, which have
// a maximum, and dead letters are not in it.
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
