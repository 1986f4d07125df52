package pipeline

import (
	"bytes"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// An asynchronous run holds no lease. A second run is refused all the same, and
// a watcher stands by until it has ended, without the lease in its hands.
func TestBesideAnAsynchronousRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s, err := store.Open(ctx, "mem://beside-async")
		require.NoError(t, err)
		require.NoError(t, ledger.Start(ctx, s, ledger.Run{RunID: "r1", Job: "seed", StartedAt: time.Now()}))
		require.NoError(t, ledger.Detach(ctx, s, "r1", "job-1", false))
		var said bytes.Buffer
		begin := func(watch time.Duration) (*session, chan error) {
			ses := &session{store: s, job: "seed", stderr: &said, signals: make(chan os.Signal, 1), lostLease: make(chan struct{}),
				o: Options{Watch: watch, LeaseTTL: 30 * time.Second, LogFormat: "text"}}
			taken := make(chan error, 1)
			go func() { taken <- ses.take(ctx, ledger.Holder{RunID: "w1", Job: "seed"}) }()
			synctest.Wait()
			return ses, taken
		}
		free := func() bool {
			_, held, err := ledger.HolderUnder(ctx, s, "seed")
			require.NoError(t, err)
			return !held
		}

		_, second := begin(0)
		var busy *ledger.AtWorkError
		require.ErrorAs(t, <-second, &busy)
		require.Equal(t, "r1", busy.Run.RunID)
		require.True(t, free())

		interrupted, watcher := begin(time.Minute)
		require.Regexp(t, "^standing by: run r1 was submitted with --async at .*runs cancel r1.*\n$", said.String())
		interrupted.signals <- syscall.SIGTERM
		require.ErrorIs(t, <-watcher, errInterrupted)

		said.Reset()
		ses, watcher := begin(time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, watcher)
		require.True(t, free())
		require.Equal(t, 1, bytes.Count(said.Bytes(), []byte("\n")), "%s", &said)
		require.NoError(t, ledger.WriteTotal(ctx, s, "r1", ledger.Tally{}))
		ended := time.Now()
		require.NoError(t, <-watcher)
		require.LessOrEqual(t, time.Since(ended), 10*time.Second)
		require.False(t, free())
		r, err := ledger.Load(ctx, s, "r1")
		require.NoError(t, err)
		require.Equal(t, ledger.Done, r.State)
		require.NoError(t, ses.end(ctx))
		require.True(t, free())
	})
}
