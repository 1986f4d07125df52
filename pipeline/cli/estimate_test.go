package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store/price"
	"github.com/newsfork/seed-engine/pipeline/estimate"
)

// addHosts adds a raw file with n hosts of the simulated web to a bucket.
func addHosts(t *testing.T, bucket, partition string, from, n int) {
	t.Helper()
	var records []string
	for i := from; i < from+n; i++ {
		kind := []string{"urlset", "no-robots", "urlset", "index"}[i%4]
		records = append(records, fmt.Sprintf(`{"raw_url":"https://kind-%s-%d.com/"}`, kind, i))
	}
	writeFile(t, filepath.Join(bucket, "datasets", partition, fmt.Sprintf("raw_%04d.json", from)),
		fmt.Sprintf(`{"meta":{"record_count":%d},"records":[%s]}`, n, strings.Join(records, ",")))
}

const prices = `
file:
  name: a directory with prices
  as_of: 2026-11-22
  reads_million: 1000
  lists_million: 20000
  writes_million: 300000
  deletes_million: 4000000
  storage_gb_month: 5
  egress_gb: 6
`

// near checks that got is within a factor of want. small is for the calls that depend on
// how long a run takes.
func near(t *testing.T, what string, got estimate.Range, want int64, factor, small float64) {
	t.Helper()
	w := float64(want)
	assert.True(t, got.Likely <= w*factor+small && got.Likely >= w/factor-small, "%s: estimated %g, took %d", what, got.Likely, want)
	assert.True(t, got.Low <= got.Likely && got.Likely <= got.High && got.Low >= 0, "%s: the range is %v", what, got)
}

// An estimate touches neither the store nor a site. Without earlier runs it is near to
// what the run takes, with one nearer, and the report compares both.
func TestEstimate(t *testing.T) {
	emptyEnv(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	var asked atomic.Int64
	go func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			asked.Add(1)
			_ = c.Close()
		}
	}()
	for _, layout := range []string{"objects", "table"} {
		t.Run(layout, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeFile(t, "prices.yaml", prices)
			common := "--store=b --log-level=error --prices=prices.yaml --layout=" + layout
			estimated := func(args string) (e estimate.Estimate) {
				t.Helper()
				before := tree(t, ".")
				a := here(t, common+" --estimate=json "+args)
				require.Equal(t, 0, a.code, a.stderr)
				require.Equal(t, before, tree(t, "."))
				require.NoError(t, json.Unmarshal([]byte(a.stdout), &e))
				return e
			}
			compare := func(e estimate.Estimate, factor, small float64) {
				t.Helper()
				a := here(t, common+" --web=demo --report=-")
				require.Equal(t, 0, a.code, a.stderr)
				r := report(t, []byte(a.stdout))
				calls := price.Classes(r.Store)
				near(t, "requests", e.Requests, r.HTTP.Requests, factor, small)
				near(t, "reads", e.Calls.Reads, calls.Reads, factor, small)
				near(t, "lists", e.Calls.Lists, calls.Lists, factor, small)
				near(t, "writes", e.Calls.Writes, calls.Writes, factor, small)
				near(t, "deletes", e.Calls.Deletes, calls.Deletes, factor, small)
				near(t, "hosts that do not answer", e.Unreachable, r.Counts["hosts_unreachable"], factor, small)
				require.EqualValues(t, e.Work.Open, r.Counts["hosts_visited"])
				require.EqualValues(t, e.Work.Results, r.Counts["metadata_written"])
				require.NotNil(t, r.Cost.Estimated)
				require.EqualValues(t, e.Requests.Likely, r.Cost.Estimated.Requests)
				require.Equal(t, e.Basis, r.Cost.Basis)
				// By hand: 0.001 dollars a read, 0.02 a listing, 0.3 a write, 4 a delete.
				s := r.Store
				require.InDelta(t, 0.001*float64(s["head"]+s["open"])+0.02*float64(s["list"])+0.3*float64(s["put"]+s["put_if_absent"])+4*float64(s["delete"]), r.Cost.Actual.Price.Calls, 1e-6)
				require.InDelta(t, 5*float64(r.StoreBytes.Written)/1e9, r.Cost.Actual.Price.Storage, 1e-12)
				require.Equal(t, "a directory with prices", r.Cost.Prices.Name)
			}

			addHosts(t, "b", "country=sg/category=news/date=2026-01-28", 1, 30)
			addHosts(t, "b", "country=kr/category=news/date=2026-01-28", 21, 30) // ten of them are in both
			e := estimated("--web=live --connect-to=" + listener.Addr().String())
			require.Equal(t, estimate.Work{Files: 2, FileBytes: e.Work.FileBytes, Listed: 2, Partitions: 2, Domains: 50, Open: 50, Results: 60}, *e.Work)
			require.Contains(t, e.Basis, "assumptions")
			e = estimated("--web=demo")
			compare(e, 2.5, 40)

			addHosts(t, "b", "country=sg/category=news/date=2026-01-28", 21, 40) // ten of them are done there
			e = estimated("--web=demo")
			require.EqualValues(t, 40, e.Work.Domains)
			require.EqualValues(t, 10, e.Work.Finished)
			require.EqualValues(t, 30, e.Work.Open)
			require.Contains(t, e.Basis, "the last run of this kind in this store, with 50 hosts")
			compare(e, 1.5, 8)
			require.Zero(t, asked.Load(), "a site was asked")
		})
	}
}
