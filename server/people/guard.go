// Package people decides who may ask the server for what: tokens, sessions of browsers, roles, limits of requests, and a line in the
// audit for each thing that somebody does.
//
// No promise: see docs/library.md.
package people

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
)

const (
	// BodyTimeout is how long the body of a request may take.
	BodyTimeout = 15 * time.Second

	maxBody = 64 << 10
	// maxConcurrent requests are handled at a time; more wait, at most maxWait.
	maxConcurrent = 64
	maxWait       = 20 * time.Second
	// Requests to the public paths that are limited (the login form) have few slots of
	// their own and shorter timeouts, so that strangers cannot use up the others.
	maxAnonymous     = 8
	maxAnonymousWait = 2 * time.Second
)

// Guard stands before the handlers of a server.
type Guard struct {
	Token, ReadToken string // of those who may do all, and of those who may look; "" for none
	Local            bool   // on loopback without a token
	Store            store.Store
	Log              *slog.Logger
	Now              func() time.Time
	Audit            *known.Audit
	Public           func(path string) bool                          // paths that need no token, next to its own
	Fail             func(http.ResponseWriter, *http.Request, error) // answers with what is wrong
	SignInPage       func(w http.ResponseWriter, r *http.Request, code int, message string)
	Wrong            func(way string) // counts a wrong token: header or form
	WrongDelay       time.Duration    // of the answer to a wrong token
	StrangersBody    time.Duration    // how long the body of a request without a token may take

	wrongTokens wrongTokenCounter

	mu        sync.Mutex
	ended     map[string]bool // sessions
	notBefore time.Time       // sessions that began until then have ended
	nextAt    time.Time       // when to read which sessions were ended
}

// publicPaths need no token: probes have none, and the login page asks for it.
var publicPaths = map[string]bool{"/healthz": true, "/readyz": true, "/login": true, "/style.css": true, "/live.js": true, "/favicon.svg": true}

// unlimited requests need no slot: probes and files are answered from memory, and an
// event stream mostly waits.
func unlimited(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (publicPaths[r.URL.Path] || r.URL.Path == "/events")
}

// headers are set in every answer. They allow scripts and styles only from this
// server's own files.
var headers = map[string]string{
	"Content-Security-Policy":      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-store",
}

// Protect wraps the handlers with all checks and limits.
func (g *Guard) Protect(h http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.Fail(w, r, known.Answer(http.StatusForbidden,
			"this request comes from another site; use this server's own pages, or a program that sends no Origin header"))
	}))
	h = g.recoverPanics(g.checkHost(g.requireToken(cross.Handler(g.limit(h)))))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		h.ServeHTTP(w, r)
	})
}

// recoverPanics answers with status 500 if a handler panics.
func (g *Guard) recoverPanics(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			g.Log.Error("handler_panicked", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			g.Fail(w, r, known.ErrInternal)
		}()
		h.ServeHTTP(w, r)
	})
}

