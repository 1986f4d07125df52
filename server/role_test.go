package server

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

const readToken = "a token for those who only look"

func withTokens(s *Settings) { s.Token, s.ReadToken = token, readToken }

// TestReader lets the read-only token see all and change nothing, by any route.
func TestReader(t *testing.T) {
	w := newWorld(t, "done", withTokens)
	w.put("20260302-100000-000-aaaaaaaa", "seed", ledger.Done, time.Now(), time.Minute, sampleTally())
	require.NoError(t, w.board.Refresh(t.Context(), time.Now()))
	bearer := []string{"Authorization", "Bearer " + readToken}
	for _, r := range w.routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		path = strings.NewReplacer("{$}", "", "{id}", "20260302-100000-000-aaaaaaaa", "{name}", "hourly").Replace(path)
		if path == "/events" || path == "/login" || path == "/logout" {
			continue
		}
		code := w.do(method, path, "", bearer...).code
		if method == http.MethodGet {
			assert.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, code, r.Pattern)
		} else {
			assert.Equal(t, http.StatusForbidden, code, r.Pattern)
		}
	}
	got := w.do("POST", "/api/v1/seeds/orchestrate", "{}", bearer...)
	assert.Contains(t, got.body, "this token may only read")
	assert.Len(t, w.board.Runs(), 1, "nothing was started")
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	in := w.do("POST", "/login", "token="+readToken, form...)
	require.Equal(t, http.StatusSeeOther, in.code)
	cookie, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	assert.Equal(t, 200, w.do("GET", "/", "", "Cookie", cookie).code)
	assert.Equal(t, 403, w.do("POST", "/runs", "job=seed", append(form, "Cookie", cookie)...).code)
	assert.Equal(t, 403, w.do("POST", "/logout", "everywhere=true", append(form, "Cookie", cookie)...).code, "a reader ends no other's session")
	assert.Equal(t, 303, w.do("POST", "/logout", "", append(form, "Cookie", cookie)...).code)
	assert.Equal(t, 401, w.do("GET", "/api/v1/runs", "", "Cookie", cookie).code)
	changed := worldAt(t, w.dir, "done", func(s *Settings) { s.Token, s.ReadToken = token, readToken+"x" })
	assert.Equal(t, 401, changed.do("GET", "/api/v1/runs", "", bearer...).code)
}

// A page for the read-only token has no button that would be refused, and no link to a
// form. The page of one who may act has them.
func TestReaderSeesNoButtons(t *testing.T) {
	w := newWorld(t, "wait", withTokens, scheduled(t, hourly))
	operate, read := []string{"Authorization", "Bearer " + token}, []string{"Authorization", "Bearer " + readToken}
	over := "20260302-100000-000-aaaaaaaa"
	w.put(over, "seed", ledger.Done, time.Now(), time.Minute, sampleTally())
	letter := ledger.DeadLetter{Job: "seed", RunID: over, Kind: "bad_file", Input: ledger.Input{File: "x"}}
	require.NoError(t, ledger.Put(t.Context(), w.store, letter))
	at := "/dead-letters/seed/" + letter.ID()
	kept := w.do("PUT", "/api/v1/schedules/mine", `{"job":"news","cron":"0 3 * * *"}`, operate...)
	require.Less(t, kept.code, 300, kept.body)
	require.Equal(t, 200, w.do("PUT", "/api/v1/docs/providers/acme", acme, operate...).code)
	require.Equal(t, 200, w.do("POST", "/api/v1/alerts/silences", `{"job":"seed","for":"2h"}`, operate...).code)
	active := w.do("POST", "/api/v1/docs/runs", "", operate...).json(t)["run_id"].(string)
	w.until("the run", func() bool { return w.do("GET", "/api/v1/runs/"+active, "", operate...).json(t)["state"] == "running" })
	form := regexp.MustCompile(`<form method="post" action="([^"]*)"|<form method="get" action="(/removals/ask)"|href="(/start|/[^"]*/(?:replay|remove|cancel))(?:\?[^"]*)?"`)
	offered := func(path string, as []string) (actions []string) {
		a := w.do("GET", path, "", as...)
		require.Equal(t, 200, a.code, "%s: %s", path, a.body)
		for _, m := range form.FindAllStringSubmatch(a.body, -1) {
			if action := m[1] + m[2] + m[3]; action != "/logout" && !slices.Contains(actions, action) {
				actions = append(actions, action)
			}
		}
		return actions
	}
	pages := map[string][]string{
		"/": {"/start"}, "/runs": {"/start"}, "/start?job=seed": {"/runs"}, "/reports": nil, "/audit": nil, "/dead-letters": {"/dead-letters/replay"},
		"/dead-letters/replay?job=seed":          {"/dead-letters/replay"},
		at:                                       {at + "/dismiss", at + "/replay"},
		"/runs/" + over:                          {"/runs/" + over + "/again", "/runs/" + over + "/dead-letters/replay"},
		"/runs/" + over + "/dead-letters/replay": {"/runs/" + over + "/dead-letters/replay"},
		"/runs/" + active:                        {"/runs/" + active + "/pause", "/runs/" + active + "/again"},
		"/runs/" + active + "/cancel":            {"/runs/" + active + "/cancel"},
		"/alerts":                                {"/alerts/silences"},
		"/schedules":                             {"/schedules/hourly/run", "/schedules/hourly/pause", "/schedules", "/schedules/mine/run", "/schedules/mine/pause", "/schedules/mine/remove"},
		"/schedules/mine/remove":                 {"/schedules/mine/remove"},
		"/providers":                             {"/providers"},
		"/providers/acme":                        {"/providers/acme", "/providers/acme/disable", "/providers/acme/remove"},
		"/providers/acme/remove":                 {"/providers/acme/remove"},
		"/removals":                              {"/removals/ask"},
		"/removals/ask?provider=acme":            {"/removals"},
	}
	for path, want := range pages {
		got := offered(path, operate)
		for _, action := range want {
			assert.Contains(t, got, action, path)
		}
		assert.Empty(t, offered(path, read), path)
	}
	assert.NotContains(t, w.do("GET", "/", "", read...).body, "Sign out all browsers")
}

