package catalog

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
)

// A limited crawl concludes nothing about what it does not see, and the next one continues.
func TestLimit(t *testing.T) {
	t.Parallel()
	j := newJob(t, "", webtest.Options{}, "matter", "gadgets")
	j.small(3, 4)
	run := func(limit int) map[string]int64 {
		t.Helper()
		j.web.ResetLog()
		j.cfg.Lane.Limit = limit
		return counted(j.run(), "detail_pages_fetched", "products_saved", "products_gone", "products_missing", "failed_tasks")
	}
	whole := run(0)
	n := whole["products_saved"]
	fetched := func(n int64) map[string]int64 {
		return map[string]int64{"detail_pages_fetched": n, "products_saved": n, "products_gone": 0, "products_missing": 0, "failed_tasks": 0}
	}
	assert.Equal(t, fetched(n), whole)
	assert.Equal(t, fetched(3), run(3))
	assert.Less(t, len(j.asked(catalogsim.MatterHost))+len(j.asked("gadgets.example")), 3+2+2*3, "nor is the whole list read")
	j.cfg.Lane.Limit = 2
	total := j.run()
	assert.EqualValues(t, 2, total.Counts["products_saved"])
	assert.Positive(t, total.Counts[ledger.LeftByLimit])
	assert.Equal(t, fetched(n-5), run(0))
	assert.Equal(t, fetched(n), run(0), "a crawl of its own")
	assert.Empty(t, j.deadLetters())
}
