//go:build e2e

package catalog

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// place is a simulated site, a store and a database.
type place struct {
	t         *testing.T
	web       *webtest.Web
	site      *catalogsim.Site
	ca, store string
	dsn       string
}

func newPlace(t *testing.T, dsn string, latency time.Duration, pages, perPage int) *place {
	t.Helper()
	p := &place{t: t, web: webtest.New(webtest.Options{Latency: latency}), site: catalogsim.NewMatter(pages, perPage), store: t.TempDir(), dsn: dsn}
	p.web.Handle(catalogsim.MatterHost, p.site)
	require.NoError(t, p.web.Start())
	t.Cleanup(func() { assert.NoError(t, p.web.Close()) })
	p.ca = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(p.ca, p.web.CAPEM(), 0o600))
	if p.dsn == "" {
		p.dsn = "sqlite://" + filepath.Join(t.TempDir(), "catalog.db")
	}
	return p
}

// child is a process of the program.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    bytes.Buffer
	report string
	exited chan struct{}
}

func (p *place) start(args ...string) *child {
	p.t.Helper()
	c := &child{t: p.t, report: filepath.Join(p.t.TempDir(), "report.json"), exited: make(chan struct{})}
	c.cmd = exec.Command(rig.Program, append([]string{"--job=catalog", "--store=" + p.store, "--db=" + p.dsn, "--connect-to=" + p.web.Addr(),
		"--host-delay=0", "--progress=off", "--log-level=error", "--runner=direct", "--report=" + c.report}, args...)...)
	c.cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+p.ca)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	require.NoError(p.t, c.cmd.Start())
	go func() { _ = c.cmd.Wait(); close(c.exited) }() // the exit code says how it ended
	p.t.Cleanup(func() { _ = c.cmd.Process.Kill(); <-c.exited })
	return c
}

func (c *child) code(limit time.Duration) int {
	c.t.Helper()
	select {
	case <-c.exited:
	case <-time.After(limit):
		c.t.Fatalf("the program did not end within %v", limit)
	}
	return c.cmd.ProcessState.ExitCode()
}

// counts runs the program to its end and returns its report's counts.
func (p *place) counts(args ...string) map[string]int64 {
	p.t.Helper()
	return p.countsOf(p.start(args...))
}

func (p *place) countsOf(c *child) map[string]int64 {
	p.t.Helper()
	require.Zero(p.t, c.code(2*time.Minute), "%s", &c.out)
	b, err := os.ReadFile(c.report)
	require.NoError(p.t, err)
	var r struct {
		Counts map[string]int64 `json:"counts"`
	}
	require.NoError(p.t, json.Unmarshal(b, &r))
	return r.Counts
}

func (p *place) tool(args ...string) string {
	p.t.Helper()
	cmd := exec.Command(rig.Program, append(args, "--store="+p.store)...)
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s", out)
	return string(out)
}

func (p *place) query(q string) (n int64) {
	p.t.Helper()
	d, err := db.Open(p.t.Context(), p.dsn)
	require.NoError(p.t, err)
	defer d.Close()
	require.NoError(p.t, d.QueryRowContext(p.t.Context(), q).Scan(&n))
	return n
}

func (p *place) requests() int { return len(p.web.Requests()) }

func (p *place) until(n int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.requests() >= n }, time.Minute, 2*time.Millisecond)
}

// After each of several kills the same command resumes the crawl, and at the end
// each product was saved once.
func TestKilledAndResumed(t *testing.T) {
	for name, dsn := range map[string]func() string{"direct": func() string { return "" }, "prism": func() string { return dbtest.Postgres(t) }} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, dsn(), 5*time.Millisecond, 20, 12)
			for _, after := range []int{10, 60, 150} {
				c := p.start("--runner=" + name)
				p.until(after)
				require.NoError(t, c.cmd.Process.Kill())
				<-c.exited
			}
			resumed := p.start("--runner="+name, "--log-level=warn")
			counts := p.countsOf(resumed)
			assert.NotContains(t, resumed.out.String(), "lease_waits", "the leases of a dead process are taken over at once")
			assert.Equal(t, counts["product_urls_found"], counts["detail_pages_fetched"])
			assert.Equal(t, counts["detail_pages_fetched"], counts["products_saved"])
			assert.EqualValues(t, 240, p.query(`SELECT count(*) FROM catalog_products`), "%s", p.tool("dead-letters", "list", "--job=catalog"))
			assert.Zero(t, p.query(`SELECT count(*) FROM catalog_products WHERE last_seen <> first_seen`), "saved twice")
			assert.Zero(t, p.query(`SELECT count(*) FROM catalog_tasks`))

			again := p.counts("--runner=" + name)
			assert.Equal(t, []int64{240, 0, 0}, []int64{again["products_saved"], again["products_new"], again["products_changed"]})
			p.site.Change()
			again = p.counts("--runner=" + name)
			assert.Equal(t, []int64{240, 0, 24}, []int64{again["products_saved"], again["products_new"], again["products_changed"]})
		})
	}
}

