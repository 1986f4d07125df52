package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// role is what the sender of a request may do.
type role string

const (
	operator role = "operator" // may do all
	reader   role = "reader"   // may look
)

// sender is who sent a request.
type sender struct {
	role role
	how  string // browser, token or local
	from string // the address
}

type senderKey struct{}

// who names the sender of a request in audit lines.
func (s *Server) who(r *http.Request) string { return whoIn(r.Context()) }

func whoIn(ctx context.Context) string {
	w := senderIn(ctx)
	return cmp.Or(w.how, "server") + " from " + cmp.Or(w.from, "an unknown address")
}

func senderIn(ctx context.Context) sender {
	w, _ := ctx.Value(senderKey{}).(sender)
	return w
}

// withSender is the request with its sender.
func withSender(r *http.Request, as role) *http.Request {
	how := "browser"
	switch {
	case as == "":
		as, how = operator, "local"
	case strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
		how = "token"
	}
	return r.WithContext(context.WithValue(r.Context(), senderKey{}, sender{as, how, r.RemoteAddr}))
}

// mayNot is the answer to a reader who wants to change something.
var mayNot = &answerError{http.StatusForbidden, "this token may only read; use the server's other token (" + TokenVariable + ")"}

// permitted reports whether the sender of a request may make it.
func permitted(r *http.Request, as role) bool {
	return as == operator || r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Path == "/logout"
}

// mayAct reports whether a page for this request has buttons that change something.
func mayAct(r *http.Request) bool { return senderIn(r.Context()).role == operator }

// audited writes what the sender in ctx asks for, before it is done.
func (s *Server) audited(ctx context.Context, action, target, detail string) error {
	return s.audit.write(ctx, auditLine{At: s.now(), Who: whoIn(ctx), Action: action, Target: target, Detail: safe(detail)})
}

// checkTokens checks the tokens of the settings.
func checkTokens(token, readToken string) error {
	for name, t := range map[string]string{TokenVariable: token, ReadTokenVariable: readToken} {
		if t != "" && len(t) < 16 {
			return fmt.Errorf("%s is shorter than 16 letters and could be guessed; `openssl rand -hex 16` prints a good one", name)
		}
	}
	switch {
	case readToken != "" && token == "":
		return fmt.Errorf("%s is set, but not %s: without it everybody may act", ReadTokenVariable, TokenVariable)
	case readToken != "" && equal(token, readToken):
		return fmt.Errorf("%s and %s are the same; use two tokens", TokenVariable, ReadTokenVariable)
	}
	return nil
}

// roleOf is the role that a token gives, "" for none.
func (s *sessions) roleOf(given string) role {
	switch {
	case s.token != "" && equal(given, s.token):
		return operator
	case s.readToken != "" && equal(given, s.readToken):
		return reader
	}
	return ""
}

// renew gives a browser a cookie with the time of this request, so that its session
// does not end for idleness. Only pages that a person opens count, not what an open page
// loads by itself.
func (s *Server) renew(w http.ResponseWriter, r *http.Request) {
	c, err := r.Cookie(sessionCookie)
	if dest := r.Header.Get("Sec-Fetch-Dest"); err != nil || r.URL.Path == "/events" || dest != "" && dest != "document" {
		return
	}
	if value, left := s.sessions.renewed(c.Value, s.now()); value != "" {
		s.setCookie(w, r, value, int(left.Seconds()))
	}
}

// renewed is a session's cookie with a new time of its last use, "" if the old one is
// recent enough, and how long the session can last at most.
func (s *sessions) renewed(cookie string, now time.Time) (string, time.Duration) {
	parts, as, ok := s.parse(cookie)
	if !ok || now.Sub(parts.used) < renewAfter {
		return "", 0
	}
	parts.used = now
	return s.cookie(parts, as), sessionAge - now.Sub(parts.began)
}
