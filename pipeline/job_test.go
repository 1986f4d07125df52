package pipeline

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/ledger"
)

// The live line shows the five counters that a job lists, by the report's names;
// for a job that lists none it shows the job's one count.
func TestLiveText(t *testing.T) {
	counts := ledger.Tally{Counts: map[string]int64{"list_pages_fetched": 50, "product_urls_found": 600, "detail_pages_fetched": 210, "products_saved": 198, "failed_tasks": 2, "domains_unique": 7}}
	assert.Equal(t, "lists 50, found 600, fetched 210, saved 198, failed 2", catalogJob().LiveText(counts))
	assert.Equal(t, "7 domains", seedJob().LiveText(counts))
	names := catalogJob().Counts
	for _, c := range catalogJob().Live {
		assert.Contains(t, names, c[0])
	}
}
