package docs

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/io/web/browser"
	"github.com/newsfork/seed-engine/io/web/browser/browsertest"
)

// newRendered is a world whose pages are rendered.
func newRendered(t *testing.T) *world {
	t.Helper()
	browsertest.Want(t)
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	w := newWorld(t, d)
	w.policy.SPARendering = true
	w.cfg.UnsandboxedBrowser = os.Geteuid() == 0
	return w
}

// sign makes the crawl sign its requests.
func (w *world) sign() ed25519.PublicKey {
	w.t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(w.t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(w.t, err)
	file := filepath.Join(w.t.TempDir(), "bot.pem")
	require.NoError(w.t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	w.cfg.Lane.Web.Sign = botauth.Bot{Page: "https://acme.example/bot", Key: file}.Signing()
	return public
}

// signed checks a request's signature for a host, by RFC 9421.
func (a asked) signed(key ed25519.PublicKey, host string) bool {
	_, params, _ := strings.Cut(a.header.Get("Signature-Input"), "=")
	_, agent, _ := strings.Cut(a.header.Get("Signature-Agent"), "=")
	path, query, _ := strings.Cut(a.path, "?")
	base := fmt.Sprintf("\"@authority\": %s\n\"@method\": GET\n\"@path\": %s\n\"@query\": ?%s\n\"signature-agent\";key=\"sig1\": %s\n\"@signature-params\": %s", host, path, query, agent, params)
	sum, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(a.header.Get("Signature"), "sig1=:"), ":"))
	return err == nil && ed25519.Verify(key, []byte(base), sum)
}

// A page that is empty without its scripts is rendered. The page's requests are made with
// the crawl's politeness and signed, that for robots.txt too, and none goes to another host.
func TestRendered(t *testing.T) {
	t.Parallel()
	w := newRendered(t)
	key := w.sign()
	shell := html(`<!doctype html><html><head><title>App</title><link rel="stylesheet" href="/app.css"></head><body><div id="root"></div><img src="/logo.png">
		<script src="https://elsewhere.example/track.js"></script><script src="/app.js"></script></body></html>`)
	w.set("/docs", shell)
	w.set("/docs/next", shell)
	w.set("/robots.txt", text("User-agent: *\nDisallow: /secret.json\n"))
	w.set("/app.js", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/javascript")
		_, _ = rw.Write([]byte(`fetch("/secret.json").catch(() => 0); fetch("/data.json").then(r => r.json()).then(d => {
			document.getElementById("root").innerHTML = "<main><h1>" + d.title + location.pathname + "</h1><p>" + d.text + "</p><a href='/docs/next'>next</a></main>"; })`))
	})
	w.set("/data.json", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"title":"Rendered ","text":"This text comes from a script, and only from there."}`))
	})
	state, reason := w.run()
	require.Equal(t, []any{Done, ""}, []any{state, reason})
	log := w.log()
	var paths []string
	for _, a := range log {
		paths = append(paths, a.path)
		require.Equal(t, UserAgent, a.header.Get("User-Agent"))
		require.Equal(t, []bool{true, false}, []bool{a.signed(key, host), a.signed(key, "other.example.com")}, a.path)
	}
	require.Equal(t, []string{"/robots.txt", "/docs", "/app.js", "/data.json", "/docs/next"}, paths)
	for _, g := range gaps(log) {
		require.GreaterOrEqual(t, g, time.Second)
	}
	require.Equal(t, []string{"# Rendered /docs\n\nThis text comes from a script, and only from there.\n\nnext", "# Rendered /docs/next\n\nThis text comes from a script, and only from there.\n\nnext"},
		w.strings(`SELECT preview FROM docs_chunks ORDER BY key`))
	for _, r := range w.sim.Requests() {
		require.Equal(t, host, r.Host)
	}
}

// A page that opens a dialog is rendered too.
func TestRenderedDialogs(t *testing.T) {
	t.Parallel()
	w := newRendered(t)
	w.set("/docs", html(`<!doctype html><html><body><div id="root"></div><script>
		alert("Welcome"); let said = String(confirm("Cookies?")) + prompt("Name?");
		onbeforeunload = () => "Stay";
		document.getElementById("root").innerHTML = "<main><h1>Asked</h1><p>What the reader said to it: " + said + "</p></main>";</script></body></html>`))
	start := time.Now()
	w.run()
	require.Equal(t, []string{"# Asked\n\nWhat the reader said to it: falsenull"}, w.strings(`SELECT preview FROM docs_chunks`), w.row("/docs").Reason)
	require.Less(t, time.Since(start), time.Minute)
}

// The limit of a page's size also applies after its scripts have run.
func TestRenderedTooLarge(t *testing.T) {
	t.Parallel()
	w := newRendered(t)
	w.set("/docs", html(`<!doctype html><html><body><main id="root"></main><script>
		document.getElementById("root").textContent = "many words ".repeat(1 << 19);</script></body></html>`))
	w.run()
	require.Equal(t, row{Status: Skipped, Reason: "rendering https://docs.example.com/docs: longer than 5 MB once its scripts have run", HTTP: 200}, w.row("/docs"))
}

// Without a browser, or as root without the flag, the provider's part stays open.
func TestNoBrowser(t *testing.T) {
	w := newRendered(t)
	w.cfg.UnsandboxedBrowser = false
	if os.Geteuid() == 0 {
		state, _, err := w.try(t.Context())
		require.ErrorIs(t, err, browser.ErrSandbox)
		require.Equal(t, Open, state)
		require.Empty(t, w.log())
	}
	t.Setenv("PATH", t.TempDir())
	state, _, err := w.try(t.Context())
	require.ErrorIs(t, err, browser.ErrMissing)
	require.Equal(t, Open, state)
	require.Empty(t, w.log())
}
