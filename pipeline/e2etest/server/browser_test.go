//go:build e2e

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/freeport"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

const axeCore = "axe-core@4.10.3"

// browser starts Chromium.
func browser(t *testing.T) context.Context {
	t.Helper()
	chromium := tool(t, "chromium", "chromium-browser", "google-chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// axe is the source of axe-core, from npm's cache, which .ci/run fills, or else from the
// registry: npm gives up after 80 seconds when the registry does not answer.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(tool(t, "npm"), "install", "--prefer-offline", "--no-audit", "--no-fund", "--prefix", dir, axeCore)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("installing %s: %v\n%s", axeCore, err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	return string(b)
}

var widths = map[string]int64{"desktop": 1440, "phone": 390}

var themes = []string{"light", "dark"}

// setTheme makes the browser say that its user prefers a theme.
func setTheme(t *testing.T, ctx context.Context, theme string) {
	t.Helper()
	do(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		return err
	}))
}

// violations are what axe-core finds on the page, as JSON.
func violations(t *testing.T, ctx context.Context, source string) string {
	t.Helper()
	value(t, ctx, chromedp.Evaluate[int](source+";0"))
	return value(t, ctx, chromedp.Evaluate[string](`axe.run().then(r => JSON.stringify(r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.map(n => n.html)}))))`, chromedp.EvalAwaitPromise))
}

