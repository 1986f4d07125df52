//go:build e2e

package e2etest

import (
	"cmp"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/store/price"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

var scaleRuns = flag.String("scale", "", "runs of TestScale, such as mixed/objects=10000,mixed/table=100000,dead/table/prism=1000000: the web, the layout, the runner if it is not direct, the hosts")

// scaleName is the name of host i. What the host is follows from a hash of its name.
func scaleName(i int) string { return "host-" + strconv.Itoa(i) + ".com" }

// scaleKind is a kind of host in the mixed web, and what a visit finds there.
type scaleKind struct {
	kind            webtest.Kind
	weight          int
	robots, sitemap bool
}

// About a sixth of all names in lists of domains answers nothing.
var scaleKinds = []scaleKind{
	{webtest.KindURLSet, 400, true, true}, {webtest.KindIndex, 140, true, true}, {webtest.KindGzip, 80, true, true},
	{webtest.KindNoRobots, 60, false, true}, {webtest.KindNoSitemap, 60, true, false}, {webtest.KindRedirectWWW, 60, true, true},
	{webtest.KindRobots403, 20, false, true}, {webtest.KindDisallowAll, 10, true, true}, {webtest.KindSitemapGz, 20, true, true},
	{webtest.KindTLSRefused, 50, false, false}, {webtest.KindRefused, 100, false, false},
}

// predict counts what the hash function says about hosts 0 … n-1.
func predict(w rig.Web, web string, n int) map[string]int64 {
	count := map[string]int64{"domains_unique": int64(n), "records": int64(n), "domains_collected": int64(n)}
	if web == "dead" { // that a host is dead is a result, too
		return count
	}
	by := map[webtest.Kind]scaleKind{}
	for _, k := range scaleKinds {
		by[k.kind] = k
	}
	for i := range n {
		k := by[w.KindOf(scaleName(i))]
		for name, is := range map[string]bool{"robots_found": k.robots, "sitemaps_found": k.sitemap} {
			if is {
				count[name]++
			}
		}
	}
	return count
}

// putNames writes raw files with the names of n hosts, one file after another.
func putNames(t testing.TB, s store.Store, n int) {
	t.Helper()
	const inOne = 100_000
	for from := 0; from < n; from += inOne {
		var b strings.Builder
		b.WriteString(`{"records":[`)
		for i := from; i < min(n, from+inOne); i++ {
			if i > from {
				b.WriteString(",\n")
			}
			fmt.Fprintf(&b, `{"raw_url":"https://%s/"}`, scaleName(i))
		}
		b.WriteString("]}")
		key := fmt.Sprintf("datasets/country=sg/category=news/date=2026-01-28/raw_%04d.json", 1+from/inOne)
		require.NoError(t, s.Put(t.Context(), key, strings.NewReader(b.String()), store.PutOptions{}))
	}
}

// reopen removes the marks of the raw files.
func reopen(t testing.TB, s store.Store) {
	t.Helper()
	var keys []string
	for o, err := range s.List(t.Context(), "datasets/") {
		require.NoError(t, err)
		if strings.HasSuffix(o.Key, hive.Success) {
			keys = append(keys, o.Key)
		}
	}
	assert.NotEqual(t, 0, len(keys), "no raw file was complete")
	for _, key := range keys {
		require.NoError(t, s.Delete(t.Context(), key))
	}
}

// committed counts the domains in the table, and fails if one is
// there twice or is none of hosts 0 … n-1.
func committed(t testing.TB, s store.Store, n int) (count int64) {
	t.Helper()
	parts, err := domaintable.All(t.Context(), s)
	require.NoError(t, err)
	seen := make([]bool, n)
	for _, p := range parts {
		done, err := p.ReadNames(t.Context(), s)
		require.NoError(t, err)
		for _, d := range done {
			for _, name := range d.Names {
				i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, "host-"), ".com"))
				require.True(t, err == nil && i < n && !seen[i], "%s was committed: is it there twice? (%v)", name, err)
				seen[i] = true
				count++
			}
		}
	}
	return count
}

// scaleRig is the simulated web, the metered store, and where a run's figures go.
type scaleRig struct {
	web   rig.Web
	meter *meteredStore
	s3    buckettest.S3
	front string
	table strings.Builder
	// Of the last run:
	calls, refused int64
	wall           time.Duration
}

