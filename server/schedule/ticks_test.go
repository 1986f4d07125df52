package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

func TestHundredTicksAreKept(t *testing.T) {
	s := New()
	var err error
	s.Store, err = store.Open(t.Context(), "mem://"+t.Name())
	require.NoError(t, err)
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for i := range maxTicks + 5 {
		require.NoError(t, store.WriteJSON(t.Context(), s.Store, TickKey("hourly", at.Add(time.Duration(i)*time.Hour)), Tick{At: at}))
	}
	require.NoError(t, s.sweep(t.Context(), "hourly"))
	left, err := s.keys(t.Context(), "hourly")
	require.NoError(t, err)
	require.Len(t, left, maxTicks)
	assert.Equal(t, TickKey("hourly", at.Add(5*time.Hour)), left[0])
}
