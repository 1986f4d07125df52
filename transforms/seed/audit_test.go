package seed_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/segment"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// What is finished, and what a killed run left open, is no fault; each fault is found once.
func TestAudit(t *testing.T) {
	s, err := store.Open(t.Context(), "mem://audit")
	require.NoError(t, err)
	put := func(key, content string) {
		t.Helper()
		require.NoError(t, store.Write(t.Context(), s, key, []byte(content), store.PutOptions{}))
	}
	audit := func() map[string]string {
		t.Helper()
		var mu sync.Mutex
		got := map[string]string{}
		require.NoError(t, seed.Audit(t.Context(), s, nil, func(what, key, mend string) {
			mu.Lock()
			defer mu.Unlock()
			assert.NotEmpty(t, mend)
			assert.NotContains(t, got, key)
			got[key] = what
		}))
		return got
	}
	const raw, domain = "datasets/country=sg/category=news/date=2026-01-28/", "processing/country=sg/category=news/date=2026-01-28/"
	put(raw+"raw_0001.json", "{}")
	put(raw+"raw_0001.json.success", "")
	put(domain+"a.sg/domain_metadata.json", "{}")
	put(domain+"a.sg/domain_metadata.json.success", "")
	put(domain+"open.sg/robots.txt", "")
	lane := segment.Lane(seed.PackedRoot, 0, 1)
	log, err := segment.Open(t.Context(), s, lane, "r1", func(segment.Commit) {})
	require.NoError(t, err)
	gone := ""
	for range 2 {
		c, err := log.Commit(t.Context(), segment.Commit{}, segment.Part{Ending: ".parquet", Body: []byte("rows")})
		require.NoError(t, err)
		gone = c.Files[0].Key
	}
	require.Empty(t, audit())

	put(raw+"raw_0002.json.success", "")
	put(domain+"b.sg/domain_metadata.json.success", "")
	put(domain+"c.sg/domain_metadata.json", "{")
	put(domain+"c.sg/domain_metadata.json.success", "")
	put(lane+"left.parquet", "rows")
	require.NoError(t, store.Remove(t.Context(), s, gone))
	assert.Equal(t, map[string]string{
		raw + "raw_0002.json.success":                "marks of raw files that are not there",
		domain + "b.sg/domain_metadata.json.success": "marks of domains without metadata",
		domain + "c.sg/domain_metadata.json":         "metadata that is no JSON",
		lane + "left.parquet":                        segment.FileLeft,
		gone:                                         segment.FileDamaged,
	}, audit())

	keys, err := store.Keys(t.Context(), s, lane)
	require.NoError(t, err)
	entry := slices.IndexFunc(keys, func(k string) bool { return strings.HasSuffix(k, "0.json") })
	put(keys[entry], "{")
	assert.Contains(t, slices.Collect(maps.Values(audit())), segment.EntryDamaged)
}
