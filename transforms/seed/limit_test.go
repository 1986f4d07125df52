package seed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// A limited run marks no file, and nothing that it did not do; the next ones continue.
func TestLimit(t *testing.T) {
	for _, layout := range []seed.Layout{seed.Objects, seed.Table} {
		t.Run(string(layout), func(t *testing.T) {
			j := newJob(t, webtest.Options{})
			j.cfg.Layout = layout
			j.put(raw, rawFile("https://kind-urlset-1.com", "https://kind-urlset-2.com", "https://kind-urlset-3.com", "https://kind-urlset-4.com", "https://kind-urlset-5.com"))
			run := func(limit int) []int64 {
				j.cfg.Lane.Limit = limit
				c := j.run().Counts
				return []int64{c["domains_already_done"], c["domains_collected"], c["domains_failed"], c[ledger.LeftByLimit], c["files_open"], c["files_completed"]}
			}
			assert.Equal(t, []int64{0, 2, 0, 3, 1, 0}, run(2))
			assert.False(t, j.exists(raw+".success"))
			assert.Equal(t, []int64{2, 2, 0, 1, 1, 0}, run(2), "what is done counts for nothing")
			assert.Equal(t, []int64{4, 1, 0, 0, 0, 1}, run(0))
			assert.True(t, j.exists(raw+".success"))
			assert.Equal(t, []int64{0, 0, 0, 0, 0, 0}, run(1), "nothing is left")
		})
	}
}

// Domains outside the hours of the politeness file use up nothing of the limit.
func TestLimitOutsideHours(t *testing.T) {
	j := newJob(t, webtest.Options{})
	j.put(day+"raw_0001.json", rawFile("https://kind-urlset-1.com", "https://kind-urlset-2.com", "https://kind-urlset-3.com", "https://kind-urlset-4.com", "https://kind-urlset-5.com"))
	begins := time.Now().UTC().Add(12 * time.Hour)
	var closed, open polite.Hours
	must(t, closed.UnmarshalText([]byte(begins.Format("15:04")+"-"+begins.Add(time.Hour).Format("15:04")+" UTC")))
	must(t, open.UnmarshalText([]byte("any")))
	j.cfg.Lane.Polite.Hosts = polite.Hosts{"*": {Hours: closed}, "kind-urlset-4.com": {Hours: open}, "kind-urlset-5.com": {Hours: open}}
	j.cfg.Lane.Limit = 2
	c := j.run().Counts
	assert.Equal(t, []int64{2, 3, 0, 0}, []int64{c["domains_collected"], c[ledger.OutsideHours], c[ledger.LeftByLimit], c["domains_failed"]})
}
