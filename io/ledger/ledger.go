// Package ledger keeps the records of runs outside every worker: state, control, lane
// progress, reports, logs, dead letters and forced-run ids.
//
// All of them are small JSON objects in the store, so any process on any machine can
// show a run, stop it, or resume the work of a killed one:
//
//	lease/{name}/{epoch}              who may do a piece of work (package lease)
//	runs/{run_id}/state.json          what a run is and how it ended
//	runs/{run_id}/control.json        whether it shall pause, resume or cancel
//	runs/{run_id}/progress/{process}  what each worker process has counted, and its lanes
//	runs/{run_id}/alive/{process}     how many lanes each worker process has at work
//	runs/{run_id}/total.json          the sum of what its stages counted
//	runs/{run_id}/report.json         the run report
//	runs/{run_id}/log, log.1          its log, the newest lines and the ones before
//	dead-letters/{job}/{id}.json      a failure that a person should see
//	sites/{job}/{site}.json           whether a site is open, since when, and what to do
//	force/{job}/{filters}.json        a forced run that is not complete No promise: see docs/library.md.
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/newsfork/seed-engine/io/store"
)

// maxObject is how many bytes of an object are read, so that another object at its key
// cannot fill the memory.
const maxObject = 64 << 20

// name matches run ids, jobs and filter hashes. They are one path segment, so that a
// name from a user cannot leave its folder.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// IsName reports whether s can be the id of a run or a dead letter, a job's or a filter's name.
func IsName(s string) bool { return name.MatchString(s) }

func checkName(what, s string) error {
	if !name.MatchString(s) {
		return fmt.Errorf("%q is not a %s: letters, digits, '-' and '_' only", s, what)
	}
	return nil
}

// read returns the bytes of one object, or an error that matches
// store.ErrNotExist.
func read(ctx context.Context, s store.Store, key string) ([]byte, error) {
	return store.ReadAll(ctx, s, key, maxObject)
}

// load reads one JSON object. An object that has a method check must pass it.
func load[T any](ctx context.Context, s store.Store, key string) (v T, err error) {
	b, err := read(ctx, s, key)
	if err != nil {
		return v, err
	}
	if v, err = decode[T](b); err != nil {
		return v, fmt.Errorf("reading %s: %w", key, err)
	}
	return v, nil
}

func decode[T any](b []byte) (T, error) {
	var v, none T
	err := json.Unmarshal(b, &v)
	if c, ok := any(v).(interface{ check() error }); ok && err == nil {
		err = c.check()
	}
	if err != nil {
		return none, fmt.Errorf("it is damaged: %w", err)
	}
	return v, nil
}

// loadOf reads one object of a run.
func loadOf[T any](ctx context.Context, s store.Store, runID, rest string) (v T, err error) {
	if err := checkName("run id", runID); err != nil {
		return v, fmt.Errorf("reading the %s of a run: %w", rest, err)
	}
	return load[T](ctx, s, runKey(runID, rest))
}

// writeOf writes one object of a run.
func writeOf(ctx context.Context, s store.Store, runID, rest string, v any) error {
	if err := checkName("run id", runID); err != nil {
		return fmt.Errorf("writing the %s of a run: %w", rest, err)
	}
	return store.WriteJSON(ctx, s, runKey(runID, rest), v)
}
