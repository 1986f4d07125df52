package lease

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/store/storetest"
)

// OnWait is not called for one of several leases that the same run has, but for
// another run's lease, and when Acquire waits for a single lease.
func TestWaitTells(t *testing.T) {
	run := func(id string) Holder { return Holder{Host: "elsewhere", PID: 1, RunID: id} }
	for name, c := range map[string]struct {
		holder string
		leases []string
		waited []string
	}{
		"a slot of its own":     {"r1", []string{"slot/0", "slot/1"}, nil},
		"another run's slot":    {"r0", []string{"slot/0", "slot/1"}, []string{"slot/0", "slot/1"}},
		"its own lane's holder": {"r1", []string{"lane"}, []string{"lane"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := storetest.NewMemory(), t.Context()
				for _, l := range c.leases {
					_, err := Acquire(ctx, InStore(s), l, run(c.holder), ttl)
					must(t, err)
				}
				var waited []string
				w := WaitPolicy{Proceed: func(context.Context) bool { return true }, OnWait: func(e *InUseError) { waited = append(waited, e.Name) }}
				l, err := Acquire(ctx, InStore(s), c.leases[0], run("r1"), ttl, Or(c.leases[1:]...), Wait(w))
				must(t, err)
				assert.True(t, l != nil && slices.Equal(waited, c.waited), "lease %v, waited %q, want %q", l, waited, c.waited)
			})
		})
	}
}
