package runs

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
)

// The link to older runs keeps the filter.
func TestOlderRunsKeepTheFilter(t *testing.T) {
	jobs := known.JobsOf([]option.Job{{Job: ledger.Job{Name: "docs"}}})
	var all []*Entry
	for i := range 30 {
		all = append(all, &Entry{Run: ledger.Run{RunID: fmt.Sprintf("r%03d", 999-i), Job: []string{"seed", "docs"}[i%2], State: ledger.Failed,
			StartedAt: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), Error: "a & b"}})
	}
	q, seen := url.Values{"job": {"docs"}, "text": {"A & B"}, "from": {"2026-03-04"}, "state": {"failed"}}, 0
	for more := true; more; {
		f, err := ReadFilter(q, jobs)
		require.NoError(t, err)
		var found []*Entry
		found, more = f.Page(all, 4)
		for _, e := range found {
			assert.Equal(t, "docs", e.Run.Job)
		}
		seen += len(found)
		u, err := url.Parse(f.URL(found[len(found)-1].Run.RunID))
		require.NoError(t, err)
		q = u.Query()
	}
	assert.Equal(t, 15, seen)
}
