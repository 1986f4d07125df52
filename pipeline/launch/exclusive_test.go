package launch

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// ignoring is a store that ignores If-None-Match.
type ignoring struct{ *storetest.Memory }

func (s ignoring) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	return s.Put(ctx, key, body, o)
}

// On a store where two runs could have the same lease no run begins: exit code 2.
func TestStoreThatIgnoresConditionsIsBadUsage(t *testing.T) {
	s := ignoring{storetest.NewMemory()}
	o := Options{Runner: "direct", RunOptions: pipeline.RunOptions{Job: "seed", LogFormat: "json", LeaseTTL: 30e9}, Flags: option.New("")}
	_, err := start(t.Context(), s, o, os.Stderr)
	require.ErrorIs(t, err, store.ErrNotExclusive)
	require.True(t, usage.Is(err), err)
	require.Empty(t, s.Keys())
}

// A run whose lease cannot be released has ended as it ended: the lease expires by itself.
func TestUnreleasedLeaseFailsNoRun(t *testing.T) {
	inner := storetest.NewMemory()
	s := &refusing{Store: inner}
	o := Options{Runner: "direct", RunOptions: pipeline.RunOptions{Job: "seed", LogFormat: "json", LeaseTTL: 30e9}, Flags: option.New("")}
	r, err := start(t.Context(), s, o, os.Stderr)
	require.NoError(t, err)
	s.refuses.Store(true)
	require.NoError(t, r.close())
	require.Contains(t, inner.M["lease/seed/000001"], `"released": false`)
}
