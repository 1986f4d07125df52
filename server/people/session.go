package people

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
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

// session is that of a browser whose user gave a token. Its cookie is "id.began.used.proof", where the proof is an HMAC with the token as
// key. So it is valid on each server of the store and after a restart, and a new token ends all sessions that began with the old one.
type session struct {
	id          string
	began, used time.Time
}

func (g *Guard) cookie(c session, as role) string {
	text := c.id + "." + strconv.FormatInt(c.began.UnixMilli(), 10) + "." + strconv.FormatInt(c.used.UnixMilli(), 10)
	return text + "." + g.proof(as, text)
}

func (g *Guard) proof(as role, text string) string {
	key := g.Token
	if as == reader {
		key = g.ReadToken
	}
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte("dashboard session " + text))
	return hex.EncodeToString(m.Sum(nil))
}

// after returns now in milliseconds, or the first millisecond after all sessions were ended: the clock of the server that
// ended them may be ahead. So a session that begins later is valid, and the next end of all sessions covers it.
func (g *Guard) after(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now = now.Truncate(time.Millisecond); !now.After(g.notBefore) {
		now = g.notBefore.Add(time.Millisecond)
	}
	return now
}

// parse returns what a cookie says, and the role of the token of its proof; "" if that is wrong.
func (g *Guard) parse(cookie string) (c session, as role) {
	parts := strings.Split(cookie, ".")
	if len(parts) != 4 {
		return c, ""
	}
	switch text := strings.Join(parts[:3], "."); {
	case equal(parts[3], g.proof(operator, text)):
		as = operator
	case g.ReadToken != "" && equal(parts[3], g.proof(reader, text)):
		as = reader
	}
	began, berr := strconv.ParseInt(parts[1], 10, 64)
	used, uerr := strconv.ParseInt(parts[2], 10, 64)
	if berr != nil || uerr != nil {
		return c, ""
	}
	return session{parts[0], time.UnixMilli(began), time.UnixMilli(used)}, as
}

// read returns the id and the role of a cookie's session; "" if it is not valid.
func (g *Guard) read(cookie string, now time.Time) (id string, as role) {
	c, as := g.parse(cookie)
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(c.began) >= sessionAge || now.Sub(c.used) >= sessionIdle || !c.began.After(g.notBefore) || g.ended[c.id] {
		return "", ""
	}
	return c.id, as
}

func (g *Guard) end(ctx context.Context, cookie string, now time.Time) error {
	id, as := g.read(cookie, now)
	if as == "" {
		return nil
	}
	return g.mark(ctx, id)
}

func (g *Guard) endAll(ctx context.Context, now time.Time) error {
	if _, err := g.readEnded(ctx, now); err != nil {
		return err
	}
	return g.mark(ctx, endedAll+strconv.FormatInt(g.after(now).UnixMilli(), 10))
}

func (g *Guard) mark(ctx context.Context, name string) error {
	err := store.Write(ctx, g.Store, endedPrefix+name, nil, store.PutOptions{})
	if err == nil {
		g.note(name)
	}
	return err
}

// note remembers an ended session by its object's name.
func (g *Guard) note(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == nil {
		g.ended = map[string]bool{}
	}
	g.ended[name] = true
	text, _ := strings.CutPrefix(name, endedAll)
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && text != name && time.UnixMilli(ms).After(g.notBefore) {
		g.notBefore = time.UnixMilli(ms)
	}
}

// Tick reads which sessions other servers ended, and removes objects of sessions that
// their age has ended.
func (g *Guard) Tick(ctx context.Context, now time.Time) error {
	if g.Token == "" || now.Before(g.nextAt) {
		return nil
	}
	g.nextAt = now.Add(endedInterval)
	old, err := g.readEnded(ctx, now)
	if err != nil {
		return err
	}
	return store.Remove(ctx, g.Store, old...)
}

// readEnded reads which sessions were ended, and returns the objects that are no longer needed.
func (g *Guard) readEnded(ctx context.Context, now time.Time) (old []string, err error) {
	for o, err := range g.Store.List(ctx, endedPrefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", endedPrefix, err)
		}
		if now.Sub(o.ModTime) > sessionAge+time.Hour {
			old = append(old, o.Key)
			continue
		}
		g.note(path.Base(o.Key))
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

// Who names the sender of a request in audit lines.
func Who(ctx context.Context) string {
	w, _ := ctx.Value(senderKey{}).(sender)
	return cmp.Or(w.how, "server") + " from " + cmp.Or(w.from, "an unknown address")
}

// MayAct reports whether the sender of a request may change something.
func MayAct(r *http.Request) bool {
	w, _ := r.Context().Value(senderKey{}).(sender)
	return w.role == operator
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
var mayNot = known.Answer(http.StatusForbidden, "this token may only read; use the server's other token ("+known.TokenVariable+")")

// permitted reports whether the sender of a request may make it.
func permitted(r *http.Request, as role) bool {
	return as == operator || r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Path == "/logout"
}

// Note writes into the audit what the sender in ctx asks for, before it is done.
func (g *Guard) Note(ctx context.Context, action, target, detail string) error {
	return g.Audit.Write(ctx, known.AuditLine{At: g.Now(), Who: Who(ctx), Action: action, Target: target, Detail: known.Safe(detail)})
}

// CheckTokens refuses tokens that protect nothing.
func CheckTokens(token, readToken string) error {
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
func (g *Guard) roleOf(given string) role {
	switch {
	case g.Token != "" && equal(given, g.Token):
		return operator
	case g.ReadToken != "" && equal(given, g.ReadToken):
		return reader
	}
	return ""
}

// renew gives a browser a cookie with the time of this request, so that its session
// does not end for idleness. Only pages that a person opens count, not what an open page
// loads by itself.
func (g *Guard) renew(w http.ResponseWriter, r *http.Request) {
	c, err := r.Cookie(sessionCookie)
	if dest := r.Header.Get("Sec-Fetch-Dest"); err != nil || r.URL.Path == "/events" || dest != "" && dest != "document" {
		return
	}
	now := g.Now()
	if of, as := g.parse(c.Value); as != "" && now.Sub(of.used) >= renewAfter {
		of.used = now
		g.setCookie(w, r, g.cookie(of, as), int((sessionAge - now.Sub(of.began)).Seconds()))
	}
}
