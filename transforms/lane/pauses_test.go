package lane

import (
	"context"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// flaky is a store whose first reads fail.
type flaky struct {
	store.Store
	failures int
}

func (s *flaky) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if s.failures > 0 {
		s.failures--
		return nil, syscall.ECONNRESET
	}
	return s.Store.Open(ctx, key)
}

// A worker's set-up survives a connection that breaks while it reads the pauses of an
// earlier run.
func TestLoadPausesRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		worker := func(s store.Store, run string) *Worker {
			w := leasing(t, s, run)
			w.Pauses.w, w.Pacer.Clock = w, polite.SystemClock
			return w
		}
		earlier := worker(s, "r1")
		require.NoError(t, earlier.LoadPauses(t.Context()))
		require.NoError(t, earlier.Pauses.Paused(t.Context(), "slow.com", time.Now().Add(time.Hour)))
		w := worker(&flaky{Store: s, failures: store.Retries}, "r2")
		require.NoError(t, w.LoadPauses(t.Context()))
		next, err := w.Pauses.Next(t.Context(), "slow.com")
		require.NoError(t, err)
		require.Greater(t, time.Until(next), 50*time.Minute)
	})
}

// The gap of the politeness file costs no call of the store: a process that begins owes it to each host.
func TestPausesOfThePolitenessFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		w := leasing(t, s, "r1")
		w.Pauses.w, w.Pacer.Clock = w, polite.SystemClock
		w.cfg.Polite = polite.Config{HostDelay: time.Second, Hosts: polite.Hosts{"slow.com": {Delay: 5 * time.Second}, "quick.com": {Delay: time.Millisecond}}}
		require.NoError(t, w.LoadPauses(t.Context()))
		now := time.Now()
		for site, gap := range map[string]time.Duration{"slow.com": 5 * time.Second, "quick.com": time.Second, "other.com": time.Second} {
			next, err := w.Pauses.Next(t.Context(), site)
			require.NoError(t, err)
			require.Equal(t, gap, next.Sub(now), site)
			_, err = w.Pauses.Requested(t.Context(), site, now, now.Add(gap))
			require.NoError(t, err)
			for o, err := range s.List(t.Context(), "pauses/") {
				require.NoError(t, err)
				t.Errorf("%s was written for %s", o.Key, site)
			}
		}
	})
}
