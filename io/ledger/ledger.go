// Package ledger keeps what a run must remember outside every worker: leases,
// run state, control, lane progress, reports, dead letters and forced-run ids.
//
// All of it is small JSON objects in the store, so any process on any host can
// look at a run, stop it, or resume where a killed one left off:
//
//	lease/{name}/{epoch}              who may do a piece of work
//	runs/{run_id}/state.json          what a run is and how it ended
//	runs/{run_id}/control.json        what it is asked to do
//	runs/{run_id}/lanes/{n}.json      how far each lane is
//	runs/{run_id}/total.json          the sum of what its stages counted
//	runs/{run_id}/report.json         the run report
//	runs/{run_id}/log, log.1          its log, the newest lines and those before
//	dead-letters/{job}/{id}.json      what a person must look at
//	force/{job}/{filters}.json        a forced run that is not complete
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/newsfork/seed-engine/io/store"
)

// maxObject bounds what is read of one ledger object, so that a foreign object
// in its place cannot fill the memory.
const maxObject = 64 << 20

// name is what a run id, a job or a filter hash may look like: one path
// segment, so that a name given by a person cannot leave its folder.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

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

// load reads one object and decodes it.
func load[T any](ctx context.Context, s store.Store, key string, decode func([]byte) (T, error)) (T, error) {
	var none T
	b, err := read(ctx, s, key)
	if err != nil {
		return none, err
	}
	v, err := decode(b)
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", key, err)
	}
	return v, nil
}

// parse decodes JSON that others may have written: what names the thing that
// was expected, for the error.
func parse(what string, b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("not a %s: %w", what, err)
	}
	return nil
}

var asJSON = store.PutOptions{ContentType: "application/json"}

// save writes v as one JSON object, over whatever is there.
func save(ctx context.Context, s store.Store, key string, v any) error {
	b, err := encode(key, v)
	if err != nil {
		return err
	}
	return store.Write(ctx, s, key, b, asJSON)
}

// create writes v as one JSON object; the error matches store.ErrExist when
// there is another one. v must tell its writer from any other.
func create(ctx context.Context, s store.Store, key string, v any) error {
	b, err := encode(key, v)
	if err != nil {
		return err
	}
	return store.Create(ctx, s, key, b, asJSON)
}

func encode(key string, v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", key, err)
	}
	return append(b, '\n'), nil
}

func remove(ctx context.Context, s store.Store, key string) error {
	return store.Remove(ctx, s, key)
}
