package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// ForcedByKey is the metadata key for the id of the forced run that wrote a marker. In
// a forced run only markers with its own id count.
const ForcedByKey = "forced-by"

type forcedRun struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"started_at"`
}

func (f forcedRun) check() error { return checkName("forced run's id", f.ID) }

const forcePrefix = "force/"

func forceKey(job, filterHash string) (string, error) {
	if err := errors.Join(checkName("job", job), checkName("filter hash", filterHash)); err != nil {
		return "", err
	}
	return forcePrefix + job + "/" + filterHash + ".json", nil
}

// ForceID returns the id of the forced run of a job with the filters of that hash. If
// an earlier forced run was interrupted, it is that run's id, so that the work resumes
// instead of starting again. If there is none, ForceID creates one when start is set,
// and else returns "".
func ForceID(ctx context.Context, s store.Store, job, filterHash string, start bool) (string, error) {
	key, err := forceKey(job, filterHash)
	if err != nil {
		return "", fmt.Errorf("forcing a run: %w", err)
	}
	f, err := load[forcedRun](ctx, s, key)
	if err == nil || !errors.Is(err, store.ErrNotExist) {
		return f.ID, err
	}
	if !start {
		return "", nil
	}
	now := time.Now().UTC()
	f = forcedRun{ID: NewRunID(now), StartedAt: now}
	err = store.CreateJSON(ctx, s, key, f)
	if errors.Is(err, store.ErrExist) {
		f, err = load[forcedRun](ctx, s, key)
	}
	if err != nil {
		return "", err
	}
	return f.ID, nil
}

// ClearForce ends the forced run of that id. The caller calls it when the run is
// complete, so that the next forced run does everything again.
func ClearForce(ctx context.Context, s store.Store, job, id string) error {
	if err := checkName("job", job); err != nil {
		return fmt.Errorf("ending a forced run: %w", err)
	}
	prefix := forcePrefix + job + "/"
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("listing %s: %w", prefix, err)
		}
		f, err := load[forcedRun](ctx, s, o.Key)
		switch {
		case errors.Is(err, store.ErrNotExist):
			continue
		case err != nil:
			return err
		case f.ID == id:
			return store.Remove(ctx, s, o.Key)
		}
	}
	return nil
}