func startScale(t *testing.T, puts, gets float64) *scaleRig {
	t.Helper()
	mix := map[webtest.Kind]int{}
	for _, k := range scaleKinds {
		mix[k.kind] = k.weight
	}
	r := &scaleRig{web: rig.StartWeb(t, webtest.Options{Seed: 17, Mix: mix, LogLimit: -1}), s3: buckettest.StartVersity(t)}
	target, err := url.Parse(r.s3.Endpoint)
	require.NoError(t, err)
	r.meter = newMetered(target, puts, gets)
	r.front = newServer(t, r.meter)
	r.table.WriteString("\n| run | wall | domains/s | CPU a domain | peak RSS | " + billedPut + " | " + billedGet + " | " + billedNone + " | calls a 1,000 domains | $ a million domains | refused |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	return r
}

func (r *scaleRig) url(endpoint, name string) string {
	return "s3://" + r.s3.Bucket + "/" + name + "?endpoint=" + endpoint + "&region=us-east-1"
}

// run runs the program on hosts 0 … n-1 with the store's folder name.
func (r *scaleRig) run(t *testing.T, title, name, web string, n int, args ...string) rig.Report {
	t.Helper()
	args = append([]string{"--concurrency=256"}, args...)
	cmd := exec.Command(rig.Program, r.web.Args(r.url(r.front, name), args...)...)
	if web == "dead" {
		cmd.Args = append(cmd.Args, "--connect-to=127.0.0.1:1", "--outage-threshold=0")
	}
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+r.web.CA)
	r.meter.taken()
	begin := time.Now()
	c := rig.Start(t, cmd)
	code := c.Wait(t, 12*time.Hour)
	r.wall = time.Since(begin)
	if code != 0 {
		t.Fatalf("%s: exit code %d\n%s", title, code, rig.Tail(c.Output(t)))
	}
	calls, refused := r.meter.taken()
	r.calls, r.refused = calls[billedPut]+calls[billedGet]+calls[billedNone], refused
	billed := price.Public()["s3"].Of(price.Calls{Reads: calls[billedGet], Writes: calls[billedPut], Deletes: calls[billedNone]}, 0, 0)
	p := c.Cmd.ProcessState
	fmt.Fprintf(&r.table, "| %s | %.1f s | %.0f | %.3f ms | %d MB | %d | %d | %d | %.1f | %.3f | %d |\n", title, r.wall.Seconds(), float64(n)/r.wall.Seconds(),
		float64((p.UserTime()+p.SystemTime()).Microseconds())/1000/float64(n), c.PeakRSS(t)>>20, calls[billedPut], calls[billedGet], calls[billedNone], 1000*float64(r.calls)/float64(n), 1e6*billed.Calls/float64(n), refused)
	return rig.LastReport(t, r.url(r.s3.Endpoint, name))
}

// TestScale runs the seed job on hosts that a hash function makes up, and on a bucket
// that counts calls. It prints what that costs; no limit depends on time.
func TestScale(t *testing.T) {
	runs := *scaleRuns
	if runs == "" {
		runs = "mixed/table=2000,dead/table=2000"
	}
	r := startScale(t, s3Puts, s3Gets)
	defer func() { t.Log(r.table.String()) }()
	for _, run := range strings.Split(runs, ",") {
		title, hosts, _ := strings.Cut(run, "=")
		web, layout, _ := strings.Cut(title, "/")
		layout, runner, _ := strings.Cut(layout, "/")
		runner = cmp.Or(runner, "direct")
		n, err := strconv.Atoi(hosts)
		require.True(t, err == nil && (web == "mixed" || web == "dead"), "-scale has %q, want such as mixed/table=2000", run)
		name := strings.ReplaceAll(run, "/", "-")
		behind := rig.Open(t, r.url(r.s3.Endpoint, name))
		putNames(t, behind, n)
		report := r.run(t, run, name, web, n, "--layout="+layout, "--runner="+runner)
		want := predict(r.web, web, n)
		for _, count := range []string{"records", "domains_unique", "domains_collected", "domains_failed", "robots_found", "sitemaps_found"} {
			if report.Counts[count] != want[count] {
				t.Errorf("%s: %s %d, want %d", run, count, report.Counts[count], want[count])
			}
		}
		if layout == "table" {
			// Besides, a process makes a call a second, however much it gets done: see docs/scale.md.
			most := 60*int64(n)/1000 + int64(r.wall.Seconds())
			assert.True(t, r.calls <= most, "%s: %d store calls in %v, want at most %d", run, r.calls, r.wall, most)
			c := committed(t, behind, n)
			assert.Equal(t, int64(n), c, "%s: %d domains were committed", run, c)
		}
		reopen(t, behind)
		report = r.run(t, run+", resumed", name, web, n, "--layout="+layout, "--runner="+runner)
		if report.Counts["domains_already_done"] != int64(n) || report.HTTP.Requests != 0 {
			t.Errorf("%s, resumed: %d domains already done, %d requests", run, report.Counts["domains_already_done"], report.HTTP.Requests)
		}
	}
}

// A bucket that refuses most calls because there are too many takes longer, and nothing
// is lost.
func TestThrottledBucket(t *testing.T) {
	r := startScale(t, 50, 50)
	const n = 100
	var want map[string]string
	for _, layout := range []string{"table", "objects"} {
		behind := r.url(r.s3.Endpoint, layout)
		putNames(t, rig.Open(t, behind), n)
		report, refused := r.run(t, layout, layout, "mixed", n, "--layout="+layout, "--runner=direct"), r.refused
		for name, n := range predict(r.web, "mixed", n) {
			if report.Counts[name] != n {
				t.Errorf("%s: %s %d, want %d", layout, name, report.Counts[name], n)
			}
		}
		letters := report.Counts["dead_letters"]
		assert.Equal(t, int64(0), letters, "%s: %d dead letters", layout, letters)
		if layout == "table" {
			rig.Materialize(t, behind)
			want = rig.Objects(t, behind)
			continue
		}
		assert.NotEqual(t, int64(0), refused, "no call was refused, so the test proves nothing")
		rig.Same(t, rig.Objects(t, behind), want)
	}
	t.Log(r.table.String())
}
