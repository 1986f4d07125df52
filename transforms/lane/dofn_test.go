package lane

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/lease"
)

// The DoFns of a process share the run's worker, and the Teardown of the last one
// closes it. In the launcher's process it stays open until the launcher calls Close.
func TestTeardownClosesTheWorker(t *testing.T) {
	for name, c := range map[string]struct {
		leases, launcher bool
		closed           bool
	}{
		"a worker process":                      {leases: true, closed: true},
		"one process":                           {launcher: true},
		"the launcher's process, workers apart": {leases: true, launcher: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			cfg := Config{Job: "seed", RunID: fmt.Sprintf("teardown-%d", memories.Add(1)), Store: fmt.Sprintf("mem://teardown-%d", memories.Add(1)), LogFormat: "json", LogLevel: 12, Leases: c.leases}
			if c.launcher {
				l, err := lease.Acquire(ctx, lease.InStore(memory(t)), "run", lease.Holder{Host: "a"}, DefaultLeaseTTL)
				require.NoError(t, err)
				Under(cfg.RunID, l)
			}
			var first, second, failed DoFn
			require.NoError(t, errors.Join(first.Open(ctx, cfg), second.Open(ctx, cfg)))
			w := first.Worker
			require.Same(t, w, second.Worker)
			require.NoError(t, errors.Join(first.Teardown(), first.Teardown(), failed.Teardown()))
			require.NoError(t, w.ctx.Err(), "another DoFn uses it")
			require.NoError(t, second.Teardown())
			_, open := Find(cfg.RunID)
			require.Equal(t, c.closed, !open)
			require.Equal(t, c.closed, w.ctx.Err() != nil)
			require.NoError(t, Close(cfg.RunID))
			require.Error(t, w.ctx.Err())
		})
	}
}
