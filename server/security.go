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

	"github.com/newsfork/seed-engine/server/known"
)

const (
	maxBody = 64 << 10
	// maxConcurrent requests are handled at a time; more wait, at most maxWait.
	maxConcurrent = 64
	maxWait       = 20 * time.Second
	maxStreams    = 2000
	// Requests to the public paths that are limited (the login form) have few slots of
	// their own and shorter timeouts, so that strangers cannot use up the others.
	maxAnonymous         = 8
	maxAnonymousWait     = 2 * time.Second
	anonymousBodyTimeout = 5 * time.Second
	// wrongTokenDelay is the delay of the answer to a wrong token.
	wrongTokenDelay = time.Second
)

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

// protect wraps the handlers with all checks and limits.
func (s *Server) protect(h http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, http.StatusForbidden, "this request comes from another site; use this server's own pages, or a program that sends no Origin header")
	}))
	h = s.limit(h)
	h = cross.Handler(h)
	h = s.requireToken(h)
	h = s.checkHost(h)
	h = s.recoverPanics(h)
	return s.metrics.measure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		h.ServeHTTP(w, r)
	}))
}

// recoverPanics answers with status 500 if a handler panics.
func (s *Server) recoverPanics(h http.Handler) http.Handler {
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
			s.refuse(w, r, http.StatusInternalServerError, internalErrorText)
		}()
		h.ServeHTTP(w, r)
	})
}

// checkHost refuses, on a server without a token, requests whose Host is not a
// loopback name. Otherwise a web page whose name resolves to this machine (DNS
// rebinding) would have the same origin as the server.
func (s *Server) checkHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if s.local && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			s.refuse(w, r, http.StatusMisdirectedRequest,
				"this server answers requests to 127.0.0.1 and localhost only; set "+known.TokenVariable+" to serve other names")
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
func (s *Server) authenticate(r *http.Request) (as role, wrong bool) {
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		as = s.sessions.roleOf(given)
		return as, as == ""
	}
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return "", false
	}
	if _, as, ok := s.sessions.read(c.Value, s.now()); ok {
		return as, false
	}
	return "", false
}

// wrongToken counts a wrong token, logs it and delays the answer. way is header or
// form.
func (s *Server) wrongToken(r *http.Request, way string) {
	s.metrics.wrongTokens.WithLabelValues(way).Inc()
	if n := s.wrongTokens.add(s.now()); n > 0 {
		s.log.Warn("wrong_token", "way", way, "from", r.RemoteAddr, "count", n)
	}
	wait := time.NewTimer(s.wrongTokenDelay)
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
func (s *Server) requireToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.token == "" || publicPaths[r.URL.Path] || s.config.Bot != nil && r.URL.Path == botPath {
			h.ServeHTTP(w, withSender(r, ""))
			return
		}
		as, wrong := s.authenticate(r)
		if wrong {
			s.wrongToken(r, "header")
		}
		switch {
		case as != "" && !permitted(r, as):
			s.fail(w, r, mayNot)
		case as != "":
			s.renew(w, r)
			h.ServeHTTP(w, withSender(r, as))
		case wantsPage(r) && r.Method == http.MethodGet:
			http.Redirect(w, r, "/login", http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="seed-engine"`)
			if r.ContentLength != 0 { // a connection that stays open is answered when its body is there, if it ever comes
				w.Header().Set("Connection", "close")
			}
			s.refuse(w, r, http.StatusUnauthorized, "send the header Authorization: Bearer TOKEN, with the server's token")
		}
	})
}

// signIn starts a session if the form has the token.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, formError(err))
		return
	}
	as := s.sessions.roleOf(r.PostForm.Get("token"))
	if as == "" {
		if s.token != "" {
			s.wrongToken(r, "form")
		}
		s.pages.write(w, r, http.StatusUnauthorized, "login", "That is not the token.")
		return
	}
	if err := s.audited(withSender(r, as).Context(), "sign_in", string(as), ""); err != nil {
		s.fail(w, r, err)
		return
	}
	s.setCookie(w, r, s.sessions.begin(as, s.now()), int(sessionAge.Seconds()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", MaxAge: maxAge})
}

// signOut ends the session of a browser, or all sessions of the server.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, formError(err))
		return
	}
	var err error
	if everywhere := r.PostForm.Get("everywhere") != ""; everywhere && senderIn(r.Context()).role == reader {
		err = mayNot
	} else if everywhere {
		if err = s.audited(r.Context(), "sign_out_all", "all browsers", ""); err == nil {
			err = s.sessions.endAll(r.Context(), s.now())
		}
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

// readBody reads a request's body before the request gets a slot, so that a slow
// sender does not use a slot.
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
	_ = c.SetReadDeadline(time.Time{}) // it would also end long answers
	return nil
}

// limit limits the size of bodies and the number of requests that are handled at a
// time.
func (s *Server) limit(h http.Handler) http.Handler {
	known, anonymous := make(chan struct{}, maxConcurrent), make(chan struct{}, maxAnonymous)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			w.Header().Set("Connection", "close")
			s.refuse(w, r, http.StatusRequestEntityTooLarge, tooLargeText)
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
		slots, longest, within := known, maxWait, bodyTimeout
		if publicPaths[r.URL.Path] {
			slots, longest, within = anonymous, maxAnonymousWait, s.anonymousBodyTimeout
		}
		if err := readBody(w, r, within); err != nil {
			s.fail(w, r, &bodyError{err})
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
			s.refuse(w, r, http.StatusServiceUnavailable, "too many requests at once; try again in a few seconds")
		case <-r.Context().Done():
		}
	})
}

// wantsPage reports whether a request comes from a browser, not a program.
func wantsPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// formValues are the fields of a form that are not empty.
func formValues(v url.Values, j known.Job) map[string]string {
	out := map[string]string{}
	for _, f := range j.Fields() {
		if text := strings.TrimSpace(v.Get(f.Field())); text != "" {
			out[f.Field()] = text
		}
	}
	return out
}

// bodyError is an error of reading a request's body.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// formError is the error for the sender of a form that cannot be parsed.
func formError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return known.Refuse("that form cannot be read")
}