// searchPage indexes what the docs job found, serves the page of cmd/search, and returns its address.
func searchPage(t *testing.T, r *running) string {
	t.Helper()
	ports, err := freeport.Find(1)
	require.NoError(t, err)
	search := filepath.Join(rig.Programs, "search")
	passes(t, search, "embed", "--store="+filepath.Join(r.dir, "out"))
	serve := exec.Command(search, "serve", "--store="+filepath.Join(r.dir, "out"), "--listen=127.0.0.1:"+ports[0])
	require.NoError(t, serve.Start())
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		assert.NoError(t, serve.Wait(), "the search page ends when it is told to")
	})
	at := "http://127.0.0.1:" + ports[0] + "/"
	eventually(t, "the search page", time.Minute, func() bool {
		resp, err := http.Get(at)
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	return at
}

// TestPages opens every page at two widths, light and dark: axe-core finds no violation,
// and nothing is wider than the screen. SCREENSHOTS names a folder for screenshots and for the pages that fail.
func TestPages(t *testing.T) {
	source := axe(t)
	config := filepath.Join(t.TempDir(), "server.yaml")
	require.NoError(t, os.WriteFile(config, []byte("schedules: [{name: nightly, job: seed, cron: '15 3 * * *', timezone: Asia/Seoul}]\nalerts: {seed: {failure_rate: 0.0001, minimum_samples: 1}}\n"), 0o600))
	r := start(t, t.TempDir(), "--config="+config)
	short := r.trigger(`{"country":"sg"}`)
	_, v := r.call("POST", "/api/v1/docs/runs", "")
	docs := v["run_id"].(string)
	eventually(t, "two runs' ends", 3*time.Minute, func() bool { return r.state(short) == "done" && r.state(docs) == "done" })
	letter := filepath.Join(r.dir, "out", "dead-letters", "seed")
	require.NoError(t, os.MkdirAll(letter, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(letter, "one.json"), []byte(`{"job":"seed","run_id":"`+short+`","stage":"visit","kind":"store_failed","attempts":2,"input":{"domain_id":"gov:sg:moh.gov.sg","url":"https://moh.gov.sg/","file":"datasets/country=sg"},"error":"it would not: https://moh.gov.sg/`+strings.Repeat("x", 500)+`"}`), 0o600))
	failed := filepath.Join(r.dir, "out", "runs", "20260128-093000-000-0a1b2c3d")
	require.NoError(t, os.MkdirAll(failed, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(failed, "state.json"), []byte(`{"run_id":"20260128-093000-000-0a1b2c3d","job":"seed","state":"failed","started_at":"2026-01-28T09:30:00Z","finished_at":"2026-01-28T09:31:00Z","error":"reading `+strings.Repeat("x", 500)+`"}`), 0o600))
	const acme = `{"provider_id":"acme","seed_urls":["https://docs.acme.example/"],"allowed_path_patterns":["/guide/**"],"tos":"allowed","tos_checked":"2026-01-05","max_pages":%s}`
	for version, pages := range []string{"50", "70"} {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", r.url+"/api/v1/docs/providers/acme", strings.NewReader(fmt.Sprintf(acme, pages)))
		require.NoError(t, err)
		req.Header.Set("If-Match", fmt.Sprintf(`"%d"`, version))
		answer, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	r.call("POST", "/api/v1/docs/providers/acme/disable", `{"why":"they asked us to"}`)
	long := r.trigger(`{"force":true}`)
	eventually(t, "a paused run", 2*time.Minute, func() bool {
		switch r.state(long) {
		case "running":
			r.call("POST", "/api/v1/runs/"+long+"/pause", "")
		case "done": // before the pause
			long = r.trigger(`{"force":true}`)
		}
		return r.state(long) == "paused"
	})
	search := searchPage(t, r)
	ctx := browser(t)
	// The search for "h1" alone finds the text of a form too.
	for _, page := range []struct{ name, path string }{
		{"front", "/"}, {"runs", "/runs?job=seed"}, {"start", "/start"}, {"refused", "/start?job=seed&country=ZZ"}, {"dead-letters", "/dead-letters?job=seed"}, {"cancel", "/runs/" + long + "/cancel"}, {"run", "/runs/" + long}, {"ended", "/runs/" + short}, {"failed", "/runs/20260128-093000-000-0a1b2c3d"}, {"log", "/runs/" + short + "/log?level=info&lines=50"}, {"docs", "/runs/" + docs}, {"schedules", "/schedules"}, {"providers", "/providers"}, {"provider", "/providers/acme"}, {"sites", "/sites"}, {"site", "/sites/gadgets"}, {"publishers", "/publishers"}, {"publisher", "/publishers/demo-local"}, {"removals", "/removals?provider=acme"}, {"remove", "/removals/ask?provider=acme"}, {"alerts", "/alerts"}, {"explore", "/explore"}, {"pages", "/explore/pages?text=a"}, {"domains", "/explore/domains?domain=moh.gov.sg"}, {"domain", "/explore/domains/item?domain=moh.gov.sg&country=sg&category=news&date=2026-01-28&path=/admin/"}, {"page", "/explore/pages/item?provider=toss-payments&key=https%3A%2F%2Fdocs.tosspayments.com%2Fguides%2Fpayment"}, {"audit", "/audit"}, {"reports", "/reports"}, {"search", search}, {"results", search + "?q=payment"}, {"dead-letter", "/dead-letters/seed/one"},
		{"login", "/login"}, {"error", "/runs/none"},
	} {
		at := page.path
		if strings.HasPrefix(at, "/") {
			at = r.url + at
		}
		for device, width := range widths {
			do(t, ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(at), chromedp.WaitVisible("main h1"))
			if page.name == "refused" {
				do(t, ctx, chromedp.Focus("#seed-country"), chromedp.KeyEvent("\r"), chromedp.WaitVisible("#seed-country-wrong"))
			}
			for _, theme := range themes {
				t.Run(page.name+"-"+device+"-"+theme, func(t *testing.T) {
					defer explain(t, ctx)
					setTheme(t, ctx, theme)
					wrong := value(t, ctx, chromedp.Text("main h1")) == "That did not work"
					assert.Equal(t, page.name == "error", wrong, "it is the page that was asked for")
					assert.LessOrEqual(t, value(t, ctx, chromedp.Evaluate[int64]("document.documentElement.scrollWidth")), width, "it scrolls horizontally")
					assert.Equal(t, "[]", violations(t, ctx, source), "axe finds nothing")
				})
				keepScreen(t, ctx, page.name+"-"+device+"-"+theme)
			}
		}
	}
}

// explain saves the page of a test that failed, and says what it showed: a live page may be another one later.
func explain(t *testing.T, ctx context.Context) {
	t.Helper()
	if !t.Failed() {
		return
	}
	html, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.readyState + ' ' + location.href + '\\n' + document.documentElement.outerHTML"))
	file := filepath.Join(cmp.Or(os.Getenv("SCREENSHOTS"), os.TempDir()), strings.ReplaceAll(t.Name(), "/", "-")+".html")
	err = errors.Join(err, os.WriteFile(file, []byte(html), 0o600))
	t.Logf("the page is in %s (%v), it begins:\n%s", file, err, html[:min(len(html), 20_000)])
}

// keepScreen keeps a screenshot, if SCREENSHOTS names a folder for them.
func keepScreen(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if keep := os.Getenv("SCREENSHOTS"); keep != "" {
		require.NoError(t, os.WriteFile(filepath.Join(keep, name+".png"), value(t, ctx, chromedp.FullScreenshot(100)), 0o600))
	}
}

// keepScreens keeps a page as TestPages does.
func keepScreens(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	for device, width := range widths {
		for _, theme := range themes {
			setTheme(t, ctx, theme)
			do(t, ctx, chromedp.EmulateViewport(width, 900))
			keepScreen(t, ctx, name+"-"+device+"-"+theme)
		}
	}
}

// do runs steps without a result.
func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for i, step := range steps {
		_, err := chromedp.Run(ctx, step)
		require.NoError(t, err, "step %d", i+1)
	}
}

// value returns the result of one step.
func value[T any](t *testing.T, ctx context.Context, step chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, step)
	require.NoError(t, err)
	return v
}