// Before a person signs in, no link of the page leads anywhere.
func TestSignInPage(t *testing.T) {
	w := newWorld(t, "done", withTokens)
	out := w.do("GET", "/login", "").body
	assert.Equal(t, []string{"#main"}, links(out))
	assert.Contains(t, out, `action="/login"`)
	assert.NotContains(t, out, `action="/zone"`)
	in := w.do("GET", "/runs", "", "Authorization", "Bearer "+token).body
	assert.Subset(t, links(in), []string{"/", "/runs", "/reports", "/openapi.json", "/audit"})
}

func links(page string) (out []string) {
	for _, m := range regexp.MustCompile(`<a [^>]*href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestIdleSession ends a session that is not used for a day, and one that is used after
// seven days. What an open page loads by itself is no use.
func TestIdleSession(t *testing.T) {
	w := newWorld(t, "done", withTokens)
	now := at(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), w)
	cookie := ""
	ask := func(header ...string) int {
		t.Helper()
		a := w.do("GET", "/runs", "", append(header, "Cookie", cookie)...)
		if set := a.header.Get("Set-Cookie"); set != "" {
			cookie, _, _ = strings.Cut(set, ";")
		}
		return a.code
	}
	signIn := func() {
		a := w.form("/login", "token="+token)
		cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	}
	signIn()
	began := now
	for now.Before(began.Add(sessionAge - sessionIdle/2)) {
		now = at(now.Add(sessionIdle-time.Minute), w)
		if now.Before(began.Add(sessionAge)) {
			require.Equal(t, 200, ask("Sec-Fetch-Dest", "document"), now)
		}
	}
	at(began.Add(sessionAge), w)
	assert.Equal(t, 401, ask(), "its age ends it, however it is used")

	now = at(began.Add(sessionAge+time.Hour), w)
	signIn()
	for range 3 {
		now = at(now.Add(sessionIdle/2-time.Minute), w)
		ask("Sec-Fetch-Dest", "empty") // as live.js does
	}
	assert.Equal(t, 401, ask(), "nobody opened a page for a day")
	signIn()
	before := cookie
	at(now.Add(time.Minute), w)
	require.Equal(t, 200, ask())
	assert.Equal(t, before, cookie, "not written again at every request")
	for _, bad := range []string{"", "x", "a.b.c.d", strings.Replace(before, ".", ".9", 1), before + "0"} {
		assert.Equal(t, 401, w.do("GET", "/api/v1/runs", "", "Cookie", sessionCookie+"="+strings.TrimPrefix(bad, sessionCookie+"=")).code, bad)
	}
}

// TestActionsAreAudited writes a line for each thing that a person does.
func TestActionsAreAudited(t *testing.T) {
	w := newWorld(t, "wait", withTokens, scheduled(t, hourly))
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	w.now = func() time.Time { now = now.Add(time.Millisecond); return now }
	bearer := []string{"Authorization", "Bearer " + token}
	in := w.form("/login", "token="+token)
	cookie, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	id := w.do("POST", "/api/v1/schedules/hourly/run", "", bearer...).json(t)["run_id"].(string)
	w.until("the run", func() bool { return len(w.board.Runs()) == 1 && !w.board.Runs()[0].Starting })
	for _, what := range []string{"pause", "resume"} {
		require.Equal(t, http.StatusAccepted, w.do("POST", "/api/v1/runs/"+id+"/"+what, "", bearer...).code)
	}
	require.Equal(t, http.StatusSeeOther, w.form("/runs/"+id+"/cancel", "", "Cookie", cookie).code)
	w.do("POST", "/api/v1/seeds/orchestrate", `{"country":"SG"}`, bearer...)
	lines, err := w.guard.Audit.Newest(t.Context(), 10)
	require.NoError(t, err)
	var got []string
	for _, l := range lines {
		got = append(got, l.Who+" "+l.Action+" "+l.Target+" "+l.Detail)
	}
	const from = " from 192.0.2.1:1234 "
	assert.Equal(t, []string{"browser" + from + "run_cancel " + id + " ", "token" + from + "run_resume " + id + " ", "token" + from + "run_pause " + id + " ",
		"token" + from + "run_start seed by schedule hourly, now, run " + id + " --country=sg --date=2026-01-28", "browser" + from + "sign_in operator "}, got)
}
