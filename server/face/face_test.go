package face

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
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

// A day that the board does not go back to is not shown as a day without runs.
func TestFrontGridKnowsItsLimit(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var all []*runs.Entry
	for i := range runs.MaxEntries {
		at := now.Add(-time.Duration(i) * 3 * time.Minute) // back to 2 March, 10:00
		all = append(all, &runs.Entry{Run: ledger.Run{RunID: ledger.NewRunID(at), Job: "seed", State: ledger.Done, StartedAt: at}})
	}
	var f frontPage
	f.grid(known.JobsOf([]option.Job{{Job: ledger.Job{Name: "seed"}}}), all, now.Truncate(24*time.Hour))
	var got []string
	for _, c := range f.Rows[0].Cells[:4] {
		got = append(got, fmt.Sprint(c.Parts, c.Unknown))
	}
	assert.Equal(t, []string{"[{done ✓ 241}] false", "[{done ✓ 480}] false", "[{done ✓ 279}] true", "[] true"}, got)
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
