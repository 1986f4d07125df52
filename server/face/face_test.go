package face

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/server/schedule"
)

// TestProvidersTable shows the rows of a job's report.
func TestProvidersTable(t *testing.T) {
	r := ledger.Report{Providers: []map[string]any{
		{"provider": "mk", "state": "done", "articles": 12345.0, "alerts": []string{"x"}, "parse_failure_rate": 0.125},
		{"provider": "other", "state": "stopped", "reason": "403"},
	}}
	assert.Equal(t, table{
		Head: []string{"provider", "state", "reason", "articles", "parse_failure_rate"},
		Rows: [][]cell{
			{{"mk", false}, {"done", false}, {"–", false}, {"12,345", true}, {"0.12", true}},
			{{"other", false}, {"stopped", false}, {"403", false}, {"–", false}, {"–", false}},
		},
	}, providers(r))
	assert.Empty(t, providers(ledger.Report{}).Rows)
}

// Failures of one job and one cause are one group, also where their numbers differ; what is not of the last days is none.
func TestFailuresSince(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var all []*runs.Entry
	add := func(job string, state ledger.State, why string) {
		at := now.Add(-time.Duration(len(all)) * time.Hour)
		all = append(all, &runs.Entry{Run: ledger.Run{RunID: fmt.Sprint("run", len(all)), Job: job, State: state, StartedAt: at, FinishedAt: at, Error: why}})
	}
	add("seed", ledger.Failed, "dial tcp 127.0.0.1:40018: refused")
	add("docs", ledger.Failed, "dial tcp 127.0.0.1:40018: refused")
	add("seed", ledger.Done, "")
	add("seed", ledger.Interrupted, "dial tcp 127.0.0.1:40019: refused")
	add("seed", ledger.Failed, "")
	add("seed", ledger.Cancelled, "dial tcp 127.0.0.1:40019: refused")
	add("seed", ledger.Failed, "too old")
	var got []string
	for _, g := range failuresSince(all, now.Add(-5*time.Hour-time.Minute)) {
		since := "none"
		if g.Since != nil {
			since = g.Since.Run.RunID
		}
		got = append(got, fmt.Sprint(g.Job, " ", g.N, " ", g.Text, " ", g.URL, " since ", since))
	}
	assert.Equal(t, []string{"seed 2 dial tcp 127.0.0.1:40018: refused /runs?from=2026-03-04&job=seed since none",
		"docs 1 dial tcp 127.0.0.1:40018: refused /runs/run1 since none", "seed 1  /runs/run4 since run2"}, got)
}

// A mark of a strip has a sign and a text, and its bar is as high as its duration.
func TestStrip(t *testing.T) {
	at := time.Date(2026, 3, 4, 3, 0, 0, 0, time.UTC)
	var got []string
	for _, m := range strip([]schedule.Mark{{At: at, State: "done", RunID: "a", Seconds: 600}, {At: at, State: "interrupted", RunID: "b", Seconds: 300, Error: "killed"},
		{At: at, State: "cancelled", RunID: "c"}, {At: at, State: "paused", RunID: "d"}, {At: at, State: schedule.NotBegun, Error: "no such program"},
		{At: at, State: schedule.Skipped, RunID: "e"}, {At: at, State: schedule.Missed, Missed: 3}, {At: at, State: "started"}}, utc) {
		_, bar, _ := strings.Cut(string(m.Bar), ` height="`)
		bar, _, _ = strings.Cut(bar, `"`)
		got = append(got, fmt.Sprint(m.Kind, " ", m.Sign(), " ", bar, " ", m.Linked(), " ", m.Text))
	}
	const day = "2026-03-04 03:00 UTC: "
	assert.Equal(t, []string{"done ✓ 40.0 true " + day + "done after 10m0s", "failed ✗ 20.0 true " + day + "interrupted after 5m0s: killed",
		"cancelled – 3.0 true " + day + "cancelled", "active ▶ 40.0 true " + day + "paused", "not_begun ⊘ 3.0 false " + day + "it did not begin: no such program",
		"skipped » 3.0 true " + day + "skipped, another run was active", "missed ○ 3.0 false " + day + "missed, no server was running (3 times)",
		"unknown ? 3.0 false " + day + "started"}, got)
}

// The age of a result is not known if the run is older than all that are shown.
func TestFresh(t *testing.T) {
	at := time.Date(2026, 3, 4, 3, 0, 0, 0, time.UTC)
	tick := schedule.Tick{At: at, Outcome: "started", RunID: "a"}
	run := runs.Entry{Run: ledger.Run{RunID: "a", State: ledger.Done, Schedule: "s", StartedAt: at, FinishedAt: at.Add(time.Hour)}}
	for want, c := range map[string]struct {
		ticks []schedule.Tick
		all   []*runs.Entry
	}{
		"No result yet":           {nil, nil},
		"No result":               {[]schedule.Tick{{At: at, Outcome: "missed"}}, nil},
		"Newest result not known": {[]schedule.Tick{tick}, nil},
		"Newest result 2 h ago":   {[]schedule.Tick{tick}, []*runs.Entry{&run}},
	} {
		views := []schedule.View{{Now: at.Add(3 * time.Hour), Plan: schedule.Plan{Schedule: schedule.Schedule{Name: "s"}}, Ticks: c.ticks}}
		schedule.History(views, c.all)
		assert.Equal(t, want, fresh(views[0]))
	}
}

// A look that takes too long ends, and no more than a few are under way.
func TestExploreIsBounded(t *testing.T) {
	began := make(chan struct{})
	e := newExplorer(nil, func(context.Context, string) (explore.Source, error) { return explore.Source{}, nil })
	look := func(ctx context.Context) error {
		return e.look(ctx, kind{}, func(ctx context.Context, _ explore.Source) error {
			began <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range maxLooks {
		go func() { ended <- look(ctx) }()
	}
	for range maxLooks {
		<-began
	}
	another, give := context.WithCancel(t.Context())
	give()
	require.ErrorIs(t, look(another), context.Canceled, "all slots are taken")
	cancel()
	for range maxLooks {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
}

// TestTooManyStreams refuses an event stream over the limit, and accepts one after
// another has ended.
func TestTooManyStreams(t *testing.T) {
	f := &Face{Parts: Parts{Board: runs.NewBoard(nil, nil, nil), Closing: make(chan struct{})}}
	close(f.Closing)
	for streams, code := range map[int64]int{maxStreams: http.StatusServiceUnavailable, maxStreams - 1: http.StatusOK} {
		f.streams.Store(streams)
		rec := httptest.NewRecorder()
		f.events(rec, httptest.NewRequest("GET", "/events", nil))
		assert.Equal(t, code, rec.Code)
		assert.Equal(t, code != http.StatusOK, rec.Header().Get("Retry-After") == "30")
		assert.Equal(t, streams, f.streams.Load())
	}
}
