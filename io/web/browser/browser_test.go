package browser

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/scratch"
)

// want gives the browser's path, and skips the test without one, but in CI.
func want(t *testing.T) string {
	t.Helper()
	at, err := Find(true)
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), err)
		t.Skip(err)
	}
	return at
}

// What a page's scripts send by WebRTC reaches nobody. The same page is heard
// when the browser is started without that switch, so the listener is where it
// would reach it.
func TestRenderedWebRTC(t *testing.T) {
	t.Parallel()
	at := want(t)
	// gather waits until the page has what it names, and gives the number of its candidates.
	gather := func(t *testing.T, sent net.PacketConn, until string, more ...chromedp.ExecAllocatorOption) int {
		// The switch lets the test do without a network: WebRTC leaves loopback out otherwise.
		home, remove, err := scratch.Dir("browser-")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, remove()) })
		all := append(options(at, home, "test", os.Geteuid() == 0), chromedp.Flag("allow-loopback-in-peer-connection", true))
		alloc, endAlloc := chromedp.NewExecAllocator(t.Context(), append(all, more...)...)
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
	want(t)
	r, err := Start(t.Context(), Config{Unsandboxed: os.Geteuid() == 0, Log: slog.New(slog.DiscardHandler)})
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
	r.Close()
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

// A page whose scripts do not end is an error that says so.
func TestEndlessScript(t *testing.T) {
	t.Parallel()
	want(t)
	r, err := Start(t.Context(), Config{Unsandboxed: os.Geteuid() == 0, MaxPage: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer r.Close()
	r.timeout = time.Second
	page := &url.URL{Scheme: "https", Host: "endless.example", Path: "/"}
	_, err = r.Render(t.Context(), page, []byte(`<script>while (true) {}</script>`), "text/html", Until{})
	require.EqualError(t, err, "rendering https://endless.example/: its scripts and their requests have not ended within 1s")
}

// A page is complete when it shows what it is for, and not when its scripts wait.
func TestUntil(t *testing.T) {
	t.Parallel()
	want(t)
	part := func(context.Context, *url.URL, *url.URL) (Asset, bool, error) { return Asset{Status: 200}, false, nil }
	r, err := Start(t.Context(), Config{Unsandboxed: os.Geteuid() == 0, MaxPage: 1 << 20, Log: slog.New(slog.DiscardHandler), Part: part})
	require.NoError(t, err)
	defer r.Close()
	shows := func(html string) bool {
		return strings.Contains(strings.ReplaceAll(html, `"<b>7</b>"`, ""), "<b>7</b>")
	} // not in the script
	const late, never = `<script>setTimeout(() => document.body.innerHTML = "<b>7</b>", 1500)</script>`, `<p>none</p>`
	const noisy = `<p></p><script>let n = 0; setInterval(() => { fetch("/" + n++); document.querySelector("p").innerHTML = "<b>7</b>" }, 100)</script>`
	for _, tt := range []struct {
		name, page string
		until      Until
		shown      bool
		least      time.Duration
	}{
		{"silence", late, Until{}, false, 0},
		{"a timer", late, Until{shows, 20 * time.Second}, true, time.Second},
		{"too late", late, Until{shows, 100 * time.Millisecond}, false, 0},
		{"without end", noisy, Until{shows, time.Second}, true, time.Second},
		{"never", never, Until{shows, time.Second}, false, time.Second},
	} {
		begun := time.Now()
		out, err := r.Render(t.Context(), &url.URL{Scheme: "https", Host: "late.example", Path: "/"}, []byte(`<body>`+tt.page), "text/html", tt.until)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.shown, shows(out), "%s: %s", tt.name, out)
		require.GreaterOrEqual(t, time.Since(begun), tt.least, tt.name)
	}
}

// A browser that is killed is started again: the page is rendered once more, and fails alone if it is killed again.
func TestKilled(t *testing.T) {
	t.Parallel()
	want(t)
	var r *Browser
	kills := map[string]int{"/once": 1, "/twice": 2}
	part := func(_ context.Context, page, _ *url.URL) (Asset, bool, error) {
		if kills[page.Path]--; kills[page.Path] >= 0 {
			require.NoError(t, chromedp.FromContext(r.ctx).Browser.Process().Kill())
		}
		return Asset{}, true, nil
	}
	r, err := Start(t.Context(), Config{Unsandboxed: os.Geteuid() == 0, MaxPage: 1 << 20, Log: slog.New(slog.DiscardHandler), Part: part})
	require.NoError(t, err)
	defer r.Close()
	for _, path := range []string{"/before", "/once", "/twice", "/after"} {
		out, err := r.Render(t.Context(), &url.URL{Scheme: "https", Host: "killer.example", Path: path}, []byte(`<p>text</p><script src="/a.js"></script>`), "text/html", Until{})
		if path == "/twice" {
			require.ErrorContains(t, err, "the browser ended 2 times")
			continue
		}
		require.NoError(t, err, path)
		require.Contains(t, out, "<p>text</p>")
	}
}

// As root the browser has no sandbox, so rendering must be allowed by a flag.
func TestSandbox(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, sandboxed(0, false), ErrSandbox)
	require.NoError(t, sandboxed(0, true))
	require.NoError(t, sandboxed(1000, false))
	require.NoError(t, sandboxed(1000, true))
	require.ErrorContains(t, ErrSandbox, "--allow-unsandboxed-browser")

	asked := func(unsandboxed bool) bool {
		alloc, _ := chromedp.NewExecAllocator(t.Context(), options("/bin/false", t.TempDir(), "test", unsandboxed)...)
		return strings.Contains(fmt.Sprintf("%+v", chromedp.FromContext(alloc).Allocator), "no-sandbox:true")
	}
	require.Equal(t, []bool{false, true}, []bool{asked(false), asked(true)})
}

// Without a browser the error says what to do.
func TestNoBrowser(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find(true)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "apt-get install chromium")
}

// The browser starts wherever the path of its socket is short enough, and else an error says
// what to do.
func TestLongTemporaryFolder(t *testing.T) {
	want(t)
	short, err := os.MkdirTemp("/tmp", "b-")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(short)) }()
	const random = "/browser-4294967295"
	longest := maxSocket - len(socket) - len(random)
	for bytes, says := range map[int]string{longest: "", longest + len(random): "let TMPDIR name a folder with a shorter path"} {
		dir := filepath.Join(short, strings.Repeat("d", bytes-len(short)-1))
		require.NoError(t, os.Mkdir(dir, 0o700))
		t.Setenv("TMPDIR", dir)
		b, err := Start(t.Context(), Config{Unsandboxed: true, Log: slog.New(slog.DiscardHandler)})
		if says != "" {
			require.ErrorContains(t, err, says)
		} else {
			require.NoError(t, err)
			b.Close()
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
