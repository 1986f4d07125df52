package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

const (
	maxBody = 64 << 10
	// atOnce requests are worked on; more wait, at most maxWait.
	atOnce     = 64
	maxWait    = 20 * time.Second
	maxStreams = 2000
	// Those who are not signed in yet have few places of their own, and must be quick.
	strangersAtOnce   = 8
	strangersPatience = 2 * time.Second
	strangersBody     = 5 * time.Second
	// wrongTokenTakes is how long the answer to a wrong token takes. It holds no place.
	wrongTokenTakes = time.Second
)

// open paths need no token: probes have none, the page to sign in neither.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/login": true, "/style.css": true, "/live.js": true}

// placeless requests wait for nobody: probes and files are answered from
// memory, and a page that waits for events does nothing meanwhile.
func placeless(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (open[r.URL.Path] || r.URL.Path == "/events")
}

// headers of every answer. Scripts and styles come from this server's own
// files only.
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

// protect is everything around the handlers.
func (s *Server) protect(h http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, http.StatusForbidden, "another site sent this; do it from this server's own pages, or from a program that sends no Origin header")
	}))
	h = s.bounded(h)
	h = cross.Handler(h)
	h = s.authorized(h)
	h = s.addressed(h)
	h = s.recovered(h)
	return s.metrics.measured(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		h.ServeHTTP(w, r)
	}))
}

// recovered answers for a handler that panicked, and lets the server live.
func (s *Server) recovered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.log.Error("handler_panicked", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.refuse(w, r, http.StatusInternalServerError, troubleText)
		}()
		h.ServeHTTP(w, r)
	})
}

// addressed refuses, where no token guards the server, a request that names it
// by another name than loopback's: a web page whose name was made to lead here
// (DNS rebinding) would else be of one origin with the server.
func (s *Server) addressed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if s.local && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			s.refuse(w, r, http.StatusMisdirectedRequest, "this server answers to 127.0.0.1 and localhost only; set "+TokenVariable+" to serve other names")
			return
		}
		h.ServeHTTP(w, r)
	})
}

const sessionCookie = "seed_session"

// equal takes the same time whatever the difference.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// knows says whether a request bears the token or a session of it, and whether
// it bears a token that is wrong.
func (s *Server) knows(r *http.Request) (known, wrong bool) {
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		known = equal(given, s.token)
		return known, !known
	}
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return false, false
	}
	_, known = s.sessions.read(c.Value, s.now())
	return known, false
}

// wrongToken counts a wrong token and lets its sender wait. way is how it came.
func (s *Server) wrongToken(r *http.Request, way string) {
	s.metrics.wrong.WithLabelValues(way).Inc()
	if n := s.wrong.since(s.now()); n > 0 {
		s.log.Warn("wrong_token", "way", way, "from", r.RemoteAddr, "count", n)
	}
	wait := time.NewTimer(s.wrongTakes)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-r.Context().Done():
	}
}

// tries counts what is told of once a minute.
type tries struct {
	mu     sync.Mutex
	n      int
	toldAt time.Time
}

// since counts one more and gives how many there were since it last told of
// them, 0 when that was less than a minute ago.
func (t *tries) since(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	if now.Sub(t.toldAt) < time.Minute {
		return 0
	}
	n := t.n
	t.n, t.toldAt = 0, now
	return n
}

// authorized wants the token, where there is one.
func (s *Server) authorized(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.token == "" || open[r.URL.Path] {
			h.ServeHTTP(w, r)
			return
		}
		known, wrong := s.knows(r)
		if wrong {
			s.wrongToken(r, "header")
		}
		switch {
		case known:
			h.ServeHTTP(w, r)
		case wantsPage(r) && r.Method == http.MethodGet:
			http.Redirect(w, r, "/login", http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="seed-engine"`)
			s.refuse(w, r, http.StatusUnauthorized, "send the header Authorization: Bearer TOKEN, with the server's token")
		}
	})
}

// signIn gives a browser a session for the token.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, asRefusal(err))
		return
	}
	if s.token == "" || !equal(r.PostForm.Get("token"), s.token) {
		if s.token != "" {
			s.wrongToken(r, "form")
		}
		s.pages.write(w, r, http.StatusUnauthorized, "login", "That is not the token.")
		return
	}
	s.setCookie(w, r, s.sessions.begin(s.now()), int(sessionAge.Seconds()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", MaxAge: maxAge})
}

// signOut ends the session of a browser, or all sessions of the server.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, asRefusal(err))
		return
	}
	var err error
	if r.PostForm.Get("everywhere") != "" {
		err = s.sessions.endAll(r.Context(), s.now())
	} else if c, cerr := r.Cookie(sessionCookie); cerr == nil {
		err = s.sessions.end(r.Context(), c.Value, s.now())
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// readBody reads a request's body before it takes a place, so that a sender who
// takes its time holds nothing that others wait for.
func readBody(w http.ResponseWriter, r *http.Request, within time.Duration) error {
	c := http.NewResponseController(w)
	if r.Body != nil && r.Body != http.NoBody {
		_ = c.SetReadDeadline(time.Now().Add(within)) // a test's recorder has none
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	_ = c.SetReadDeadline(time.Time{}) // it would end long answers, which hold nothing to read
	return nil
}

// bounded keeps bodies small and the number of requests at work bounded.
func (s *Server) bounded(h http.Handler) http.Handler {
	places, strangers := make(chan struct{}, atOnce), make(chan struct{}, strangersAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			w.Header().Set("Connection", "close")
			s.refuse(w, r, http.StatusRequestEntityTooLarge, tooLargeText)
			return
		}
		if placeless(r) {
			if r.Body == nil || r.Body == http.NoBody {
				_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // event streams stay open for hours
			}
			r.Body = http.NoBody
			h.ServeHTTP(w, r)
			return
		}
		mine, longest, within := places, maxWait, slowBody
		if open[r.URL.Path] {
			mine, longest, within = strangers, strangersPatience, s.strangersBody
		}
		if err := readBody(w, r, within); err != nil {
			s.fail(w, r, &bodyError{err})
			return
		}
		wait := time.NewTimer(longest)
		defer wait.Stop()
		select {
		case mine <- struct{}{}:
			defer func() { <-mine }()
			h.ServeHTTP(w, r)
		case <-wait.C:
			w.Header().Set("Retry-After", "5")
			s.refuse(w, r, http.StatusServiceUnavailable, "too many requests at once; try again in a few seconds")
		case <-r.Context().Done():
		}
	})
}

// wantsPage tells a browser from a program.
func wantsPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// safe is a text without what could be a secret, for messages that name what a
// stranger sent.
func safe(text string) string { return ledger.Redact(strings.ToValidUTF8(text, "")) }

// formValues are a form's fields that were filled in.
func formValues(v url.Values, j job) map[string]string {
	out := map[string]string{}
	for _, f := range j.Fields {
		if text := strings.TrimSpace(v.Get(f.Name)); text != "" {
			out[f.Name] = text
		}
	}
	return out
}

// bodyError is a request's body that did not come as announced.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// asRefusal is what a form's sender is told when it cannot be read: that it
// was too large, or that it is no form.
func asRefusal(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return refuse("that form cannot be read")
}
