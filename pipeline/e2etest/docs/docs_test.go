//go:build e2e

package docs

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/docs/docsim"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// child starts the program with its output in a file.
func child(t *testing.T, ca string, args ...string) (*exec.Cmd, func() string) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	cmd := exec.Command(rig.Program, append([]string{"--job=docs", "--runner=direct", "--log-level=warn"}, args...)...)
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+ca)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	require.NoError(t, out.Close())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended already
	return cmd, func() string {
		b, err := os.ReadFile(out.Name())
		require.NoError(t, err)
		return string(b)
	}
}

// run runs the program to its end and returns its exit code and output.
func run(t *testing.T, ca string, args ...string) (int, string) {
	t.Helper()
	cmd, output := child(t, ca, args...)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		require.True(t, err == nil || errors.As(err, &exit), err)
	case <-time.After(4 * time.Minute):
		_ = cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to the output
		<-ended
		t.Fatalf("the program did not end:\n%s", output())
	}
	return cmd.ProcessState.ExitCode(), output()
}

// world has four of the fifteen providers, with the shortest allowed delay.
type world struct {
	*webtest.Web
	ca, policies string
}

var four = []string{"openai", "toss-payments", "pinecone", "aws-ses"}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{Web: webtest.New(webtest.Options{}), policies: t.TempDir()}
	require.NoError(t, w.Start())
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	docsim.Install(w.Handle, 1)
	w.ca = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(w.ca, w.CAPEM(), 0o600))
	for _, id := range four {
		b, err := policies.Files.ReadFile(id + ".yaml")
		require.NoError(t, err)
		text := strings.NewReplacer("request_delay_ms: 1500", "request_delay_ms: 1000", "request_delay_ms: 2000", "request_delay_ms: 1000").Replace(string(b))
		require.NoError(t, os.WriteFile(filepath.Join(w.policies, id+".yaml"), []byte(text), 0o600))
	}
	return w
}

func (w world) args(store, dsn string) []string {
	return []string{"--store=" + store, "--db=" + dsn, "--policies=" + w.policies, "--fallback", "--connect-to=" + w.Addr(), "--lease-ttl=3s"}
}

// content returns the results of a crawl: pages with status, depth and content,
// and the ids of their chunks.
func content(t *testing.T, dsn string) []string {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	out := []string{}
	for _, q := range []string{`SELECT key || ' ' || status || ' ' || depth || ' ' || content_hash FROM docs_pages`, `SELECT key || ' ' || id FROM docs_chunks`,
		`SELECT provider || ' ' || state || ' ' || reason || ' ' || requested FROM docs_runs`, `SELECT kind || ' ' || key FROM docs_changes`} {
		rows, err := d.QueryContext(t.Context(), q)
		require.NoError(t, err)
		for rows.Next() {
			var s string
			require.NoError(t, rows.Scan(&s))
			out = append(out, s)
		}
		require.NoError(t, errors.Join(rows.Err(), rows.Close()))
	}
	slices.Sort(out)
	return out
}

// A crawl that is killed three times leaves the same results as an uninterrupted
// one. No page is requested twice, except one whose response the kill cut off,
// and the pause between two requests to a host is kept between processes too.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	reference := dbtest.SQLite(t)
	code, out := run(t, w.ca, w.args(t.TempDir(), reference)...)
	require.Equal(t, 0, code, out)
	want := content(t, reference)
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			store, at := t.TempDir(), dsn(t)
			w.ResetLog()
			inFlight := map[string]bool{}
			for _, requests := range []int{4, 15, 30} {
				cmd, output := child(t, w.ca, w.args(store, at)...)
				require.Eventually(t, func() bool { return len(w.Requests()) >= requests }, 2*time.Minute, time.Millisecond, "%s", output())
				require.NoError(t, cmd.Process.Kill())
				_ = cmd.Wait() // killed
				last := map[string]string{}
				for _, r := range w.Requests() {
					last[r.Host] = r.Host + r.Path
				}
				for page := range maps.Values(last) {
					inFlight[page] = true
				}
			}
			code, out := run(t, w.ca, w.args(store, at)...)
			require.Equal(t, 0, code, out)
			require.NotContains(t, out, "lease_waits", "the leases of a dead process are taken over at once")
			require.Equal(t, want, content(t, at))
			asked, before := map[string]int{}, map[string]time.Time{}
			for _, r := range w.Requests() {
				asked[r.Host+r.Path]++
				if start, ok := before[r.Host]; ok {
					require.GreaterOrEqual(t, r.Start.Sub(start), 990*time.Millisecond, "%s%s", r.Host, r.Path)
				}
				before[r.Host] = r.Start
			}
			again := 0
			for page, n := range asked {
				if n > 1 {
					again++
					require.True(t, inFlight[page], "%s was requested %d times", page, n)
				}
			}
			require.LessOrEqual(t, again, 9, "three hosts at three kills")
			require.LessOrEqual(t, w.MaxInFlight(), 3)
		})
	}
}

