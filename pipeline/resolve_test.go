package pipeline

import (
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/seed"
)

// Hosts are told apart by server before they are visited if servers have a pause and
// several lanes share them: one lane has all servers.
func TestSeedResolves(t *testing.T) {
	if !beam.Initialized() {
		beam.Init()
	}
	resolves := func(lanes int, delay time.Duration) (found bool) {
		cfg := seed.Config{Lanes: lanes}
		cfg.Lane.Polite.Servers.Delay = delay
		p, scope := beam.NewPipelineWithRoot()
		Seed(scope, cfg)
		edges, _, err := p.Build()
		require.NoError(t, err)
		for _, e := range edges {
			found = found || e.Scope().Label == "seed.Resolve"
		}
		return found
	}
	require.True(t, resolves(3, time.Second))
	require.False(t, resolves(1, time.Second))
	require.False(t, resolves(3, 0))
}