// fails gives what is below a path another answer.
func (p *place) fails(below string, answer http.HandlerFunc) {
	p.web.Handle(catalogsim.MatterHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, below) {
			answer(w, r)
			return
		}
		p.site.ServeHTTP(w, r)
	}))
}

// Ctrl-C ends a run that has fifty requests in flight, none of which is ever answered.
func TestInterruptOnAHangingSite(t *testing.T) {
	p := newPlace(t, "", 0, 10, 12)
	p.fails("/csa_product/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := p.start("--detail-fetchers=50")
	require.Eventually(t, func() bool { return p.web.MaxInFlight() >= 50 }, time.Minute, 2*time.Millisecond)
	begin := time.Now()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 130, c.code(10*time.Second))
	took := time.Since(begin)
	assert.True(t, took <= 2*time.Second, "it ended %v after Ctrl-C, want at most 2s", took)
	for _, r := range p.web.Requests() {
		if r.Start.After(begin.Add(100 * time.Millisecond)) {
			t.Errorf("%s was asked for %v after Ctrl-C", r.Path, r.Start.Sub(begin))
		}
	}
	p.web.Handle(catalogsim.MatterHost, p.site)
	p.counts()
	assert.EqualValues(t, 120, p.query(`SELECT count(*) FROM catalog_products`))
}

var runID = regexp.MustCompile(`\d{8}-\d{6}-\d{3}-[0-9a-f]{8}`)

// A run is paused for ten seconds, resumed, and cancelled from another process.
func TestPauseResumeCancel(t *testing.T) {
	p := newPlace(t, "", 50*time.Millisecond, 40, 12)
	c := p.start("--detail-fetchers=2", "--list-fetchers=1")
	p.until(20)
	id := runID.FindString(p.tool("runs", "list"))
	require.NotEmpty(t, id)
	p.tool("runs", "pause", id)
	last := -1
	require.Eventually(t, func() bool { before := last; last = p.requests(); return before == last }, 20*time.Second, 500*time.Millisecond)
	time.Sleep(10 * time.Second)
	assert.Equal(t, last, p.requests(), "a paused run sends nothing")
	p.tool("runs", "resume", id)
	p.until(last + 20)
	p.tool("runs", "cancel", id)
	assert.Equal(t, 130, c.code(10*time.Second))
	saved := p.query(`SELECT count(*) FROM catalog_products`)
	assert.Positive(t, saved)
	assert.Less(t, saved, int64(480))
	p.counts()
	assert.EqualValues(t, 480, p.query(`SELECT count(*) FROM catalog_products`))
	assert.Zero(t, p.query(`SELECT count(*) FROM catalog_products WHERE last_seen <> first_seen`), "saved twice")
}

func TestDeadLettersReplay(t *testing.T) {
	p := newPlace(t, "", 0, 2, 5)
	p.fails(p.site.DetailPath(3), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	counts := p.counts("--contact=https://example.org/bot")
	for _, r := range p.web.Requests() {
		assert.True(t, strings.HasSuffix(r.UserAgent, " (+https://example.org/bot)"), r.UserAgent)
	}
	assert.Equal(t, []int64{9, 1}, []int64{counts["products_saved"], counts["failed_tasks"]})
	list := p.tool("dead-letters", "list", "--job=catalog")
	assert.Contains(t, list, "http_500")
	p.web.Handle(catalogsim.MatterHost, p.site)
	out := p.tool("dead-letters", "replay", "--job=catalog", "--db="+p.dsn)
	assert.Contains(t, out, "opened the inputs of 1 dead letters")
	p.counts()
	assert.EqualValues(t, 10, p.query(`SELECT count(*) FROM catalog_products`))
	assert.NotContains(t, strings.ToLower(p.tool("dead-letters", "list", "--job=catalog")), "http_500")
}
