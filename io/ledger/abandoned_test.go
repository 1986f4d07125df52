package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

func TestCloseAbandoned(t *testing.T) {
	ctx := t.Context()
	s, err := store.Open(ctx, "mem://"+t.Name())
	require.NoError(t, err)
	at := time.Date(2026, 1, 28, 10, 0, 0, 0, time.UTC)
	for i, r := range []struct {
		id, job string
		state   State
	}{{"1-old", "seed", Running}, {"2-done", "seed", Done}, {"3-killed", "seed", Running}, {"4-docs", "docs", Running}, {"5-killed", "seed", Paused}} {
		require.NoError(t, Start(ctx, s, Run{RunID: r.id, Job: r.job, StartedAt: at.Add(time.Duration(i) * time.Minute)}))
		_, err := Finish(ctx, s, r.id, r.state, nil, at)
		require.NoError(t, err)
	}
	require.NoError(t, CloseAbandoned(ctx, s, "seed", at.Add(time.Hour)))
	got := map[string]State{}
	for r, err := range List(ctx, s) {
		require.NoError(t, err)
		got[r.RunID] = r.State
	}
	require.Equal(t, map[string]State{"1-old": Running, "2-done": Done, "3-killed": Interrupted, "4-docs": Running, "5-killed": Interrupted}, got)
	// Workers that outlived their launcher read that their run was cancelled.
	for id, want := range map[string]Action{"1-old": ActionRun, "2-done": ActionRun, "3-killed": ActionCancel, "4-docs": ActionRun, "5-killed": ActionCancel} {
		c, err := ReadControl(ctx, s, id)
		require.NoError(t, err)
		require.Equal(t, want, c.Action, id)
	}
}
