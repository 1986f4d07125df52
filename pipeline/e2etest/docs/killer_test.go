//go:build e2e

package docs

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// A page whose parsing needs more memory than there is kills two runs. The third one has a dead letter for
// it and reads the other pages, the fourth does not request it, and after a replay it is tried again.
func TestKillerPage(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := rig.StartWeb(t, webtest.Options{})
	killer := strings.Repeat("<p>x", 5_000_000/4)
	w.Handle("killer.example", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		text := "<p>A page about one thing, which is long enough to be read as the content of a page.</p>"
		switch r.URL.Path {
		case "/robots.txt":
			rw.WriteHeader(http.StatusNotFound)
			return
		case "/docs/":
			text += `<a href="/docs/a">a</a><a href="/docs/b">b</a><a href="/docs/c">c</a>`
		case "/docs/b":
			text = killer
		}
		_, _ = rw.Write([]byte("<html><head><title>T " + r.URL.Path + "</title></head><body><main><h1>T " + r.URL.Path + "</h1>" + text + "</main></body></html>"))
	}))
	dir := t.TempDir()
	const policy = `provider_id: killer
name: Killer
category: "Vector database"
channel: context7
tos: allowed
tos_checked: 2026-01-01
seed_urls: ["https://killer.example/docs/"]
allowed_path_patterns: ["/docs/**"]
max_depth: 3
max_pages: 10
request_delay_ms: 1000
sitemap_url: null
spa_rendering: false
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "killer.yaml"), []byte(policy), 0o600))
	bucket, dsn := t.TempDir(), "sqlite://"+filepath.Join(t.TempDir(), "db")
	run := func() int {
		cmd := exec.Command("prlimit", "--data=380000000", rig.Program, "--job=docs", "--fallback", "--runner=direct", "--policies="+dir, "--store="+bucket, "--db="+dsn,
			"--connect-to="+w.Addr(), "--progress=off", "--log-level=info", "--lease-ttl=3s")
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+w.CA)
		c := rig.Start(t, cmd)
		return c.Wait(t, 3*time.Minute)
	}
	require.Equal(t, 2, run())
	require.Equal(t, 2, run())
	require.Equal(t, 0, run())
	var kinds []string
	for d, err := range ledger.ListDeadLetters(t.Context(), rig.Open(t, bucket), "docs", "") {
		require.NoError(t, err)
		kinds = append(kinds, d.Kind+" "+d.Input.URL)
	}
	require.Equal(t, []string{ledger.Died + " https://killer.example/docs/b"}, kinds)
	w.ResetLog()
	require.Equal(t, 0, run())
	for _, r := range w.Requests() {
		require.NotEqual(t, "/docs/b", r.Path)
	}
	require.NoError(t, exec.Command(rig.Program, "dead-letters", "replay", "--job=docs", "--store="+bucket, "--db="+dsn).Run())
	require.Equal(t, 2, run(), "it is tried again")
}

// The same of a product's page and of an article.
func TestKillerPageOfOtherJobs(t *testing.T) {
	text := "<!doctype html><html><head><title>T</title></head><body><main>" + strings.Repeat("<p>x", 5_000_000/4) + "</main></body></html>"
	for name, c := range map[string]struct {
		job    func(rig.Web) rig.Job
		killer string
	}{
		"catalog": {rig.Catalog, "/csa_product/demo-product-00007/"},
		"news":    {func(w rig.Web) rig.Job { return rig.News(t, w) }, "/articles/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			w := rig.StartWeb(t, webtest.Options{})
			var killer atomic.Pointer[string] // the first one of these pages
			w.Before = func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if at := r.URL.Path; strings.HasPrefix(at, c.killer) && (killer.CompareAndSwap(nil, &at) || *killer.Load() == at) {
						rw.Header().Set("Content-Type", "text/html")
						_, _ = rw.Write([]byte(text))
						return
					}
					h.ServeHTTP(rw, r)
				})
			}
			j := c.job(w)
			on := rig.Left{Store: t.TempDir(), DSN: "sqlite://" + filepath.Join(t.TempDir(), "db")}
			run := func() (int, string) {
				is := j.Command(w, on, "--lease-ttl=3s")
				cmd := exec.Command("prlimit", append([]string{"--data=340000000"}, is.Args...)...)
				cmd.Env = is.Env
				child := rig.Start(t, cmd)
				return child.Wait(t, 3*time.Minute), child.Output(t)
			}
			for i, want := range []int{2, 2, 0} {
				if got, out := run(); got != want {
					t.Fatalf("run %d: exit code %d, want %d\n%s", i, got, want, rig.Tail(out))
				}
			}
			var kinds []string
			for d, err := range ledger.ListDeadLetters(t.Context(), rig.Open(t, on.Store), name, "") {
				require.NoError(t, err)
				kinds = append(kinds, d.Kind+" "+d.Input.URL)
			}
			require.Len(t, kinds, 1)
			require.Contains(t, kinds[0], ledger.Died)
			require.Contains(t, kinds[0], *killer.Load())
		})
	}
}
