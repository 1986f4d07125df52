package pipeline

import (
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/catalog"
)

// What the catalog job does unless it is told otherwise (catalog.md, manners,
// queues and pools), and what it refuses before a request is sent.
func TestCatalogOptions(t *testing.T) {
	emptyEnv(t)
	resetBeam(t)
	base := []string{"--job=catalog", "--store=mem://b", "--contact=https://example.org/bot"}
	o, err := parseOptions(base, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, time.Second, o.HostDelay)
	c := o.Catalog
	assert.Equal(t, []int{2, 1, 8, 2, 1, 64, 0}, []int{c.ListFetchers, c.ListParsers, c.DetailFetchers, c.DetailParsers, c.Savers, c.QueueLength, c.StopAfterKnown})
	require.Len(t, c.loaded, 1)
	assert.Equal(t, "matter", c.loaded[0].Name)

	o, err = parseOptions(append(base, "--web=demo", "--list-fetchers=3", "--list-parsers=4", "--detail-fetchers=5", "--detail-parsers=6", "--savers=7", "--queue-length=1"), io.Discard)
	require.NoError(t, err)
	c = o.Catalog
	assert.Equal(t, []int{3, 4, 5, 6, 7, 1}, []int{c.ListFetchers, c.ListParsers, c.DetailFetchers, c.DetailParsers, c.Savers, c.QueueLength})
	assert.Len(t, c.loaded, 2, "the simulated shop too")

	for arg, want := range map[string]string{
		"--contact=":              "add --contact=URL",
		"--contact=me":            "use a URL or a mail address",
		"--list-fetchers=0":       "--list-fetchers=0: use 1 to 10000",
		"--savers=10001":          "--savers=10001: use 1 to 10000",
		"--queue-length=0":        "--queue-length=0: use 1 to 10000",
		"--stop-after-known=-1":   "use 0 or more",
		"--sites=/nowhere/at/all": "no such file",
	} {
		_, err := parseOptions(append(base, arg), io.Discard)
		assert.ErrorContains(t, err, want, arg)
	}
}

// --lease-ttl is the sites' and providers' too; docs and catalog wait for a
// killed worker's no longer than they say themselves.
func TestLeaseTTL(t *testing.T) {
	emptyEnv(t)
	resetBeam(t)
	for args, want := range map[string]time.Duration{
		"--job=docs":                   15 * time.Second,
		"--job=docs --lease-ttl=3s":    3 * time.Second,
		"--job=docs --lease-ttl=1m":    15 * time.Second,
		"--job=catalog":                15 * time.Second,
		"--job=catalog --lease-ttl=3s": 3 * time.Second,
		"--job=catalog --lease-ttl=1m": 15 * time.Second,
		"--job=news":                   30 * time.Second,
		"--job=news --lease-ttl=3s":    3 * time.Second,
		"--job=news --lease-ttl=1m":    time.Minute,
	} {
		o, err := parseOptions(append(strings.Fields(args), "--store=mem://b", "--web=demo"), io.Discard)
		require.NoError(t, err)
		assert.EqualValues(t, want, reflect.ValueOf(told(o)).FieldByName("LeaseTTL").Int(), args)
	}
}

// The live line has the five counters, by the names of the report; that of a
// job that names none has its own count.
func TestLiveText(t *testing.T) {
	counts := ledger.Tally{Counts: map[string]int64{"list_pages_fetched": 50, "product_urls_found": 600, "detail_pages_fetched": 210, "products_saved": 198, "failed_tasks": 2, "domains_unique": 7}}
	assert.Equal(t, "lists 50, found 600, fetched 210, saved 198, failed 2", catalogJob().liveText(counts))
	assert.Equal(t, "7 domains", seedJob().liveText(counts))
	names := ledger.JobCounts(catalog.Job)
	for _, c := range catalogJob().live {
		assert.Contains(t, names, c[0])
	}
}