// Ctrl-C keeps what was done; the same command resumes from there.
func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	store, dsn := t.TempDir(), dbtest.SQLite(t)
	cmd, output := child(t, w.ca, w.args(store, dsn)...)
	require.Eventually(t, func() bool { return len(w.Requests()) >= 12 }, time.Minute, time.Millisecond, "%s", output())
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // its exit code is checked below
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), output())
	code, out := run(t, w.ca, w.args(store, dsn)...)
	require.Equal(t, 0, code, out)
	asked := map[string]int{}
	for _, r := range w.Requests() {
		asked[r.Host+r.Path]++
		require.Equal(t, "APIIntelBot/1.0 (+https://api-intel.vercel.app/bot)", r.UserAgent, "the name that is looked up in robots.txt")
	}
	for page, n := range asked {
		require.Equal(t, 1, n, page)
	}
	require.Len(t, asked, 4*(12+2+1)+3*2, "with the places of an llms.txt and a catalog of APIs, and of descriptions of three")
}

// The demo of the README: a first crawl, a crawl without changes, a crawl a week
// later, and the other commands.
func TestDemo(t *testing.T) {
	store, dsn := t.TempDir(), dbtest.SQLite(t)
	demo := func(more ...string) string {
		code, out := run(t, "", append([]string{"--store=" + store, "--db=" + dsn, "--web=demo", "--fallback", "--log-format=text"}, more...)...)
		require.Equal(t, 0, code, out)
		return out
	}
	counts := func(more ...string) ledger.Counts {
		at := filepath.Join(t.TempDir(), "report.json")
		out := demo(append(more, "--report="+at)...)
		require.Contains(t, out, "pauses between requests and budgets of requests are turned off")
		require.Equal(t, 15, strings.Count(out, "[CRAWL_REPORT] Provider: "))
		b, err := os.ReadFile(at)
		require.NoError(t, err)
		var r struct {
			Counts    ledger.Counts
			Providers []struct{ Provider, State string }
		}
		require.NoError(t, json.Unmarshal(b, &r))
		require.Len(t, r.Providers, 15)
		for name, n := range r.Counts {
			if n == 0 || name == "chunks" {
				delete(r.Counts, name)
			}
		}
		return r.Counts
	}
	require.Equal(t, ledger.Counts{"providers": 15, "pages_fetched": 165, "pages_new": 165}, counts())
	require.Equal(t, ledger.Counts{"providers": 15, "pages_fetched": 165, "pages_unchanged": 165}, counts())
	require.Equal(t, ledger.Counts{"providers": 15, "pages_fetched": 165, "pages_new": 15, "pages_updated": 30, "pages_unchanged": 120, "pages_deleted": 15}, counts("--demo-edition=2"))

	diff := demo("--diff")
	require.Contains(t, diff, ": 60 pages changed\n")
	require.Contains(t, diff, "qdrant  updated  https://qdrant.tech/documentation/cloud/errors\n    changed  Cloud errors – Qdrant > Limits  (+1 -1 blocks)\n")
	require.Contains(t, demo("--explain=https://platform.openai.com/docs/internal/x"), "robots.txt line 2: Disallow: /docs/internal")
	require.Contains(t, demo("--purge-provider=qdrant"), "qdrant: removed ")
	require.NotContains(t, demo("--demo-edition=2"), "Provider: Qdrant")
	require.Contains(t, demo("--enable-provider=qdrant"), "qdrant is crawled again")
	out := demo("--demo-edition=2", "--alerts=mean_response=1us,error_rate=0")
	require.Contains(t, out, "Provider: Qdrant")
	require.Equal(t, 15, strings.Count(out, "name=mean_response"), out)
}

