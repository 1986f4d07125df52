package schedule

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
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

// gone is a store from which another server removes a tick after it was listed.
type gone struct {
	store.Store
	key string
}

func (g gone) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if key == g.key {
		return nil, store.ErrNotExist
	}
	return g.Store.Open(ctx, key)
}

// An older tick that is no JSON, and one that is removed meanwhile, do not stop a schedule.
func TestUnreadableTick(t *testing.T) {
	for about, c := range map[string]struct {
		broken, gone int // days of ticks
		want         []time.Time
		logged       int
		fails        string
	}{
		"an older one is broken": {broken: 2, want: []time.Time{night(1), night(3)}, logged: 1},
		"an older one is gone":   {gone: 2, want: []time.Time{night(1), night(3)}},
		"the newest is gone":     {gone: 3, want: []time.Time{night(1), night(2)}},
		"the newest is broken":   {broken: 3, fails: TickKey("nightly", night(3))},
	} {
		t.Run(about, func(t *testing.T) {
			var log bytes.Buffer
			inner, err := store.Open(t.Context(), "mem://"+strings.ReplaceAll(t.Name(), "/", "-"))
			require.NoError(t, err)
			for day := 1; day <= 3; day++ {
				require.NoError(t, store.WriteJSON(t.Context(), inner, TickKey("nightly", night(day)), Tick{At: night(day)}))
			}
			if c.broken > 0 {
				require.NoError(t, store.Write(t.Context(), inner, TickKey("nightly", night(c.broken)), []byte("{"), store.PutOptions{}))
			}
			s := New()
			s.Store, s.Log = gone{inner, TickKey("nightly", night(c.gone))}, slog.New(slog.NewTextHandler(&log, nil))
			_, err = s.tickSchedule(t.Context(), Plan{Schedule: daily(t).Schedule}, night(3).Add(time.Hour))
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			var got []time.Time
			for _, tick := range s.recent["nightly"] {
				got = append(got, tick.At)
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.logged, strings.Count(log.String(), "schedule_tick_unreadable"))
		})
	}
}
