package docs

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// readBrowser has the system keep the browser's program in memory, while other
// tests run. What was compiled before may have pushed it out, and its own page
// faults read its 300 MB in pieces: 28 s where one read of the whole takes 5.
func readBrowser() {
	for _, at := range []string{"/usr/lib/chromium/chromium", "/opt/google/chrome/chrome"} {
		if f, err := os.Open(at); err == nil {
			_, _ = io.Copy(io.Discard, f) // only time is lost when it fails
			_ = f.Close()
		}
	}
}

// newRendered is a world whose pages are rendered.
func newRendered(t *testing.T) *world {
	t.Helper()
	wantBrowser(t)
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	w := newWorld(t, d)
	w.policy.SPARendering = true
	w.cfg.UnsandboxedBrowser = os.Geteuid() == 0
	return w
}

// wantBrowser gives the browser's path, and skips the test without one, but in CI.
func wantBrowser(t *testing.T) string {
	t.Helper()
	at, err := Browser(true)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return at
}

// A page that is empty without its scripts is rendered. The page's requests are made with
// the crawl's politeness, and none goes to another host.
func TestRendered(t *testing.T) {
	t.Parallel()
	w := newRendered(t)
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
	}
	require.Equal(t, []string{"/robots.txt", "/docs", "/app.js", "/data.json", "/docs/next"}, paths)
	for _, g := range gaps(log) {
		require.GreaterOrEqual(t, g, time.Second)
	}
	require.Equal(t, []string{"# Rendered /docs\n\nThis text comes from a script, and only from there.\n\nnext", "# Rendered /docs/next\n\nThis text comes from a script, and only from there.\n\nnext"},
		w.strings(`SELECT preview FROM chunks ORDER BY key`))
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
	require.Equal(t, []string{"# Asked\n\nWhat the reader said to it: falsenull"}, w.strings(`SELECT preview FROM chunks`), w.row("/docs").Reason)
	require.Less(t, time.Since(start), renderTimeout/2)
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

// What a page's scripts send by WebRTC reaches nobody. The same page is heard
// when the browser is started without that switch, so the listener is where it
// would reach it.
func TestRenderedWebRTC(t *testing.T) {
	t.Parallel()
	at := wantBrowser(t)
	// gather waits until the page has what it names, and gives the number of its candidates.
	gather := func(t *testing.T, sent net.PacketConn, until string, more ...chromedp.ExecAllocatorOption) int {
		// The switch lets the test do without a network: WebRTC leaves loopback out otherwise.
		home, remove, err := scratch.Dir("browser-")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, remove()) })
		options := append(browserOptions(at, home, os.Geteuid() == 0), chromedp.Flag("allow-loopback-in-peer-connection", true))
		alloc, endAlloc := chromedp.NewExecAllocator(t.Context(), append(options, more...)...)
		t.Cleanup(endAlloc)
		tab, end := chromedp.NewContext(alloc)
		t.Cleanup(end)
		n, err := chromedp.Run(tab, chromedp.Evaluate[int](strings.ReplaceAll(`(async () => {
			window.c = new RTCPeerConnection({iceServers: [{urls: "stun:ADDR"}, {urls: "turn:ADDR?transport=udp", username: "u", credential: "p"}]});
			c.createDataChannel("d");
			const all = new Promise(r => { c.onicegatheringstatechange = () => c.iceGatheringState == "complete" && r(); });
			await c.setLocalDescription(await c.createOffer());
			await `+until+`;
			return (c.localDescription.sdp.match(/a=candidate/g) || []).length;
		})()`, "ADDR", sent.LocalAddr().String()), func(p *cdpruntime.EvaluateParams) { p.AwaitPromise = new(true) }))
		require.NoError(t, err)
		return n
	}
	first := func(t *testing.T, l net.PacketConn) string {
		b := make([]byte, 2048)
		n, _, err := l.ReadFrom(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	listen := func(t *testing.T) net.PacketConn {
		l, err := net.ListenPacket("udp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	}
	t.Run("without the switch", func(t *testing.T) {
		l := listen(t)
		gather(t, l, "null", chromedp.Flag("webrtc-ip-handling-policy", false))
		require.Equal(t, "\x21\x12\xa4\x42", first(t, l)[4:8], "STUN's magic cookie")
	})
	t.Run("with it", func(t *testing.T) {
		l := listen(t)
		require.Zero(t, gather(t, l, "all"))
		_, err := l.WriteTo([]byte("nothing before"), l.LocalAddr())
		require.NoError(t, err)
		require.Equal(t, "nothing before", first(t, l))
	})
}

// No process of the browser has what is in the environment of ours, or our home.
func TestRenderedEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "for-the-store-alone")
	w := newRendered(t)
	r, err := newRenderer(t.Context(), &crawl{cfg: w.cfg, w: &lane.Worker{Log: slog.New(slog.DiscardHandler)}})
	require.NoError(t, err)
	browser := chromedp.FromContext(r.ctx).Browser.Process().Pid
	var home string
	for _, pid := range append(children(t, browser), browser) {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		require.NoError(t, err)
		for _, v := range strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00") {
			name, value, _ := strings.Cut(v, "=")
			require.NotContains(t, value, "for-the-store-alone")
			require.NotEqual(t, "AWS_SECRET_ACCESS_KEY", name)
			if name == "HOME" {
				home = value
				require.NotEqual(t, os.Getenv("HOME"), home)
			}
		}
	}
	require.DirExists(t, home)
	r.cancel()
	require.NoDirExists(t, home)
}

// children are the processes that a process started, and theirs.
func children(t *testing.T, pid int) (out []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	require.NotEmpty(t, lists)
	for _, at := range lists {
		list, err := os.ReadFile(at)
		require.NoError(t, err)
		for _, f := range strings.Fields(string(list)) {
			child, err := strconv.Atoi(f)
			require.NoError(t, err)
			out = append(append(out, child), children(t, child)...)
		}
	}
	return out
}

// As root the browser has no sandbox, so rendering must be allowed by a flag.
func TestSandbox(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, sandboxed(0, false), ErrSandbox)
	require.NoError(t, sandboxed(0, true))
	require.NoError(t, sandboxed(1000, false))
	require.NoError(t, sandboxed(1000, true))
	require.ErrorContains(t, ErrSandbox, "--allow-unsandboxed-browser")

	w := newRendered(t)
	w.cfg.UnsandboxedBrowser = false
	if os.Geteuid() == 0 {
		state, _, err := w.try(t.Context())
		require.ErrorIs(t, err, ErrSandbox)
		require.Equal(t, Open, state)
		require.Empty(t, w.log())
	}
	asked := func(unsandboxed bool) bool {
		alloc, _ := chromedp.NewExecAllocator(t.Context(), browserOptions("/bin/false", t.TempDir(), unsandboxed)...)
		return strings.Contains(fmt.Sprintf("%+v", chromedp.FromContext(alloc).Allocator), "no-sandbox:true")
	}
	require.Equal(t, []bool{false, true}, []bool{asked(false), asked(true)})
}

// Without a browser the error says what to do.
func TestNoBrowser(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Browser(true)
	require.ErrorIs(t, err, ErrNoBrowser)
	require.ErrorContains(t, err, "apt-get install chromium")
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	w := newWorld(t, d)
	w.policy.SPARendering = true
	state, _, err := w.try(t.Context())
	require.ErrorIs(t, err, ErrNoBrowser)
	require.Equal(t, Open, state)
	require.Empty(t, w.log())
}
