package seed_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

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
		{name: "few hosts", hosts: 50, done: 45, visited: 5, listsUp: 8},
		{name: "a listing costs more", hosts: 11, done: 6, visited: 5, heads: 11, listsUp: 8},
		{name: "hosts among others", hosts: 120, done: 110, others: 1100, visited: 10, listsUp: 10},
		{name: "few hosts among many", hosts: 36, done: 30, others: 1100, visited: 6, heads: 36, listsUp: 10},
		{name: "a listing does not say which run wrote a mark", hosts: 120, done: 110, forced: true, visited: 120, heads: 110, listsUp: 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t, webtest.Options{})
			raw, names := j.hosts(tt.hosts)
			for _, name := range names[:tt.done] {
				j.put(out(raw, name, "domain_metadata.json.success"), "")
			}
			var others []string
			for i := range tt.others { // "-" is before "." and all digits
				others = append(others, fmt.Sprintf("kind-no-sitemap-0-%04d.com", i))
			}
			calls := new(store.Calls)
			j.wrap = withFinished(calls, raw, others)
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

// finished is a store that has the results of these domains in one partition, besides
// the objects of the store behind it. It is not on this machine.
type finished struct {
	store.Store
	keys []string // sorted
}

// withFinished returns what puts such a store before another one, counted: at once, as the
// worker is at work.
func withFinished(calls *store.Calls, raw string, names []string) func(store.Store) store.Store {
	f := &finished{}
	for _, name := range names {
		for _, file := range []string{"domain_metadata.json", "domain_metadata.json.success", "robots.txt", "sitemap.xml"} {
			f.keys = append(f.keys, out(raw, name, file))
		}
	}
	slices.Sort(f.keys)
	return func(s store.Store) store.Store {
		f.Store = s
		return store.Counted(f, calls)
	}
}

func (f *finished) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		at, _ := slices.BinarySearch(f.keys, prefix)
		for o, err := range f.Store.List(ctx, prefix) {
			for err == nil && at < len(f.keys) && f.keys[at] < o.Key && strings.HasPrefix(f.keys[at], prefix) {
				if !yield(store.Object{Key: f.keys[at]}, nil) {
					return
				}
				at++
			}
			if !yield(o, err) {
				return
			}
		}
		for ; at < len(f.keys) && strings.HasPrefix(f.keys[at], prefix); at++ {
			if !yield(store.Object{Key: f.keys[at]}, nil) {
				return
			}
		}
	}
}

func (f *finished) Head(ctx context.Context, key string) (store.Object, error) {
	if _, ok := slices.BinarySearch(f.keys, key); ok {
		return store.Object{Key: key}, nil
	}
	return f.Store.Head(ctx, key)
}

// Lanes of one process share what was listed, however few hosts each has: all of
// 25,000 finished domains cost a hundred calls, and those few that are open are
// visited.
func TestResumeOverManyLanes(t *testing.T) {
	const hosts, open = 25_000, 20
	for _, lanes := range []int{20, 1000} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			j := newJob(t, webtest.Options{})
			raw, names := j.hosts(hosts)
			var done, visited []string
			for i, name := range names {
				if i%(hosts/open) == 0 {
					visited = append(visited, name)
				} else {
					done = append(done, name)
				}
			}
			calls := new(store.Calls)
			j.wrap = withFinished(calls, raw, done)
			j.cfg.Lanes = lanes
			counts := j.run().Counts
			assert.EqualValues(t, open, counts["domains_collected"])
			assert.EqualValues(t, hosts-open, counts["domains_already_done"])
			assert.EqualValues(t, 1, counts["files_completed"])
			for _, name := range visited {
				assert.True(t, j.done(raw, name), name)
			}
			now := calls.Snapshot()
			t.Log(lanes, "lanes:", now)
			assert.LessOrEqual(t, now["list"]+now["head"], int64(200))
		})
	}
}
