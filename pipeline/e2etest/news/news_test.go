//go:build e2e

package news

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/news/newssim"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// world has four simulated publishers, two of them declared by the YAML files
// that ship with the program.
type world struct {
	rig.Web
	sites      map[string]*newssim.Site
	publishers string
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{Web: rig.StartWeb(t, webtest.Options{})}
	w.sites = newssim.Install(w.Handle, time.Now())
	var err error
	w.publishers, err = filepath.Abs("../../../transforms/news/publishers")
	require.NoError(t, err)
	return w
}

// start starts the job with a tenth of its usual pauses, unless env says otherwise.
func (w world) start(t *testing.T, store, dsn string, env []string, more ...string) *rig.Child {
	t.Helper()
	cmd := exec.Command(rig.Program, append([]string{"--job=news", "--runner=direct", "--store=" + store, "--db=" + dsn, "--publishers=" + w.publishers,
		"--connect-to=" + w.Addr(), "--lease-ttl=3s", "--progress=off", "--log-level=error"}, more...)...)
	cmd.Env = append(append(os.Environ(), "SSL_CERT_FILE="+w.CA, "NEWS_DELAY_SECONDS=0.2", "NEWS_PROVIDERS_MK_ENABLED=true", "NEWS_PROVIDERS_HANKYUNG_ENABLED=true"), env...)
	return rig.Start(t, cmd)
}

func (w world) run(t *testing.T, store, dsn string, env []string, more ...string) string {
	t.Helper()
	c := w.start(t, store, dsn, env, more...)
	require.Equal(t, 0, c.Wait(t, 3*time.Minute), rig.Tail(c.Output(t)))
	return c.Output(t)
}

// content returns the articles of a crawl, without their times.
func content(t *testing.T, dsn string) []string {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	rows, err := d.QueryContext(t.Context(), `SELECT source || ' ' || canonical_url || ' ' || external_id || ' ' || title || ' ' || content_hash FROM news_articles`)
	require.NoError(t, err)
	var out []string
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		out = append(out, s)
	}
	require.NoError(t, errors.Join(rows.Err(), rows.Close()))
	slices.Sort(out)
	return out
}

// A crawl that is killed three times leaves what an uninterrupted one leaves,
// and requests no article twice, except those whose responses the kills cut off.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	reference := dbtest.SQLite(t)
	w.run(t, t.TempDir(), reference, nil, "--concurrency=4")
	want := content(t, reference)
	require.Len(t, want, 40)
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			store, at := t.TempDir(), dsn(t)
			w.ResetLog()
			for _, requests := range []int{5, 18, 34} {
				c := w.start(t, store, at, nil)
				rig.Eventually(t, "some requests", time.Minute, func() bool { return len(w.Requests()) >= requests })
				c.Kill(t)
			}
			out := w.run(t, store, at, nil)
			assert.NotContains(t, out, "lease_waits", "the leases of a dead process are taken over at once")
			assert.Equal(t, want, content(t, at))
			asked, again := map[string]int{}, 0
			for _, r := range w.Requests() {
				if r.Path != "/robots.txt" && !strings.Contains(r.Path, "sitemap") {
					asked[r.Host+r.Path]++
				}
			}
			for _, n := range asked {
				again += n - 1
			}
			assert.Len(t, asked, 40)
			assert.LessOrEqual(t, again, 3, "one article for each kill")
			assert.Equal(t, 1, w.MaxInFlight(), "one provider, and one request, at a time")
		})
	}
}

// The demo of the README: a first run, a run that fetches nothing, a run that
// reads the stored pages again, and the removal of expired articles.
func TestDemo(t *testing.T) {
	store, dsn := t.TempDir(), dbtest.SQLite(t)
	command := func(more ...string) string {
		c := rig.Start(t, exec.Command(rig.Program, append([]string{"--job=news", "--runner=prism", "--store=" + store, "--db=" + dsn, "--progress=off", "--log-level=error"}, more...)...))
		require.Equal(t, 0, c.Wait(t, 2*time.Minute), rig.Tail(c.Output(t)))
		return c.Output(t)
	}
	counts := func(more ...string) ledger.Counts {
		at := filepath.Join(t.TempDir(), "report.json")
		command(append(more, "--web=demo", "--report="+at)...)
		b, err := os.ReadFile(at)
		require.NoError(t, err)
		var r struct {
			Counts    ledger.Counts
			Providers []struct{ Provider, State string }
		}
		require.NoError(t, json.Unmarshal(b, &r))
		require.Len(t, r.Providers, 4)
		for name, n := range r.Counts {
			if n == 0 {
				delete(r.Counts, name)
			}
		}
		return r.Counts
	}
	first := counts("--keep-html")
	assert.Equal(t, ledger.Counts{"providers_run": 4, "articles_found": 48, "articles_fetched": 40, "articles_inserted": 40}, first)
	assert.Equal(t, ledger.Counts{"providers_run": 4, "articles_found": 48}, counts(), "nothing is fetched twice")
	assert.Equal(t, ledger.Counts{"providers_run": 4, "articles_same": 40}, counts("--reparse"))
	assert.Contains(t, command("--purge-expired"), "0 articles were past their time")
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	_, err = d.ExecContext(t.Context(), `UPDATE news_articles SET expires_at = 1`)
	require.NoError(t, errors.Join(err, d.Close()))
	assert.Contains(t, command("--purge-expired"), "40 articles were past their time")
	assert.Empty(t, content(t, dsn))
	assert.Equal(t, ledger.Counts{"providers_run": 4, "articles_found": 48}, counts(), "what was purged does not come back")
}

// Wrong usage is reported in one line before anything is touched.
func TestRefused(t *testing.T) {
	bad := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bad, "a.yaml"), []byte("id: a\nselector: x\n"), 0o600))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--publishers=" + bad}, `unknown field "selector"`},
		{[]string{"--news-config=" + filepath.Join(bad, "a.yaml")}, `unknown field "`},
		{[]string{"--reparse", "--keep-html"}, "use one of them"},
		{[]string{"--host-delay=1s"}, "host-delay"},
	} {
		c := rig.Start(t, exec.Command(rig.Program, append([]string{"--job=news", "--web=demo", "--store=" + t.TempDir(), "--db=" + dbtest.SQLite(t)}, tt.args...)...))
		assert.Equal(t, 2, c.Wait(t, time.Minute), tt.args)
		assert.Contains(t, c.Output(t), tt.want)
	}
	c := rig.Start(t, exec.Command(rig.Program, "init", "snapshot", "--provider=nobody", "--url=https://a.example/", "--page=x"))
	assert.Equal(t, 2, c.Wait(t, time.Minute))
	assert.Contains(t, c.Output(t), "known are hankyung, mk")
}