// waitFor waits until an expression is true, also while a page loads.
func waitFor(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	eventually(t, expression, 2*time.Minute, func() bool {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		return err == nil && yes
	})
}

// TestLive checks that a page updates itself without being loaded again. It
// starts a run by keyboard, and pauses and cancels it.
func TestLive(t *testing.T) {
	r := start(t, t.TempDir())
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(r.url+"/"), chromedp.WaitVisible("h1"))
	value(t, ctx, chromedp.Evaluate[bool]("window.same = true"))
	waitFor(t, ctx, `document.getElementById("live").textContent === "Live"`)
	id := r.trigger(`{"country":"sg"}`)
	waitFor(t, ctx, fmt.Sprintf(`document.querySelector('[data-live=runs]').textContent.includes(%q)`, id))
	waitFor(t, ctx, `document.querySelector('[data-live=runs] .state').textContent === "done"`)
	assert.True(t, value(t, ctx, chromedp.Evaluate[bool]("window.same === true")), "it was not loaded again")

	eventually(t, "a run started by keyboard", time.Minute, func() bool { // the lease of the run before may be released a moment later
		do(t, ctx, chromedp.Navigate(r.url+"/start"), chromedp.WaitVisible("#seed-force"), chromedp.Focus("#seed-force"), chromedp.KeyEvent(" "), chromedp.KeyEvent("\r"))
		waitFor(t, ctx, `document.querySelector("h1") !== null && document.querySelector("h1").textContent !== "Start a run"`)
		return strings.HasPrefix(value(t, ctx, chromedp.Title()), "Run ")
	})
	do(t, ctx, chromedp.WaitVisible("#pause"), chromedp.Focus("#pause"), chromedp.KeyEvent("\r"))
	do(t, ctx, chromedp.WaitVisible("#resume"), chromedp.Focus("#cancel"), chromedp.KeyEvent("\r"))
	do(t, ctx, chromedp.WaitVisible("#confirm"), chromedp.Focus("#confirm"), chromedp.KeyEvent("\r"))
	waitFor(t, ctx, `document.querySelector('.state') !== null && document.querySelector('.state').textContent === "cancelled"`)

	do(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Seoul"})
		return err
	}), chromedp.Focus("#my-zone"), chromedp.KeyEvent("\r"))
	waitFor(t, ctx, `document.querySelector("[data-zone]") !== null && document.querySelector("[data-zone]").textContent === "Asia/Seoul"`)
	assert.True(t, strings.HasPrefix(value(t, ctx, chromedp.Title()), "Run "), "the page stays")
}

