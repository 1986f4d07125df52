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
	fn := &extractFn{doFn{Config: cfg}}
	require.NoError(t, fn.Setup(t.Context()))
	defer func() { require.NoError(t, lane.Close(cfg.Lane.RunID)) }()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	batched := 0
	err = fn.ProcessElement(t.Context(), File{Key: key}, func(string, FileSummary) {}, func(_ int, b lane.Batch) { batched += len(b.Records) }, func(ledger.Tally) {})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, lanes, batched)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}