// checkHost refuses, on a server without a token, requests whose Host is not a
// loopback name. Otherwise a web page whose name resolves to this machine (DNS
// rebinding) would have the same origin as the server.
func (g *Guard) checkHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if g.Local && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			g.Fail(w, r, known.Answer(http.StatusMisdirectedRequest,
				"this server answers requests to 127.0.0.1 and localhost only; set "+known.TokenVariable+" to serve other names"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

const sessionCookie = "seed_session"

// equal compares in constant time.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// authenticate returns the role that a request's token or session gives, "" for none,
// and whether it has a wrong token.
func (g *Guard) authenticate(r *http.Request) (as role, wrong bool) {
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		as = g.roleOf(given)
		return as, as == ""
	}
	if c, err := r.Cookie(sessionCookie); err == nil {
		_, as = g.read(c.Value, g.Now())
	}
	return as, false
}

// wrongToken counts a wrong token, logs it and delays the answer. way is header or
// form.
func (g *Guard) wrongToken(r *http.Request, way string) {
	g.Wrong(way)
	if n := g.wrongTokens.add(g.Now()); n > 0 {
		g.Log.Warn("wrong_token", "way", way, "from", r.RemoteAddr, "count", n)
	}
	wait := time.NewTimer(g.WrongDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-r.Context().Done():
	}
}

// wrongTokenCounter counts wrong tokens, to log them at most once a minute.
type wrongTokenCounter struct {
	mu       sync.Mutex
	n        int
	loggedAt time.Time
}

// add counts a wrong token. It returns how many there were since the last log line,
// 0 if that was less than a minute ago.
func (t *wrongTokenCounter) add(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	if now.Sub(t.loggedAt) < time.Minute {
		return 0
	}
	n := t.n
	t.n, t.loggedAt = 0, now
	return n
}

// requireToken refuses requests without the token, if the server has one.
func (g *Guard) requireToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.Token == "" || publicPaths[r.URL.Path] || g.Public(r.URL.Path) {
			h.ServeHTTP(w, withSender(r, ""))
			return
		}
		as, wrong := g.authenticate(r)
		if wrong {
			g.wrongToken(r, "header")
		}
		switch {
		case as != "" && !permitted(r, as):
			g.Fail(w, r, mayNot)
		case as != "":
			g.renew(w, r)
			h.ServeHTTP(w, withSender(r, as))
		case known.WantsPage(r) && r.Method == http.MethodGet:
			http.Redirect(w, r, "/login", http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="seed-engine"`)
			if r.ContentLength != 0 { // a connection that stays open is answered when its body is there, if it ever comes
				w.Header().Set("Connection", "close")
			}
			g.Fail(w, r, known.Answer(http.StatusUnauthorized, "send the header Authorization: Bearer TOKEN, with the server's token"))
		}
	})
}

// SignIn starts a session if the form has the token.
func (g *Guard) SignIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		g.Fail(w, r, known.ErrForm)
		return
	}
	as := g.roleOf(r.PostForm.Get("token"))
	if as == "" {
		if g.Token != "" {
			g.wrongToken(r, "form")
		}
		g.SignInPage(w, r, http.StatusUnauthorized, "That is not the token.")
		return
	}
	if err := g.Note(withSender(r, as).Context(), "sign_in", string(as), ""); err != nil {
		g.Fail(w, r, err)
		return
	}
	now := g.Now()
	g.setCookie(w, r, g.cookie(session{rand.Text(), g.after(now), now}, as), int(sessionAge.Seconds()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (g *Guard) setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", MaxAge: maxAge})
}

// SignOut ends the session of a browser, or all sessions of the server.
func (g *Guard) SignOut(w http.ResponseWriter, r *http.Request) {
	err := r.ParseForm()
	c, noCookie := r.Cookie(sessionCookie)
	switch everywhere := r.PostForm.Get("everywhere") != ""; {
	case err != nil:
		err = known.ErrForm
	case everywhere && !MayAct(r):
		err = mayNot
	case everywhere:
		if err = g.Note(r.Context(), "sign_out_all", "all browsers", ""); err == nil {
			err = g.endAll(r.Context(), g.Now())
		}
	case noCookie == nil:
		err = g.end(r.Context(), c.Value, g.Now())
	}
	if err != nil {
		g.Fail(w, r, err)
		return
	}
	g.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// readBody reads a request's body before the request gets a slot, so that a slow
// sender does not use a slot.
func readBody(w http.ResponseWriter, r *http.Request, within time.Duration) error {
	c := http.NewResponseController(w)
	if r.Body != nil && r.Body != http.NoBody {
		_ = c.SetReadDeadline(time.Now().Add(within)) // a test's recorder has none
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			return errTooLarge
		case errors.Is(err, os.ErrDeadlineExceeded):
			return known.Answer(http.StatusRequestTimeout, "the body did not come in time")
		case err != nil:
			return known.Answer(http.StatusBadRequest, "the body ended too early")
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	_ = c.SetReadDeadline(time.Time{}) // it would also end long answers
	return nil
}

var errTooLarge = known.Answer(http.StatusRequestEntityTooLarge, "the body is larger than 64 KiB")

// limit limits the size of bodies and the number of requests that are handled at a
// time.
func (g *Guard) limit(h http.Handler) http.Handler {
	signedIn, strangers := make(chan struct{}, maxConcurrent), make(chan struct{}, maxAnonymous)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			w.Header().Set("Connection", "close")
			g.Fail(w, r, errTooLarge)
			return
		}
		if unlimited(r) {
			if r.Body == nil || r.Body == http.NoBody {
				_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // event streams stay open for hours
			}
			r.Body = http.NoBody
			h.ServeHTTP(w, r)
			return
		}
		slots, longest, within := signedIn, maxWait, BodyTimeout
		if publicPaths[r.URL.Path] {
			slots, longest, within = strangers, maxAnonymousWait, g.StrangersBody
		}
		if err := readBody(w, r, within); err != nil {
			w.Header().Set("Connection", "close")
			g.Fail(w, r, err)
			return
		}
		wait := time.NewTimer(longest)
		defer wait.Stop()
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			h.ServeHTTP(w, r)
		case <-wait.C:
			w.Header().Set("Retry-After", "5")
			g.Fail(w, r, known.Answer(http.StatusServiceUnavailable, "too many requests at once; try again in a few seconds"))
		case <-r.Context().Done():
		}
	})
}
