// Package browser renders pages with a headless Chromium that has no network of its own:
// each request of a page is answered by the caller, who asks politely, or fails. No promise: see docs/library.md.
package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/newsfork/seed-engine/io/scratch"
)

const (
	renderTimeout = 2 * time.Minute // including the pauses between the page's requests
	renderQuiet   = 500 * time.Millisecond
	maxParts      = 64       // requests of one page
	maxPartBytes  = 32 << 20 // of scripts and data, kept in memory
)

// ErrMissing means that pages are to be rendered and there is no browser.
var ErrMissing = errors.New("rendering pages needs Chromium or Chrome in PATH; install it (apt-get install chromium) or turn rendering off (docs: spa_rendering, catalog: rendering)")

// ErrSandbox means that the browser would run strangers' scripts as root without a
// sandbox.
var ErrSandbox = errors.New("rendering runs the scripts of strangers' pages, and Chromium has no sandbox as root: run as another user, or allow it by --allow-unsandboxed-browser")

// Find finds the browser for rendering pages, or returns ErrMissing or ErrSandbox.
func Find(unsandboxed bool) (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if at, err := exec.LookPath(name); err == nil {
			return at, sandboxed(os.Geteuid(), unsandboxed)
		}
	}
	return "", ErrMissing
}

func sandboxed(uid int, unsandboxed bool) error {
	if uid == 0 && !unsandboxed {
		return ErrSandbox
	}
	return nil
}

// options start the browser at a path with its own home folder and environment.
// The process's environment has keys, and a fault of the browser must not give them to
// a page's scripts.
func options(at, home, agent string, unsandboxed bool) []chromedp.ExecAllocatorOption {
	all := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(at), chromedp.UserAgent(agent),
		chromedp.NoInheritEnv, chromedp.Env("PATH="+os.Getenv("PATH"), "HOME="+home, "TMPDIR="+home, "LANG=C.UTF-8"),
		chromedp.UserDataDir(filepath.Join(home, "profile")),
		// A proxy where nothing listens: a request that is not intercepted must not leave the machine.
		chromedp.ProxyServer("http://127.0.0.1:1"), chromedp.Flag("proxy-bypass-list", "<-loopback>"),
		// WebRTC ignores the HTTP proxy: it sends datagrams to any host and port that a page names. The switch with
		// "force-" before it does not stop them.
		chromedp.Flag("webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		// The last one would search for cast devices by multicast.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,MediaRouter"))
	if unsandboxed {
		all = append(all, chromedp.NoSandbox)
	}
	return all
}

// Config is how a browser renders.
type Config struct {
	Unsandboxed bool
	UserAgent   string
	MaxPage     int // bytes of a page once its scripts have run
	Log         *slog.Logger
	// Part answers a page's GET for a script or for data. When it refuses, the request
	// fails, and the page goes without it; an error ends the rendering of the page.
	Part func(ctx context.Context, page, u *url.URL) (answer Asset, refused bool, err error)
}

// Browser is a headless browser without a network. Every request of a page is
// intercepted. A GET for a script or for data is answered by Config.Part, one at a time,
// and everything else fails.
type Browser struct {
	cfg     Config
	within  context.Context
	timeout time.Duration // for one page

	starting sync.Mutex
	closed   bool
	ctx      context.Context // of the process
	end      func()

	mu    sync.Mutex
	parts map[string]Asset // answers, for other pages
	bytes int
}

// Asset is the answer to a request of a page.
type Asset struct {
	Status int
	Kind   string // Content-Type
	Body   []byte
}

// socket is what the browser adds to its home folder's path for its socket, whose path may
// have maxSocket bytes.
const (
	socket    = "/org.chromium.Chromium.XXXXXX/SingletonSocket"
	maxSocket = 107
)

// newHome makes the browser's home folder.
func newHome() (home string, remove func() error, err error) {
	home, remove, err = scratch.Dir("browser-")
	if err != nil {
		return "", nil, err
	}
	if over := len(home) + len(socket) - maxSocket; over > 0 {
		return "", nil, errors.Join(fmt.Errorf("the path %s is %d bytes too long for the browser's socket: let TMPDIR name a folder with a shorter path, such as /tmp", home, over), remove())
	}
	return home, remove, nil
}

