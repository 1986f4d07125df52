package seed_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

// elsewhere hides that a store is a directory.
type elsewhere struct{ store.Store }

// A resumed run lists the marks of a partition instead of asking for each one, visits
// just the hosts without a mark, and counts all.
func TestResumeListsMarks(t *testing.T) {
	tests := []struct {
		name           string
		hosts, done    int
		others         int // finished hosts of the partition that the run does not request
		forced         bool
		visited        int
		heads, listsUp int64 // calls for marks; listings at most
	}{
		{name: "most are finished", hosts: 200, done: 190, visited: 10, listsUp: 10},
		{name: "few hosts", hosts: 50, done: 45, visited: 5, heads: 50, listsUp: 8},
		{name: "few hosts among many", hosts: 120, done: 110, others: 1100, visited: 10, heads: 120, listsUp: 10},
		{name: "a listing does not say which run wrote a mark", hosts: 120, done: 110, forced: true, visited: 120, heads: 110, listsUp: 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t, webtest.Options{})
			raw, names := j.hosts(tt.hosts)
			for _, name := range names[:tt.done] {
				j.put(out(raw, name, "domain_metadata.json.success"), "")
			}
			for i := range tt.others { // "-" is before "." and all digits
				j.put(out(raw, fmt.Sprintf("kind-no-sitemap-0-%04d.com", i), "domain_metadata.json.success"), "")
			}
			calls := new(store.Calls)
			j.wrap = func(s store.Store) store.Store { return store.Counted(elsewhere{s}, calls) }
			if tt.forced {
				j.cfg.ForceID = "forced"
			}
			counts := j.run().Counts
			assert.EqualValues(t, tt.visited, counts["domains_collected"])
			assert.EqualValues(t, tt.hosts-tt.visited, counts["domains_already_done"])
			assert.EqualValues(t, 1, counts["files_completed"])
			visited := map[string]bool{}
			for _, r := range j.web.Requests() {
				visited[r.Host] = true
			}
			assert.Len(t, visited, tt.visited)
			now := calls.Snapshot()
			assert.EqualValues(t, tt.heads, now["head"]-2, "besides the raw file, before it is read and before it is marked")
			assert.LessOrEqual(t, now["list"], tt.listsUp)
		})
	}
}
