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

// A run without a living holder of its job's lease is silent since the last renewal, or since a lane last wrote its progress.
func TestSeen(t *testing.T) {
	start := time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
	for name, test := range map[string]struct {
		renewed time.Duration // after the start; the lease lasts a minute
		lane    time.Duration // after the start; 0: no lane began
		change  func(*Run)
		want    State
		since   time.Duration
	}{
		"at work":                    {renewed: time.Hour, want: Running},
		"killed":                     {renewed: 20 * time.Minute, want: Silent, since: 20 * time.Minute},
		"killed while it was paused": {renewed: time.Minute, change: func(r *Run) { r.State = Paused }, want: Silent, since: time.Minute},
		"its lane wrote later":       {renewed: time.Minute, lane: 90 * time.Second, want: Silent, since: 90 * time.Second},
		"the lease is an older one":  {renewed: -time.Minute, want: Silent},
		"over":                       {renewed: time.Minute, change: func(r *Run) { r.State = Failed }, want: Failed},
		"its workers outlived it":    {renewed: time.Minute, lane: time.Hour, change: func(r *Run) { r.Runner = "flink" }, want: Running},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), "mem://"+t.Name())
			require.NoError(t, err)
			r := Run{RunID: "1-run", Job: "seed", StartedAt: start}
			require.NoError(t, Start(t.Context(), s, r))
			if r.State = Running; test.change != nil {
				test.change(&r)
			}
			require.NoError(t, store.WriteJSON(t.Context(), s, "runs/1-run/state.json", r))
			require.NoError(t, store.WriteJSON(t.Context(), s, "lease/seed/000001", map[string]any{"holder": map[string]any{"host": "elsewhere"},
				"token": "t", "expires_at": start.Add(test.renewed + time.Minute), "ttl_ns": time.Minute}))
			if test.lane > 0 {
				require.NoError(t, WriteProgress(t.Context(), s, "1-run", "p", Progress{Lanes: []LaneProgress{{UpdatedAt: start.Add(test.lane)}}}))
			}
			got, err := Seen(t.Context(), s, r)
			require.NoError(t, err)
			require.Equal(t, test.want, got.State)
			report, err := ReportSoFar(t.Context(), s, Job{}, r, start.Add(time.Hour))
			require.NoError(t, err)
			require.Equal(t, test.want, report.State)
			if test.want == Silent {
				want := "no sign of life since " + start.Add(test.since).Format(time.RFC3339) + "; the next run of seed resumes it"
				require.Equal(t, []string{want, want}, []string{got.Error, report.Error})
			}
		})
	}
}
