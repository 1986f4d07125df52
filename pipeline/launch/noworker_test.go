package launch

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/storetest"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// A run that waits for workers logs that, until a worker has begun.
func TestNoWorkerYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		o := Options{Runner: "flink", RunOptions: pipeline.RunOptions{Job: "seed", LogFormat: "json"}, Flags: option.New("")}
		r := &run{store: s, o: o, job: "seed", id: "r1", lostLease: make(chan struct{})}
		endLog, err := lane.KeepLog(t.Context(), s, "r1", "")
		require.NoError(t, err)
		done := make(chan error)
		go func() {
			time.Sleep(100 * time.Second)
			l, err := ledger.NewLog(s, "r1", "host-1")
			if err == nil {
				_, _ = l.Write([]byte("begun\n"))
				err = l.Flush(t.Context())
			}
			time.Sleep(200 * time.Second)
			done <- errors.Join(err, errCutShort)
		}()
		out := r.wait(t.Context(), done, newProgressLine(o, new(bytes.Buffer)), "r1")
		require.ErrorIs(t, out.err, errCutShort)
		require.NoError(t, endLog(t.Context()))
		kept, err := s.Open(t.Context(), "runs/r1/log")
		require.NoError(t, err)
		lines, err := io.ReadAll(kept)
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(lines), `"event":"no_worker_yet"`), string(lines))
		require.Contains(t, string(lines), "lower it, add workers")
	})
}
