package ledger

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// A listing has what each process said last. The purge of the run removes it.
func TestAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, begin := t.Context(), time.Now()
		s, err := store.Open(ctx, "mem://alive-"+NewRunID(begin))
		require.NoError(t, err)
		listed := func() []Alive {
			all, err := ListAlive(ctx, s, "r1")
			require.NoError(t, err)
			for i := range all {
				all[i].At = all[i].At.UTC()
			}
			return all
		}
		require.Empty(t, listed())
		require.NoError(t, SayAlive(ctx, s, "r1", "host-7-X", 3))
		time.Sleep(time.Second)
		require.NoError(t, SayAlive(ctx, s, "r1", "host-8-Y", 1))
		require.NoError(t, SayAlive(ctx, s, "r2", "host-9-Z", 1))
		require.Equal(t, []Alive{{"host-7-X", 3, begin.UTC()}, {"host-8-Y", 1, begin.Add(time.Second).UTC()}}, listed())
		require.NoError(t, SayAlive(ctx, s, "r1", "host-7-X", 20))
		require.NoError(t, EndAlive(ctx, s, "r1", "host-8-Y"))
		require.NoError(t, EndAlive(ctx, s, "r1", "host-8-Y"))
		require.Equal(t, []Alive{{"host-7-X", 20, begin.Add(time.Second).UTC()}}, listed())
		require.ErrorContains(t, SayAlive(ctx, s, "r1", "../r2", 1), "not a process")
		require.NoError(t, Forget(ctx, s, "r1"))
		require.Empty(t, listed())
	})
}
