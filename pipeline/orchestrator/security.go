package orchestrator

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

const (
	maxBody = 64 << 10
	// atOnce requests are worked on; more wait, at most patience.
	atOnce     = 64
	patience   = 20 * time.Second
	maxStreams = 2000
)

// open paths need no token: probes have none, the page to sign in neither.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/login": true, "/style.css": true, "/live.js": true}

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

// session is what the cookie of one who signed in holds: it proves the token
// and is not it.
func (s *Server) session() string {
	m := hmac.New(sha256.New, []byte(s.token))
	m.Write([]byte("dashboard session"))
	return hex.EncodeToString(m.Sum(nil))
}

// equal takes the same time whatever the difference.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func (s *Server) knows(r *http.Request) bool {
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return equal(given, s.token)
	}
	c, err := r.Cookie(sessionCookie)
	return err == nil && equal(c.Value, s.session())
}

// authorized wants the token, where there is one.
func (s *Server) authorized(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.token == "" || open[r.URL.Path] || s.knows(r):
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
		s.fail(w, r, err)
		return
	}
	if s.token == "" || !equal(r.PostForm.Get("token"), s.token) {
		s.pages.write(w, r, http.StatusUnauthorized, "login", "That is not the token.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: s.session(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", MaxAge: 30 * 24 * 60 * 60})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// bounded keeps bodies small and the number of requests at work bounded.
// Those who wait for events hold no place.
func (s *Server) bounded(h http.Handler) http.Handler {
	places := make(chan struct{}, atOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			w.Header().Set("Connection", "close")
			s.refuse(w, r, http.StatusRequestEntityTooLarge, tooLargeText)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if r.URL.Path == "/events" {
			h.ServeHTTP(w, r)
			return
		}
		wait := time.NewTimer(patience)
		defer wait.Stop()
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
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

// asRefusal is what a form's sender is told when it cannot be read: that it
// was too large, or that it is no form.
func asRefusal(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return refuse("that form cannot be read")
}
