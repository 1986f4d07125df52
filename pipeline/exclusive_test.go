package pipeline

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

// ignoring is a store that ignores If-None-Match.
type ignoring struct{ *storetest.Memory }

func (s ignoring) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	return s.Put(ctx, key, body, o)
}

// On a store where two runs could have one lease nothing is begun: exit code 2.
func TestStoreThatIgnoresConditionsIsBadUsage(t *testing.T) {
	s := ignoring{storetest.NewMemory()}
	o := Options{Runner: "direct", LogFormat: "json", flags: newFlags(new(Options)), LeaseTTL: 30e9}
	_, err := begin(t.Context(), s, o, "seed", os.Stderr)
	require.ErrorIs(t, err, store.ErrNotExclusive)
	require.Equal(t, ExitUsage, Exit("pipeline", err, io.Discard))
	require.Empty(t, s.Keys())
}
