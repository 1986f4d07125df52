package seed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// elsewhere hides that a store is in memory.
type elsewhere struct{ store.Store }

// A lane that is begun again in the same run may have been worked at since the process
// listed its partition. So it asks for each mark that the listing has not.
func TestLaneAgain(t *testing.T) {
	const raw = "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"
	in := hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}
	cfg := Config{Lanes: 2, Lane: lane.Config{Job: Job, RunID: t.Name(), Store: "mem://" + t.Name(), LogFormat: "json", LogLevel: 12, Web: web.Config{Concurrency: 1}}}
	fn := &visitFn{doFn: doFn{Config: cfg}}
	require.NoError(t, fn.Setup(t.Context()))
	defer func() { require.NoError(t, lane.Close(cfg.Lane.RunID)) }()
	calls := new(store.Calls)
	fn.Worker.Store = store.Counted(elsewhere{fn.Worker.Store}, calls)

	var hosts []lane.URLRecord // of lane 0
	for i := range 80 {
		if name := fmt.Sprintf("site-%02d.com", i); lane.Of(name, cfg.Lanes) == 0 {
			hosts = append(hosts, lane.URLRecord{Host: name, Label: "com:sg", Index: i})
		}
	}
	finish := func(hosts []lane.URLRecord) {
		for _, h := range hosts {
			require.NoError(t, store.Write(t.Context(), fn.Worker.Store, metadataKey(in, h.Host)+hive.Success, nil, store.PutOptions{}))
		}
	}
	run := func(hosts []lane.URLRecord) (cost map[string]int64) {
		before := calls.Snapshot()
		var total ledger.Tally
		todo := []lane.Batch{lane.NewBatch(raw, hosts)}
		batches := func(b *lane.Batch) bool {
			if len(todo) == 0 {
				return false
			}
			*b, todo = todo[0], nil
			return true
		}
		require.NoError(t, fn.ProcessElement(t.Context(), 0, batches, func(string, FileOutcome) {}, func(Network) {}, func(t ledger.Tally) { total.Add(t) }))
		require.NoError(t, fn.FinishBundle(func(string, FileOutcome) {}, func(Network) {}, func(t ledger.Tally) { total.Add(t) }))
		require.EqualValues(t, len(hosts), total.Counts["domains_already_done"])
		require.Zero(t, fn.Worker.Web.Stats().Requests)
		cost = map[string]int64{}
		for kind, n := range calls.Snapshot() {
			cost[kind] = n - before[kind]
		}
		return cost
	}
	finish(hosts[:20])
	cost := run(hosts[:20])
	require.Zero(t, cost["head"])
	finish(hosts[20:30]) // by another worker, which had the lane for a while
	cost = run(hosts[:30])
	require.EqualValues(t, 10, cost["head"])
	require.Zero(t, cost["list"])
}

// Names beyond the limit are not kept, and their marks are asked for.
func TestListingsAreLimited(t *testing.T) {
	s, err := store.Open(t.Context(), "mem://"+t.Name())
	require.NoError(t, err)
	in := hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}
	var names []string
	for i := range 60 {
		name := fmt.Sprintf("%c-%02d.com", 'a'+i/30, i)
		names = append(names, name)
		require.NoError(t, store.Write(t.Context(), s, metadataKey(in, name)+hive.Success, nil, store.PutOptions{}))
	}
	var all listings
	all.kept.Store(maxKept - 30)
	l := all.of(in)
	l.ranges, l.depth = map[string]*nameRange{}, 1
	own := l.want(names, 1, 1)
	require.Len(t, own, 2)
	for range 2 { // a range that has too many names is not listed again
		for _, begin := range []string{"a", "b"} {
			require.NoError(t, l.list(t.Context(), s, begin, own[begin]))
		}
	}
	require.EqualValues(t, maxKept, all.kept.Load())
	require.Equal(t, 2, l.pages)
	for _, name := range names {
		found, known := l.has(name)
		require.Equal(t, strings.HasPrefix(name, "a"), known, name)
		require.Equal(t, known, found, name)
	}
}
