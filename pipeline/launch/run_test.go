package launch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/docs"
)

// Wherever a failed run is shown, its reason is shown.
func TestFailedRunSaysWhy(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	x := &run{store: s, job: "seed"}
	for _, c := range []struct {
		id, want string
		out      outcome
	}{
		{"r1", "the pipeline stopped: the runner said token=REDACTED no", outcome{err: errors.New("the runner said token=abc\n  no")}},
		{"r2", ErrInterrupted.Error(), outcome{interrupted: true}},
		{"r3", errCutShort.Error(), outcome{}},
		{"r4", "29 results are missing: " + ledger.ErrNotStored.Error(), outcome{}},
	} {
		record := ledger.Run{RunID: c.id, Job: "seed", Runner: "direct", StartedAt: time.Now()}
		require.NoError(t, ledger.Start(t.Context(), s, record))
		if c.id == "r4" { // 71 others were stored
			total := ledger.Tally{Counts: ledger.Counts{ledger.NotStored: 29, "domains_collected": 71}}
			require.NoError(t, ledger.WriteTotal(t.Context(), s, c.id, total))
		}
		r, _, err := x.conclude(t.Context(), record, c.out)
		assert.True(t, err != nil && r.Error == c.want && r.State.Over() && r.State != ledger.Done,
			"%s: %v, %s because of %q, want %q", c.id, err, r.State, r.Error, c.want)
		var table bytes.Buffer
		if err := r.WriteTable(&table, nil); err != nil || !strings.Contains(table.String(), c.want) {
			t.Errorf("the table of %s (%v):\n%s", c.id, err, table.String())
		}
		kept, err := ledger.Load(t.Context(), s, c.id)
		assert.True(t, err == nil && kept.Error == c.want, "the ledger has %q (%v), want %q", kept.Error, err, c.want)
	}
}

// The user gets the report even when the store is gone at the run's end.
func TestConcludeWithoutTheStore(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	record := ledger.Run{RunID: ledger.NewRunID(time.Now()), Job: "seed", Runner: "direct", StartedAt: time.Now()}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "runs", record.RunID, "state.json", "in the way"), 0o755))
	var live ledger.Tally
	live.Count("domains_collected", 7)
	x := &run{store: s, job: "seed"}
	r, _, err := x.conclude(t.Context(), record, outcome{live: live})
	assert.True(t, err != nil && r != nil && r.State == ledger.Failed && r.Counts["domains_collected"] == 7 && r.RunID == record.RunID,
		"report %+v, error %v; want the report of a failed run with its counts, and the store's error", r, err)
	_, _, err = x.conclude(t.Context(), record, outcome{live: live, interrupted: true})
	assert.ErrorIs(t, err, ErrInterrupted, "an interrupted run: %v, want ErrInterrupted", err)
}

// recorded is a store that records the order of its writes and syncs.
type recorded struct {
	store.Store
	syncErr error
	calls   []string
}

func (r *recorded) Sync(context.Context) error {
	r.calls = append(r.calls, "sync")
	return r.syncErr
}

func (r *recorded) Put(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	r.calls = append(r.calls, key)
	return r.Store.Put(ctx, key, body, o)
}

// A run is done only when its results would survive a power cut: its store is
// synced first, and when that fails the run has failed.
func TestStoreIsSyncedBeforeDone(t *testing.T) {
	for _, c := range []struct {
		name    string
		syncErr error
		want    ledger.State
	}{{"synced", nil, ledger.Done}, {"not synced", errors.New("I/O error"), ledger.Failed}} {
		t.Run(c.name, func(t *testing.T) {
			s, err := store.Open(t.Context(), t.TempDir())
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			record := ledger.Run{RunID: "r1", Job: "seed", Runner: "direct", StartedAt: time.Now()}
			require.NoError(t, ledger.Start(t.Context(), s, record))
			require.NoError(t, ledger.WriteTotal(t.Context(), s, "r1", ledger.Tally{}))
			r := &recorded{Store: s, syncErr: c.syncErr}
			report, _, err := (&run{store: r, job: "seed"}).conclude(t.Context(), record, outcome{})
			require.ErrorIs(t, err, c.syncErr)
			require.Equal(t, c.want, report.State)
			require.NotEmpty(t, r.calls)
			require.Equal(t, "sync", r.calls[0], "nothing that says that the run has ended is written before the sync: %q", r.calls)
			kept, err := ledger.Load(t.Context(), s, "r1")
			require.NoError(t, err)
			require.Equal(t, c.want == ledger.Done, kept.State == ledger.Done)
			require.Equal(t, c.want == ledger.Done, slices.Contains(r.calls, "runs/r1/report.json"), "%q", r.calls)
		})
	}
}

// With --strict a docs run that left providers undone ends like one with dead
// letters.
func TestLeftOver(t *testing.T) {
	job, ok := pipeline.Named(docs.Job)
	require.True(t, ok)
	report := func(counts ledger.Counts, sites ...ledger.SiteState) ledger.Report {
		return ledger.Report{Counts: counts, Sites: sites}
	}
	require.NoError(t, leftOver(job, report(ledger.Counts{"providers": 2})))
	require.Equal(t, ErrNotDone, leftOver(job, report(ledger.Counts{"providers": 2, docs.ProvidersNotDone: 1})))
	require.Equal(t, ErrStrict, leftOver(job, report(ledger.Counts{"dead_letters": 1, docs.ProvidersNotDone: 1})))
	require.NoError(t, leftOver(job, report(nil, ledger.SiteState{State: ledger.SiteOpen})))
	require.Equal(t, ErrNotDone, leftOver(job, report(nil, ledger.SiteState{State: "moved"})))
}