// Start starts a browser, which lasts until Close or the end of ctx.
func Start(ctx context.Context, cfg Config) (*Browser, error) {
	r := &Browser{cfg: cfg, within: ctx, parts: map[string]Asset{}, timeout: renderTimeout}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}

// start starts the process.
func (r *Browser) start() error {
	cfg := r.cfg
	at, err := Find(cfg.Unsandboxed)
	if err != nil {
		return err
	}
	home, remove, err := newHome()
	if err != nil {
		return fmt.Errorf("making the browser's home folder: %w", err)
	}
	alloc, endAlloc := chromedp.NewExecAllocator(r.within, options(at, home, cfg.UserAgent, cfg.Unsandboxed)...)
	browser, endBrowser := chromedp.NewContext(alloc)
	end := func() {
		endBrowser()
		endAlloc()
		if err := remove(); err != nil {
			cfg.Log.Warn("browser_home_stays", "error", err.Error())
		}
	}
	if err := chromedp.Do(browser); err != nil {
		end()
		return fmt.Errorf("starting %s: %w; if it says that no sandbox is usable, --allow-unsandboxed-browser runs it without one", at, err)
	}
	r.ctx, r.end = browser, end
	return nil
}

// Close ends the browser and removes what it wrote.
func (r *Browser) Close() {
	r.starting.Lock()
	defer r.starting.Unlock()
	r.closed = true
	r.end()
}

// alive returns the process's context. A process that has ended is started again.
func (r *Browser) alive() (context.Context, error) {
	r.starting.Lock()
	defer r.starting.Unlock()
	if !r.closed && r.within.Err() == nil && ended(r.ctx) {
		r.end()
		r.end = func() {}
		if err := r.start(); err != nil {
			return nil, err
		}
	}
	return r.ctx, nil
}

func ended(process context.Context) bool {
	select {
	case <-chromedp.FromContext(process).Browser.LostConnection:
		return true
	default:
		return false
	}
}

// maxDeaths is how many times the process may end while it renders a page.
const maxDeaths = 2

// Until says when a page is complete. The zero value: once nothing was requested for half a second.
type Until struct {
	// Shown, if set, reports whether the HTML has what the page is for. Until then, and for at most For, silence is no end; after For
	// a page that has it need not be silent.
	Shown func(html string) bool
	For   time.Duration
}

// Render returns a page's HTML after its scripts have run.
func (r *Browser) Render(ctx context.Context, u *url.URL, body []byte, contentType string, until Until) (string, error) {
	for deaths := 1; ; deaths++ {
		process, err := r.alive()
		if err != nil {
			return "", fmt.Errorf("rendering %s: %w", u, err)
		}
		out, err := r.render(ctx, process, u, body, contentType, until)
		if err == nil || ctx.Err() != nil || !ended(process) {
			return out, err
		}
		if deaths == maxDeaths {
			return "", fmt.Errorf("rendering %s: the browser ended %d times while it did: too little memory, or a fault of the browser", u, deaths)
		}
	}
}

func (r *Browser) render(ctx, process context.Context, u *url.URL, body []byte, contentType string, until Until) (string, error) {
	tab, end := chromedp.NewContext(process)
	defer end()
	defer context.AfterFunc(ctx, end)()

	var (
		asked   sync.WaitGroup
		pending atomic.Int64
		last    atomic.Int64 // time of the last request or answer, in nanoseconds
		n       atomic.Int64
		failure atomic.Pointer[error]
	)
	touch := func() { last.Store(time.Now().UnixNano()) }
	touch()
	err := chromedp.Listen(tab, func(ev any) {
		if _, ok := ev.(*cdpage.EventJavascriptDialogOpening); ok {
			asked.Go(func() { // the page waits for an answer; it may have ended meanwhile
				_, _ = chromedp.Call(tab, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{})
			})
			return
		}
		paused, ok := ev.(*fetch.EventRequestPaused)
		if !ok {
			return
		}
		pending.Add(1)
		touch()
		asked.Go(func() {
			defer func() { touch(); pending.Add(-1) }()
			if err := r.answer(tab, u, paused, n.Add(1), Asset{http.StatusOK, contentType, body}); err != nil {
				failure.CompareAndSwap(nil, &err)
			}
		})
	})
	if err != nil {
		return "", fmt.Errorf("rendering %s: %w", u, err)
	}
	within, cancel := context.WithTimeout(tab, r.timeout) // made after the tab's first use, because otherwise its end would end the browser
	defer cancel()
	out := ""
	if _, err = chromedp.Call(within, fetch.Enable, fetch.EnableParams{}); err == nil {
		err = chromedp.Do(within, chromedp.Navigate(u.String()))
	}
	if err == nil {
		out, err = r.complete(within, until, func() bool { return pending.Load() == 0 && time.Since(time.Unix(0, last.Load())) >= renderQuiet })
	}
	end()
	asked.Wait()
	if errors.Is(within.Err(), context.DeadlineExceeded) && err != nil {
		err = fmt.Errorf("its scripts and their requests have not ended within %v", r.timeout)
	}
	if p := failure.Load(); p != nil {
		err = *p // an error for the whole crawl: it was stopped, or its budget is used up
	}
	if err != nil {
		return "", fmt.Errorf("rendering %s: %w", u, err)
	}
	return "<!doctype html>" + out, nil
}

