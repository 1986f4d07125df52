package server

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
)

const (
	// sessionAge is how long a browser stays signed in, sessionIdle how long without
	// a page being opened.
	sessionAge  = 7 * 24 * time.Hour
	sessionIdle = 24 * time.Hour
	// renewAfter is how old the last use in a cookie is when it is written again.
	renewAfter = 5 * time.Minute
	// endedInterval is how often a server reads which sessions other servers ended.
	endedInterval = 30 * time.Second
	// endedPrefix has an object for each session that was ended before its age ends it,
	// and an object all-{milliseconds} for each time that all sessions were ended.
	endedPrefix = "sessions/ended/"
	endedAll    = "all-"
)

// sessions are the sessions of browsers whose users gave a token. A cookie is
// "id.began.used.proof", where the proof is an HMAC with the token as key. So it is
// valid on each server of the store and after a restart, and a new token ends all
// sessions that began with the old one.
type sessions struct {
	store     store.Store
	token     string
	readToken string

	mu        sync.Mutex
	ended     map[string]bool
	notBefore time.Time // sessions that began until then have ended
	nextAt    time.Time
}

// session is what a cookie says.
type session struct {
	id          string
	began, used time.Time
}

func (s *sessions) cookie(c session, as role) string {
	text := c.id + "." + strconv.FormatInt(c.began.UnixMilli(), 10) + "." + strconv.FormatInt(c.used.UnixMilli(), 10)
	return text + "." + s.proof(as, text)
}

func (s *sessions) proof(as role, text string) string {
	key := s.token
	if as == reader {
		key = s.readToken
	}
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte("dashboard session " + text))
	return hex.EncodeToString(m.Sum(nil))
}

func (s *sessions) begin(as role, now time.Time) (cookie string) {
	return s.cookie(session{rand.Text(), s.after(now), now}, as)
}

// after returns now in milliseconds, or the first millisecond after all sessions were ended: the clock of the server that
// ended them may be ahead. So a session that begins later is valid, and the next end of all sessions covers it.
func (s *sessions) after(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now = now.Truncate(time.Millisecond); !now.After(s.notBefore) {
		now = s.notBefore.Add(time.Millisecond)
	}
	return now
}

// parse returns what a cookie says, if its proof is right, and the role of its token.
func (s *sessions) parse(cookie string) (c session, as role, ok bool) {
	i := strings.LastIndex(cookie, ".")
	if i < 0 {
		return c, "", false
	}
	text, proof := cookie[:i], cookie[i+1:]
	switch {
	case equal(proof, s.proof(operator, text)):
		as = operator
	case s.readToken != "" && equal(proof, s.proof(reader, text)):
		as = reader
	default:
		return c, "", false
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return c, "", false
	}
	began, berr := strconv.ParseInt(parts[1], 10, 64)
	used, uerr := strconv.ParseInt(parts[2], 10, 64)
	return session{parts[0], time.UnixMilli(began), time.UnixMilli(used)}, as, berr == nil && uerr == nil
}

// read returns the id and the role of a cookie's session, and whether the session is
// valid.
func (s *sessions) read(cookie string, now time.Time) (id string, as role, ok bool) {
	c, as, ok := s.parse(cookie)
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.id, as, ok && now.Sub(c.began) < sessionAge && now.Sub(c.used) < sessionIdle && c.began.After(s.notBefore) && !s.ended[c.id]
}

func (s *sessions) end(ctx context.Context, cookie string, now time.Time) error {
	id, _, ok := s.read(cookie, now)
	if !ok {
		return nil
	}
	if err := s.mark(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(id)
	return nil
}

func (s *sessions) endAll(ctx context.Context, now time.Time) error {
	if _, err := s.readEnded(ctx, now); err != nil {
		return err
	}
	name := endedAll + strconv.FormatInt(s.after(now).UnixMilli(), 10)
	if err := s.mark(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(name)
	return nil
}

func (s *sessions) mark(ctx context.Context, name string) error {
	return store.Write(ctx, s.store, endedPrefix+name, nil, store.PutOptions{})
}

// note remembers an ended session by its object's name; the caller holds mu.
func (s *sessions) note(name string) {
	text, all := strings.CutPrefix(name, endedAll)
	if !all {
		if s.ended == nil {
			s.ended = map[string]bool{}
		}
		s.ended[name] = true
		return
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && time.UnixMilli(ms).After(s.notBefore) {
		s.notBefore = time.UnixMilli(ms)
	}
}

// tick reads which sessions other servers ended, and removes objects of sessions that
// their age has ended.
func (s *sessions) tick(ctx context.Context, now time.Time) error {
	if s.token == "" || now.Before(s.nextAt) {
		return nil
	}
	s.nextAt = now.Add(endedInterval)
	old, err := s.readEnded(ctx, now)
	if err != nil {
		return err
	}
	return store.Remove(ctx, s.store, old...)
}

// readEnded reads which sessions were ended, and returns the objects that are no longer needed.
func (s *sessions) readEnded(ctx context.Context, now time.Time) (old []string, err error) {
	for o, err := range s.store.List(ctx, endedPrefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", endedPrefix, err)
		}
		if now.Sub(o.ModTime) > sessionAge+time.Hour {
			old = append(old, o.Key)
			continue
		}
		s.mu.Lock()
		s.note(path.Base(o.Key))
		s.mu.Unlock()
	}
	return old, nil
}

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
var mayNot = &known.AnswerError{Code: http.StatusForbidden,
	Message: "this token may only read; use the server's other token (" + known.TokenVariable + ")"}

// permitted reports whether the sender of a request may make it.
func permitted(r *http.Request, as role) bool {
	return as == operator || r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Path == "/logout"
}

// mayAct reports whether a page for this request has buttons that change something.
func mayAct(r *http.Request) bool { return senderIn(r.Context()).role == operator }

// audited writes what the sender in ctx asks for, before it is done.
func (s *Server) audited(ctx context.Context, action, target, detail string) error {
	return s.audit.Write(ctx, known.AuditLine{At: s.now(), Who: whoIn(ctx), Action: action, Target: target, Detail: known.Safe(detail)})
}

// checkTokens checks the tokens of the settings.
func checkTokens(token, readToken string) error {
	for name, t := range map[string]string{known.TokenVariable: token, known.ReadTokenVariable: readToken} {
		if t != "" && len(t) < 16 {
			return fmt.Errorf("%s is shorter than 16 letters and could be guessed; `openssl rand -hex 16` prints a good one", name)
		}
	}
	switch {
	case readToken != "" && token == "":
		return fmt.Errorf("%s is set, but not %s: without it everybody may act", known.ReadTokenVariable, known.TokenVariable)
	case readToken != "" && equal(token, readToken):
		return fmt.Errorf("%s and %s are the same; use two tokens", known.TokenVariable, known.ReadTokenVariable)
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
