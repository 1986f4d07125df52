package docs

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

const (
	renderTimeout = 2 * time.Minute // including the pauses between the page's requests
	renderQuiet   = 500 * time.Millisecond
	maxParts      = 64       // requests of one page
	maxPartBytes  = 32 << 20 // of a provider's scripts and data, kept in memory
)

// ErrNoBrowser means that a policy needs rendering and there is no browser.
var ErrNoBrowser = errors.New("spa_rendering: true needs Chromium or Chrome in PATH; install it (apt-get install chromium) or turn spa_rendering off")

var errRenderedLarge = errors.New("longer than 5 MB once its scripts have run")

// ErrSandbox means that the browser would run strangers' scripts as root without a
// sandbox.
var ErrSandbox = errors.New("spa_rendering: true runs the scripts of strangers' pages, and Chromium has no sandbox as root: run as another user, or allow it by --allow-unsandboxed-browser")

// Browser finds the browser for rendering pages, or returns ErrNoBrowser
// or ErrSandbox.
func Browser(unsandboxed bool) (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if at, err := exec.LookPath(name); err == nil {
			return at, sandboxed(os.Geteuid(), unsandboxed)
		}
	}
	return "", ErrNoBrowser
}

func sandboxed(uid int, unsandboxed bool) error {
	if uid == 0 && !unsandboxed {
		return ErrSandbox
	}
	return nil
}

// browserOptions start the browser at a path with its own home folder and environment.
// The process's environment has keys, and a fault of the browser must not give them to
// a page's scripts.
func browserOptions(at, home string, unsandboxed bool) []chromedp.ExecAllocatorOption {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(at), chromedp.UserAgent(UserAgent),
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
		options = append(options, chromedp.NoSandbox)
	}
	return options
}

// renderer is a headless browser without a network. Every request of a page is
// intercepted. A GET for a script or data of the page's own host is answered through
// the crawl's polite client; everything else fails.
type renderer struct {
	c      *crawl
	ctx    context.Context // of the browser
	cancel context.CancelFunc

	mu    sync.Mutex
	parts map[string]asset
	bytes int
}

// asset is the answer to a request of a page.
type asset struct {
	status int
	kind   string
	body   []byte
}

func newRenderer(ctx context.Context, c *crawl) (*renderer, error) {
	at, err := Browser(c.cfg.UnsandboxedBrowser)
	if err != nil {
		return nil, err
	}
	home, remove, err := scratch.Dir("browser-") // short: the path of the browser's socket may have 107 bytes
	if err != nil {
		return nil, fmt.Errorf("making the browser's home folder: %w", err)
	}
	alloc, endAlloc := chromedp.NewExecAllocator(ctx, browserOptions(at, home, c.cfg.UnsandboxedBrowser)...)
	browser, endBrowser := chromedp.NewContext(alloc)
	end := func() {
		endBrowser()
		endAlloc()
		if err := remove(); err != nil {
			c.w.Log.Warn("browser_home_stays", "error", err.Error())
		}
	}
	if err := chromedp.Do(browser); err != nil {
		end()
		return nil, fmt.Errorf("starting %s: %w; if it says that no sandbox is usable, --allow-unsandboxed-browser runs it without one", at, err)
	}
	return &renderer{c: c, ctx: browser, cancel: end, parts: map[string]asset{}}, nil
}

// render returns a page's HTML after its scripts have run.
func (r *renderer) render(ctx context.Context, u *url.URL, body []byte, contentType string) (string, error) {
	tab, end := chromedp.NewContext(r.ctx)
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
			var answer asset
			refused := n.Add(1) > maxParts
			switch {
			case refused:
			case paused.ResourceType == network.ResourceTypeDocument && paused.Request.URL == u.String():
				answer = asset{http.StatusOK, contentType, body}
			default:
				var err error
				if answer, refused, err = r.part(tab, u, paused); err != nil {
					failure.CompareAndSwap(nil, &err)
					refused = true
				}
			}
			var err error
			if refused {
				_, err = chromedp.Call(tab, fetch.FailRequest, fetch.FailRequestParams{RequestID: paused.RequestID, ErrorReason: network.ErrorReasonBlockedByClient})
			} else {
				_, err = chromedp.Call(tab, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: paused.RequestID, ResponseCode: int64(answer.status),
					ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: answer.kind}}, Body: answer.body})
			}
			if err != nil && tab.Err() == nil {
				failure.CompareAndSwap(nil, &err)
			}
		})
	})
	if err != nil {
		return "", fmt.Errorf("rendering %s: %w", u, err)
	}
	within, cancel := context.WithTimeout(tab, renderTimeout) // made after the tab's first use, because otherwise its end would end the browser
	defer cancel()
	out := ""
	if _, err = chromedp.Call(within, fetch.Enable, fetch.EnableParams{}); err == nil {
		err = chromedp.Do(within, chromedp.Navigate(u.String()))
	}
	for err == nil && (pending.Load() > 0 || time.Since(time.Unix(0, last.Load())) < renderQuiet) {
		err = polite.SystemClock.Sleep(within, 50*time.Millisecond)
	}
	if err == nil {
		var units int // of UTF-16; too long a page is not copied from the browser
		if units, err = chromedp.Run(within, chromedp.Evaluate[int]("document.documentElement.outerHTML.length")); units > maxPage {
			err = errRenderedLarge
		}
	}
	if err == nil {
		out, err = chromedp.Run(within, chromedp.OuterHTML(chromedp.CSS("html")))
	}
	if len(out) > maxPage {
		err = errRenderedLarge
	}
	end()
	asked.Wait()
	if p := failure.Load(); p != nil {
		err = *p // an error for the whole crawl: it was stopped, or its budget is used up
	}
	if err != nil {
		return "", fmt.Errorf("rendering %s: %w", u, err)
	}
	return "<!doctype html>" + out, nil
}

// part answers a request of a page for another resource. The error ends the crawl.
func (r *renderer) part(ctx context.Context, page *url.URL, asked *fetch.EventRequestPaused) (answer asset, refused bool, err error) {
	switch asked.ResourceType {
	case network.ResourceTypeScript, network.ResourceTypeXHR, network.ResourceTypeFetch:
	default:
		return asset{}, true, nil // it only changes the page's appearance
	}
	u, perr := url.Parse(asked.Request.URL)
	if perr != nil || asked.Request.Method != http.MethodGet || u.Scheme != page.Scheme || canonical.Host(u) != r.c.host {
		return asset{}, true, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.parts[u.String()]; ok {
		return p, false, nil
	}
	resp, err := r.c.client.Get(ctx, polite.Request{URL: u.String(), Accept: "*/*", Header: http.Header{"Accept-Language": {acceptLanguage}}, Timeout: pageTimeout, MaxBytes: maxPage, MaxRedirects: -1, Once: true})
	err = unreachable(err)
	var failure *web.Error
	var no *polite.DisallowedError
	switch {
	case err == nil && !resp.Truncated && resp.Status/100 == 2:
	case err == nil, errors.As(err, &no), r.c.failsPageOnly(u, err), errors.As(err, &failure):
		return asset{}, true, nil // the page works without it, as in a reader's browser
	default:
		return asset{}, true, err
	}
	p := asset{resp.Status, resp.Header.Get("Content-Type"), resp.Body}
	if r.bytes += len(p.body); r.bytes <= maxPartBytes {
		r.parts[u.String()] = p
	}
	return p, false, nil
}