// A misspelt provider is refused before anything is created. A provider without
// a policy is known while it has rows in the database.
func TestPurgeOfAnUnknownProvider(t *testing.T) {
	few := t.TempDir()
	for _, id := range []string{"pinecone", "qdrant"} {
		text, err := policies.Files.ReadFile(id + ".yaml")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(few, id+".yaml"), text, 0o600))
	}
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			dir, at := t.TempDir(), dsn(t)
			args := func(more ...string) []string {
				return append([]string{"--store=" + dir, "--db=" + at, "--policies=" + few, "--fallback", "--web=demo", "--log-format=text"}, more...)
			}
			for _, flag := range []string{"purge", "enable"} {
				code, out := run(t, "", args("--"+flag+"-provider=qdrnt")...)
				require.Equal(t, 2, code, out)
				require.Equal(t, "pipeline: --"+flag+"-provider=qdrnt: there is no such provider; known are pinecone, qdrant; did you mean qdrant?\n", out)
			}
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
			if file, ok := strings.CutPrefix(at, "sqlite://"); ok {
				require.NoFileExists(t, file)
			}
			code, out := run(t, "", args()...)
			require.Equal(t, 0, code, out)
			require.NoError(t, os.Remove(filepath.Join(few, "qdrant.yaml")))
			code, out = run(t, "", args("--purge-provider=qdrant")...)
			require.Equal(t, 0, code, out)
			require.Contains(t, out, "qdrant: removed ")
			code, out = run(t, "", args("--purge-provider=qdrnt")...)
			require.Equal(t, 2, code, out)
			require.Contains(t, out, "known are pinecone, qdrant; did you mean qdrant?\n")
			text, err := policies.Files.ReadFile("qdrant.yaml")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(few, "qdrant.yaml"), text, 0o600))
		})
	}
}

// Wrong usage is reported in one line before anything is touched.
func TestRefused(t *testing.T) {
	bad := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bad, "a.yaml"), []byte("provider_id: a\nseed_urls: [https://a.example/]\nallowed_path_patterns: [/**]\nmax_page: 3\n"), 0o600))
	ranges := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(ranges, "b.yaml"), []byte("provider_id: b\nseed_urls: [https://b.example/]\nallowed_path_patterns: [/**]\nmax_depth: 6\nmax_pages: 501\n"), 0o600))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--policies=" + ranges}, "b.yaml:4: max_depth: 6 is outside 1 to 5; b.yaml:5: max_pages: 501 is outside 1 to 500"},
		{[]string{"--policies=" + bad}, `a.yaml: line 4: unknown field "max_page"`},
		{[]string{"--policies=" + filepath.Join(bad, "nowhere")}, "no such file"},
		{[]string{"--policies=" + filepath.Join(bad, "a.yaml")}, "is no directory"},
		{[]string{"--limit=-1"}, "use 0 (all) to 1000000"},
		{[]string{"--demo-edition=3"}, "use 1 or 2"},
		{[]string{"--alerts=error_rate=20"}, "--alerts: error_rate=20: use a share from 0 to 1"},
		{[]string{"--handoff-again=nobody"}, "--handoff-again=nobody: there is no such provider; known are anthropic"},
		{[]string{"--handoff-again", "--diff"}, "--diff and --handoff-again: use one at a time"},
		{[]string{"--diff", "--explain=https://a.example/"}, "--diff and --explain: use one at a time"},
		{[]string{"--diff"}, "there is no such session"},
		{[]string{"--country=sg"}, "country"},
	} {
		store := t.TempDir()
		code, out := run(t, "", append([]string{"--store=" + store, "--db=" + dbtest.SQLite(t), "--web=demo"}, tt.args...)...)
		require.Equal(t, 2, code, out)
		require.Contains(t, out, tt.want)
		require.Equal(t, 1, strings.Count(strings.TrimSpace(out), "\n")+1, out)
	}
}