// complete returns the tab's HTML once it is complete.
func (r *Browser) complete(tab context.Context, until Until, silent func() bool) (html string, err error) {
	end := time.Now().Add(until.For)
	for pause := renderQuiet / 10; err == nil; err = wait(tab, pause) {
		quiet, over := silent(), time.Now().After(end)
		if !quiet && (!over || until.Shown == nil) {
			continue
		}
		if html, err = r.html(tab); err != nil || until.Shown == nil || until.Shown(html) || quiet && over {
			return html, err
		}
		pause = min(2*pause, 2*time.Second)
	}
	return "", err
}

func (r *Browser) html(tab context.Context) (string, error) {
	units, err := chromedp.Run(tab, chromedp.Evaluate[int]("document.documentElement.outerHTML.length")) // of UTF-16; too long a page is not copied from the browser
	out := ""
	if err == nil && units <= r.cfg.MaxPage {
		out, err = chromedp.Run(tab, chromedp.OuterHTML(chromedp.CSS("html")))
	}
	if err == nil && max(units, len(out)) > r.cfg.MaxPage {
		err = fmt.Errorf("longer than %d MB once its scripts have run", r.cfg.MaxPage>>20)
	}
	return out, err
}

// answer answers a request of the page at u, the number-th. The error ends its rendering.
func (r *Browser) answer(tab context.Context, u *url.URL, asked *fetch.EventRequestPaused, number int64, page Asset) (err error) {
	answer, refused := page, number > maxParts
	isPage := asked.ResourceType == network.ResourceTypeDocument && (number == 1 || asked.Request.URL == u.String()) // the first one is, however the browser writes its address
	if !refused && !isPage {
		answer, refused, err = r.part(tab, u, asked)
	}
	var told error
	if refused {
		_, told = chromedp.Call(tab, fetch.FailRequest, fetch.FailRequestParams{RequestID: asked.RequestID, ErrorReason: network.ErrorReasonBlockedByClient})
	} else {
		_, told = chromedp.Call(tab, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: asked.RequestID, ResponseCode: int64(answer.Status),
			ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: answer.Kind}}, Body: answer.Body})
	}
	if err == nil && tab.Err() == nil {
		err = told
	}
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// part answers a request of a page for another resource. The error ends its rendering.
func (r *Browser) part(ctx context.Context, page *url.URL, asked *fetch.EventRequestPaused) (answer Asset, refused bool, err error) {
	switch asked.ResourceType {
	case network.ResourceTypeScript, network.ResourceTypeXHR, network.ResourceTypeFetch:
	default:
		return Asset{}, true, nil // it only changes the page's appearance
	}
	u, perr := url.Parse(asked.Request.URL)
	if perr != nil || asked.Request.Method != http.MethodGet {
		return Asset{}, true, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.parts[u.String()]; ok {
		return p, false, nil
	}
	p, refused, err := r.cfg.Part(ctx, page, u)
	if err != nil || refused {
		return Asset{}, true, err
	}
	if r.bytes += len(p.Body); r.bytes <= maxPartBytes {
		r.parts[u.String()] = p
	}
	return p, false, nil
}
