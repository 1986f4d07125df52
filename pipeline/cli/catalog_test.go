package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog"
)

// The defaults of the catalog job (pauses, queues and pools), and what it refuses before a request is sent.
func TestCatalogOptions(t *testing.T) {
	emptyEnv(t)
	resetBeam(t)
	base := []string{"--job=catalog", "--store=" + t.TempDir(), "--contact=https://example.org/bot"}
	o, err := parseOptions(base, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, time.Second, o.HostDelay)
	c := workerConfig(o).(catalog.Config)
	assert.Equal(t, []int{2, 1, 8, 2, 1, 64, 0}, []int{c.ListFetchers, c.ListParsers, c.DetailFetchers, c.DetailParsers, c.Savers, c.QueueLength, c.StopAfterKnown})
	require.Len(t, c.Sites, 1)
	assert.Equal(t, "matter", c.Sites[0].Name)

	o, err = parseOptions(append(base, "--web=demo", "--list-fetchers=3", "--list-parsers=4", "--detail-fetchers=5", "--detail-parsers=6", "--savers=7"), io.Discard)
	require.NoError(t, err)
	c = workerConfig(o).(catalog.Config)
	assert.Equal(t, []int{3, 4, 5, 6, 7}, []int{c.ListFetchers, c.ListParsers, c.DetailFetchers, c.DetailParsers, c.Savers})
	assert.Len(t, c.Sites, 2, "the simulated shop too")

	text, err := os.ReadFile("../../transforms/catalog/sites/demo/gadgets.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte("name: gadgets"), []byte("name: shop"), 1), 0o600))
	o, err = parseOptions(append(base, "--site="+file), io.Discard)
	require.NoError(t, err)
	c = workerConfig(o).(catalog.Config)
	require.Len(t, c.Sites, 1)
	assert.Equal(t, "shop", c.Sites[0].Name)

	for arg, want := range map[string]string{
		"--contact=":              "add --contact=URL",
		"--contact=me":            "use a URL or a mail address",
		"--list-fetchers=0":       "--list-fetchers=0: use 1 to 10000",
		"--savers=10001":          "--savers=10001: use 1 to 10000",
		"--stop-after-known=-1":   "use 0 or more",
		"--sites=/nowhere/at/all": "no such file",
		"--images":                "--images: no field of the sites has the type image",
	} {
		_, err := parseOptions(append(base, arg), io.Discard)
		assert.ErrorContains(t, err, want, arg)
	}
}

// --lease-ttl also limits the leases of sites and providers; docs and catalog
// have a limit of their own, and the shorter one counts.
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
		assert.EqualValues(t, want, reflect.ValueOf(workerConfig(o)).FieldByName("LeaseTTL").Int(), args)
	}
}

// catalogRun returns a function that runs the program on a site with these pages.
func catalogRun(t *testing.T, pages map[string]string, file string) (run func(args ...string) (code int, report ledger.Report, stdout, stderr string)) {
	t.Helper()
	emptyEnv(t)
	resetBeam(t)
	sim := webtest.New(webtest.Options{})
	sim.Handle("shop.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, text)
	}))
	require.NoError(t, sim.Start())
	t.Cleanup(func() { assert.NoError(t, sim.Close()) })
	sites, store := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(sites, "shop.yaml"), []byte(file), 0o600))
	out := filepath.Join(t.TempDir(), "report.json")
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "catalog.db")
	return func(args ...string) (int, ledger.Report, string, string) {
		var stdout, stderr bytes.Buffer
		args = append([]string{"--job=catalog", "--runner=direct", "--store=" + store, "--db=" + dsn, "--sites=" + sites, "--connect-to=" + sim.Addr(), "--host-delay=0s", "--report=" + out}, args...)
		code := Main(args, &stdout, &stderr)
		b, err := os.ReadFile(out)
		require.NoError(t, err, stderr.String())
		var report ledger.Report
		require.NoError(t, json.Unmarshal(b, &report))
		return code, report, stdout.String(), stderr.String()
	}
}

// A run that could not crawl its catalog fails and says why. --history shows
// what a run changed.
func TestCatalogThatFails(t *testing.T) {
	pages := map[string]string{"/robots.txt": ""}
	run := catalogRun(t, pages, `{name: shop, list: {url: "http://shop.example/list", product_link: {selector: a}}, key: id,
		fields: {id: {selector: "#id"}, price: {selector: .price, type: number}, label: {selector: .label, optional: true}}}`)
	code, report, _, stderr := run()
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, ledger.Failed, report.State)
	assert.Contains(t, stderr, "shop: its first list page cannot be read: http://shop.example/list: the site answers with status 404")
	require.Len(t, report.Alerts, 1)
	assert.Contains(t, report.Alerts[0], "site shop: its first list page cannot be read")

	lay := func(class, price string) {
		var list strings.Builder
		for i := range 6 {
			fmt.Fprintf(&list, "<a href=/p/%d>x</a>", i)
			pages[fmt.Sprint("/p/", i)] = fmt.Sprintf("<p id=id>K%d<p class=%s>%s", i, class, price)
		}
		pages["/list"] = list.String()
	}
	lay("price", "5.50")
	code, report, _, stderr = run()
	assert.Equal(t, exitOK, code, stderr)
	assert.Equal(t, []string{"site shop: field label is on none of the pages; is its selector right?"}, report.Alerts)
	lay("price", "6.50")
	code, _, _, stderr = run()
	assert.Equal(t, exitOK, code, stderr)
	lay("cost", "7.50")
	code, report, _, stderr = run()
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "3 product pages in a row lack a field that they should have")
	assert.Contains(t, stderr, "correct fields.price in the site's file")
	assert.Equal(t, ledger.Failed, report.State)
	assert.EqualValues(t, 1, report.Counts["sites_held"])

	code, _, stdout, stderr := run("--history=shop/K3")
	assert.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `^shop/K3  (?:un)?changed\n  http://shop\.example/p/3\n  first seen .*\n  id +"K3"\n  price +6\.5(?:  \(an earlier value: .*\))?\n1 changes\n\S+  shop/K3  price: 5\.5 -> 6\.5  \(run \S+\)\n$`, stdout)
	_, _, stdout, _ = run("--history")
	assert.Contains(t, stdout, "6 changes\n")
	code, _, _, stderr = run("--history=shop/none")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "no product of it")
}
