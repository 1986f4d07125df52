package seed

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// A file that touches many lanes takes memory for its records, not for the
// lanes: 16,000 of them took 625 MiB.
func TestExtractOverManyLanes(t *testing.T) {
	const lanes = 16_000
	var records []string
	for n := range lanes {
		records = append(records, fmt.Sprintf(`{"raw_url":"https://site-%d.com/"}`, n))
	}
	const key = "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"
	cfg := Config{Lanes: lanes, Lane: lane.Config{Job: Job, RunID: t.Name(), Store: "mem://" + t.Name(), LogFormat: "json", LogLevel: 12, Web: web.Config{Concurrency: 1}}}
	s, err := store.Open(t.Context(), cfg.Lane.Store)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), key, strings.NewReader(`{"records":[`+strings.Join(records, ",")+`]}`), store.PutOptions{}))
	fn := &extractFn{doFn: doFn{Config: cfg}}
	require.NoError(t, fn.Setup(t.Context()))
	defer func() { require.NoError(t, lane.Close(cfg.Lane.RunID)) }()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	batched := 0
	err = fn.ProcessElement(t.Context(), File{Key: key}, func(string, FileSummary) {}, func(_ int, b lane.Batch) {
		records, err := b.Records()
		require.NoError(t, err)
		batched += len(records)
	}, func(ledger.Tally) {})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, lanes, batched)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

// What waits for a full batch is limited in bytes over all lanes, however many there
// are; each record is emitted once, to its lane.
func TestBatchesAreLimitedOverAllLanes(t *testing.T) {
	const lanes, hosts = 5_000, 10_000
	long := strings.Repeat("x", 4<<10) // so that few records reach the limit, twice
	var b batches
	emitted := map[string]bool{}
	out := b.to("f", lanes, func(n int, batch lane.Batch) {
		records, err := batch.Records()
		if err != nil || batch.File != "f" {
			t.Fatal(batch.File, err)
		}
		for _, r := range records {
			if emitted[r.Host] || lane.Of(r.Host, lanes) != n {
				t.Fatal("again, or to another lane:", r.Host, n)
			}
			emitted[r.Host] = true
		}
	})
	largest := 0
	for i := range hosts {
		out.add(lane.URLRecord{Host: fmt.Sprintf("host-%d.example", i), Label: "com:sg", Index: i, Source: long})
		largest = max(largest, out.size)
	}
	require.LessOrEqual(t, largest, maxBuffered)
	require.NotEmpty(t, emitted, "the limit was reached")
	out.flush()
	require.Len(t, emitted, hosts)
	require.Zero(t, out.size)
}

// A file that ends in the middle voids its records only in the lanes that have some.
func TestVoidedLanes(t *testing.T) {
	var b batches
	voided := map[int]bool{}
	emit := func(n int, batch lane.Batch) {
		if batch.Broken {
			voided[n] = true
		}
	}
	out := b.to("f", 1000, emit)
	host := func(i int) string { return fmt.Sprintf("host-%d.example", i) }
	out.add(lane.URLRecord{Host: host(1)})
	out.flush()
	out.add(lane.URLRecord{Host: host(2)}) // still here
	out.void()
	require.Equal(t, map[int]bool{lane.Of(host(1), 1000): true}, voided)
	clear(voided)
	b.to("g", 1000, emit).void()
	require.Empty(t, voided, "what was emitted of the file before is nothing to this one")
}
