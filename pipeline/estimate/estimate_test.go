package estimate

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/price"
)

func defaults(name string) string {
	return map[string]string{"concurrency": "64", "host-delay": "200ms", "rate": "0", "lease-ttl": "30s", "segment-age": "30s", "layout": "objects", "web": "live"}[name]
}

func with(name, value string) Option {
	return func(n string) string {
		if n == name {
			return value
		}
		return defaults(n)
	}
}

// done is the report of a run of so many hosts that took seconds.
func done(hosts int64, seconds float64, options map[string]any) ledger.Report {
	return ledger.Report{Duration: seconds, Options: options, Lanes: make([]ledger.LaneReport, 1),
		Counts:     ledger.Counts{"files_read": 1, "hosts_visited": hosts, "hosts_unreachable": hosts / 10, "metadata_written": hosts, "robots_found": hosts / 2, "sitemaps_found": hosts / 2},
		HTTP:       ledger.HTTP{Requests: 3 * hosts, Bytes: 1000 * hosts},
		Timings:    ledger.Timings{Domains: hosts, Mean: 2, Max: 20},
		Store:      ledger.Counts{"put": 3*hosts + 60, "open": 100, "list": 20, "delete": 2},
		StoreBytes: ledger.Traffic{Written: 4000 * hosts}}
}

// A run of a hundred times as many hosts takes a hundred times the requests, and not a
// hundred times the calls that a run makes once.
func TestSeedGrows(t *testing.T) {
	past := Past{Reports: []ledger.Report{done(1000, 50, nil)}, Option: defaults, Default: defaults, Extent: []string{"web", "site"}, Lanes: 1, Slots: 1}
	e := Seed(Work{Files: 1, Open: 100_000, Results: 100_000, Domains: 100_000, Partitions: 1}, past)
	require.InDeltaSlice(t, []float64{240_000, 300_000, 360_000}, []float64{e.Requests.Low, e.Requests.Likely, e.Requests.High}, 1e-3)
	require.InDelta(t, 10_000, e.Unreachable.Likely, 1)
	require.InDelta(t, 1e8, e.Bytes.Likely, 1)
	require.InDelta(t, 300_000, e.Calls.Writes.Likely, 9_000)
	require.InDelta(t, 4e8, e.Written.Likely, 1e6)
	require.Less(t, e.Calls.Reads.Likely, 3_000.)
	// Two seconds a visit, of which two pauses of 200 ms: 64 requests in flight bound it, not 256 visits.
	require.InDelta(t, (100_000*1.6/64+20)*(50/(1000*1.6/64+20)), e.Seconds.Likely, 1)
}

func TestRateBoundsTheDuration(t *testing.T) {
	past := Past{Reports: nil, Option: with("rate", "2"), Default: defaults, Lanes: 1, Slots: 1}
	e := Seed(Work{Files: 1, Open: 1000, Results: 1000, Partitions: 1}, past)
	require.InDelta(t, 1000*3/2.+30, e.Seconds.Likely, 1)
}

// With packed results a run writes for each segment, and not for each domain.
func TestPackedWritesLess(t *testing.T) {
	w := Work{Files: 100, Open: 1e6, Results: 1e6, Partitions: 10}
	past := Past{Option: defaults, Default: defaults, Extent: []string{"web", "site"}, Lanes: 1, Slots: 1}
	objects := Seed(w, past)
	past.Option = with("layout", "table")
	packed := Seed(w, past)
	require.Equal(t, objects.Requests, packed.Requests)
	require.Greater(t, objects.Calls.Writes.Likely, 3e6)
	require.Less(t, packed.Calls.Writes.Likely, 60_000., "60 calls a thousand domains")
}

// Only runs that ask sites for the same things count.
func TestWhichRunsCount(t *testing.T) {
	w := Work{Open: 10}
	past := Past{Option: defaults, Default: defaults, Extent: []string{"web", "site"}, Lanes: 1, Slots: 1}
	for name, tt := range map[string]struct {
		reports []ledger.Report
		basis   string
	}{
		"none":            {nil, "assumptions about usual sites"},
		"too small":       {[]ledger.Report{done(19, 1, nil)}, "assumptions about usual sites"},
		"the demo":        {[]ledger.Report{done(100, 1, map[string]any{"web": "demo"})}, "assumptions about usual sites"},
		"another layout":  {[]ledger.Report{done(100, 1, map[string]any{"layout": "table"})}, "computed and not measured"},
		"one":             {[]ledger.Report{done(100, 1, map[string]any{"layout": "objects"})}, "the last run of this kind in this store, with 100 hosts"},
		"the newest five": {[]ledger.Report{done(100, 1, nil), done(19, 1, nil), done(100, 1, nil), done(100, 1, nil), done(100, 1, nil), done(100, 1, nil), done(900, 1, nil)}, "the last 5 runs of this kind in this store, with 500 hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			past.Reports = tt.reports
			require.Contains(t, Seed(w, past).Basis, tt.basis)
		})
	}
}

func TestFromRuns(t *testing.T) {
	part := map[string]any{"site": "shop"}
	_, ok := FromRuns(Past{Reports: []ledger.Report{done(900, 90, part)}, Option: defaults, Default: defaults, Extent: []string{"web", "site"}})
	require.False(t, ok)
	e, ok := FromRuns(Past{Reports: []ledger.Report{done(100, 10, nil), done(900, 90, part), done(300, 50, nil)}, Option: defaults, Default: defaults, Extent: []string{"web", "site"}})
	require.True(t, ok)
	require.Equal(t, Range{300, 600, 900}, e.Requests)
	require.Equal(t, Range{10, 30, 50}, e.Seconds)
	require.Equal(t, "what the last 2 done runs took", e.Basis)
}

func TestPriced(t *testing.T) {
	e := Estimate{Job: "seed", Basis: "b", Calls: calls{Writes: Range{1e6, 2e6, 4e6}, Reads: exactly(5e6), Lists: exactly(1e6)}, Written: exactly(100e9), Read: exactly(10e9)}
	e = e.Priced(price.Public()["s3"])
	require.Equal(t, Range{5 + 5 + 2, 10 + 5 + 2, 20 + 5 + 2}, e.Price.Calls)
	require.InDelta(t, 2.3, e.Price.Storage.Likely, 1e-9)
	require.InDelta(t, 0.9, e.Price.Egress.Likely, 1e-9)
	var b bytes.Buffer
	require.NoError(t, e.WriteTable(&b))
	require.Contains(t, b.String(), "price of calls                   $17.0000     $12.0000     $27.0000\n")
	require.Contains(t, b.String(), "Amazon S3 Standard, us-east-1, list price, as of 2026-03 (https://aws.amazon.com/s3/pricing/)")
}
