//go:build !race

// Under the race detector memory is another one.

package seed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// manyResults is a store of n domains that are done, without any memory of them.
type manyResults struct {
	store.Store
	n        int
	document []byte
}

func (m manyResults) key(i int) string {
	return hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}.DomainDir(fmt.Sprintf("d%09d.com", i)) + "/" + hive.Metadata
}

func (m manyResults) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	if strings.HasPrefix(prefix, domaintable.Root) {
		return m.Store.List(ctx, prefix)
	}
	return func(yield func(store.Object, error) bool) {
		for i := range m.n {
			if !yield(store.Object{Key: m.key(i)}, nil) || !yield(store.Object{Key: m.key(i) + hive.Success}, nil) {
				return
			}
		}
	}
}

func (m manyResults) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if !strings.HasPrefix(key, hive.Processing) {
		return m.Store.Open(ctx, key)
	}
	name := strings.Split(key, "/")[4]
	return io.NopCloser(bytes.NewReader(bytes.ReplaceAll(m.document, []byte("NAME"), []byte(name)))), nil
}

// The memory of an export does not grow with the rows, in neither layout.
func TestMemoryOfAnExport(t *testing.T) {
	const document = `{"domain_id":"com:sg:NAME","registrable_domain":"NAME","country":"SG","category":"news","collected_at":"2026-01-28T00:30:00.120Z","robots":{"status_code":200,"content_length":1,"exists":true},"sitemap":{"status_code":404,"content_length":0,"exists":false,"url":"https://NAME/sitemap.xml"}}`
	const inSegment = 500
	seed.CompareAtOnce(t, 6*inSegment)
	s, err := store.Open(t.Context(), t.TempDir())
	must(t, err)
	domains, err := domaintable.Open(t.Context(), s, "", nil)
	must(t, err)
	log, _, err := domains.Begin(t.Context(), "test")
	must(t, err)
	p := hive.Partition{Country: "sg", Category: "policy", Date: "2026-01-28"}
	packed := 0
	grow := func(to int) {
		for packed < to {
			var all []table.Row
			for range inSegment {
				name := fmt.Sprintf("p%09d.com", packed)
				packed++
				doc := []byte(strings.ReplaceAll(document, "NAME", name))
				var m metadata.Domain
				must(t, json.Unmarshal(doc, &m))
				r, err := table.New(p, m, doc)
				must(t, err)
				all = append(all, r)
			}
			part, err := domaintable.Write(t.Context(), s, domaintable.Part{}, all, nil)
			must(t, err)
			must(t, log.Commit(t.Context(), domaintable.Change{Add: []domaintable.Part{part}}))
		}
	}
	peak := func(n int) (most uint64) {
		grow(n)
		runtime.GC() // twice, so that what the test itself needed is not in a pool any more
		runtime.GC()
		seen := 0
		count, err := rows.Write(rows.JSONL, io.Discard, "", func(yield func(seed.Domain, error) bool) {
			for d, err := range seed.Domains(t.Context(), manyResults{s, n, []byte(document)}, seed.Filter{}) {
				if seen++; seen%500 == 0 {
					runtime.GC()
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapAlloc)
				}
				if !yield(d, err) {
					return
				}
			}
		})
		must(t, err)
		require.EqualValues(t, 2*n, count)
		return most
	}
	small, large := peak(1_000), peak(10_000)
	t.Logf("%d KiB, with ten times as many rows %d KiB", small>>10, large>>10)
	assert.LessOrEqual(t, large, small+small/4, "%d KiB for 1,000 domains in each layout, %d KiB for ten times as many", small>>10, large>>10)
}