// TestWithoutScript uses the dashboard with JavaScript off.
func TestWithoutScript(t *testing.T) {
	r := start(t, t.TempDir())
	ctx := browser(t)
	do(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	do(t, ctx, chromedp.Navigate(r.url+"/start"), chromedp.WaitVisible("#zone"), chromedp.Focus("#zone"), chromedp.KeyEvent("Asia/Seoul\r"))
	waitFor(t, ctx, `document.querySelector("[data-zone]") !== null && document.querySelector("[data-zone]").textContent === "Asia/Seoul"`)
	do(t, ctx, chromedp.WaitVisible("#seed-country"), chromedp.Focus("#seed-country"), chromedp.KeyEvent("zz\r"), chromedp.WaitVisible("#seed-country-wrong"))
	assert.Contains(t, value(t, ctx, chromedp.Text("#seed-country-wrong")), `no raw file matches --country="zz"`)
	do(t, ctx, chromedp.Navigate(r.url+"/start"), chromedp.WaitVisible("#seed-country"), chromedp.Focus("#seed-country"), chromedp.KeyEvent("sg\r"), chromedp.WaitVisible(".lead"))
	id := strings.TrimPrefix(value(t, ctx, chromedp.Text("h1")), "Run ")
	eventually(t, "the run's end", 2*time.Minute, func() bool { return r.state(id) == "done" })
	do(t, ctx, chromedp.Reload(), chromedp.WaitVisible(".state-done"))
	do(t, ctx, chromedp.Navigate(r.url+"/runs/"+id+"/log"), chromedp.WaitVisible("#q"), chromedp.Focus("#q"), chromedp.KeyEvent("run_ended\r"))
	eventually(t, "the lines that were searched", time.Minute, func() bool {
		text, err := chromedp.Run(ctx, chromedp.Text("main"))
		return err == nil && strings.Contains(text, "1 of 1 lines found")
	})
	do(t, ctx, chromedp.Navigate(r.url+"/explore/domains"), chromedp.WaitVisible("#domains-domain"), chromedp.Focus("#domains-domain"), chromedp.KeyEvent("moh.gov.sg\r"))
	do(t, ctx, chromedp.WaitVisible("a[href*='/domains/item']"), chromedp.Focus("a[href*='/domains/item']"), chromedp.KeyEvent("\r"))
	waitFor(t, ctx, `document.querySelector("h1") !== null && document.querySelector("h1").textContent === "moh.gov.sg"`)
	do(t, ctx, chromedp.Navigate(r.url+"/providers"), chromedp.WaitVisible("summary"), chromedp.Focus("summary"), chromedp.KeyEvent("\r"), chromedp.WaitVisible("#policy"))
	add := func(pages string) {
		value(t, ctx, chromedp.Evaluate[string](`document.getElementById("policy").value = "provider_id: acme\nseed_urls: [https://docs.acme.example/]\nallowed_path_patterns: [/**]\nmax_pages: `+pages+`\n"`))
		do(t, ctx, chromedp.Focus("#policy"), chromedp.KeyEvent("\t\t\t\r")) // a page to try it with, its button, and the form's
	}
	add("501")
	do(t, ctx, chromedp.WaitVisible("#faults"), chromedp.WaitVisible("#policy"))
	assert.Equal(t, "Line 4: max_pages: 501 is outside 1 to 500", value(t, ctx, chromedp.Text("#faults")))
	keepScreens(t, ctx, "provider-faults")
	add("50")
	waitFor(t, ctx, `document.querySelector("h1") !== null && document.querySelector("h1").textContent === "Provider acme"`)
	do(t, ctx, chromedp.WaitVisible("#why"), chromedp.Focus("#why"), chromedp.KeyEvent("they asked us to\r"), chromedp.WaitVisible(".state-disabled"))
	eventually(t, "the run again", time.Minute, func() bool { // the lease of the run before may be released a moment later
		do(t, ctx, chromedp.Navigate(r.url+"/runs/"+id), chromedp.WaitVisible("#again"), chromedp.Focus("#again"), chromedp.KeyEvent("\r"))
		waitFor(t, ctx, fmt.Sprintf(`location.pathname !== "/runs/%s" && document.querySelector("h1") !== null`, id)) // a page opened while the form is sent would be given up: ERR_ABORTED
		title := value(t, ctx, chromedp.Title())
		return strings.HasPrefix(title, "Run ") && !strings.Contains(title, id)
	})
}
