package known

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// The audit keeps the newest lines only, newest first.
func TestAudit(t *testing.T) {
	s, err := store.Open(t.Context(), "mem://"+t.Name())
	require.NoError(t, err)
	a, first := NewAudit(s), time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for i := range maxAudit + 3 {
		require.NoError(t, a.Write(t.Context(), AuditLine{At: first.Add(time.Duration(i) * time.Second), Target: fmt.Sprint(i)}))
	}
	require.NoError(t, a.Sweep(t.Context()))
	lines, err := a.Newest(t.Context(), 2*maxAudit)
	require.NoError(t, err)
	require.Len(t, lines, maxAudit)
	for i, l := range lines {
		assert.Equal(t, fmt.Sprint(maxAudit+2-i), l.Target)
	}
}
