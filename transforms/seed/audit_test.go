package seed_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
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
	domains, err := domaintable.Open(t.Context(), s, "", nil)
	require.NoError(t, err)
	log, _, err := domains.Begin(t.Context(), "r1")
	require.NoError(t, err)
	gone := ""
	for range 2 {
		p, err := domaintable.Write(t.Context(), s, domaintable.Part{}, []table.Row{{}}, nil)
		require.NoError(t, err)
		require.NoError(t, log.Commit(t.Context(), domaintable.Change{Add: []domaintable.Part{p}}))
		gone = p.Key()
	}
	require.Empty(t, audit())

	put(raw+"raw_0002.json.success", "")
	put(domain+"b.sg/domain_metadata.json.success", "")
	put(domain+"c.sg/domain_metadata.json", "{")
	put(domain+"c.sg/domain_metadata.json.success", "")
	put(domaintable.Root+"left.parquet", "rows")
	require.NoError(t, store.Remove(t.Context(), s, gone))
	assert.Equal(t, map[string]string{
		raw + "raw_0002.json.success":                "marks of raw files that are not there",
		domain + "b.sg/domain_metadata.json.success": "marks of domains without metadata",
		domain + "c.sg/domain_metadata.json":         "metadata that is no JSON",
		domaintable.Root + "left.parquet":            seed.FileLeft,
		gone:                                         seed.FileDamaged,
	}, audit())

	put(domaintable.Root+"_delta_log/00000000000000000001.json", "{")
	err = seed.Audit(t.Context(), s, nil, func(string, string, string) {})
	assert.ErrorContains(t, err, "00000000000000000001.json")
}
