package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/schedule"
)

// row is a schedule as the API shows it, nil if there is none.
func (w *world) scheduleRow(name string) map[string]any {
	w.t.Helper()
	a := w.do("GET", "/api/v1/schedules", "")
	require.Equal(w.t, http.StatusOK, a.code, a.body)
	for _, row := range a.json(w.t)["schedules"].([]any) {
		if row := row.(map[string]any); row["name"] == name {
			return row
		}
	}
	return nil
}

// asked are the audit lines, newest first, without times and senders.
func (w *world) asked() (out []string) {
	w.t.Helper()
	for _, l := range w.do("GET", "/api/v1/audit", "").json(w.t)["lines"].([]any) {
		l := l.(map[string]any)
		line := fmt.Sprint(l["action"], " ", l["target"])
		if l["detail"] != nil {
			line += ": " + l["detail"].(string)
		}
		assert.Equal(w.t, "local from 192.0.2.1:1234", l["who"])
		out = append(out, line)
	}
	return out
}

// at sets the clock of servers.
func at(now time.Time, all ...*world) time.Time {
	for _, w := range all {
		w.now = func() time.Time { return now }
	}
	return now
}

// TestKeptSchedules changes a schedule of the file and adds another one, on one of
// two servers. The later change wins, whether it is in the file or on the page.
func TestKeptSchedules(t *testing.T) {
	a := newWorld(t, "done", scheduled(t, hourly))
	b := worldAt(t, a.dir, "done", scheduled(t, hourly))
	now := at(time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC), a, b)
	row := a.scheduleRow("hourly")
	assert.Equal(t, "file", row["source"])
	assert.Equal(t, []any{"2026-03-02T10:00:00Z", "2026-03-02T11:00:00Z", "2026-03-02T12:00:00Z", "2026-03-02T13:00:00Z", "2026-03-02T14:00:00Z"}, row["next"])

	got := a.do("PUT", "/api/v1/schedules/hourly", `{"job":"seed","cron":"30 4 * * *","timezone":"Asia/Seoul","options":{"country":"kr"}}`)
	require.Equal(t, http.StatusOK, got.code, got.body)
	assert.Equal(t, "page_over_file", got.json(t)["source"])
	at(now.Add(time.Second), b)
	got = b.do("PUT", "/api/v1/schedules/extra", `{"job":"docs","cron":"0 18 * * 0"}`)
	require.Equal(t, http.StatusOK, got.code, got.body)
	for _, w := range []*world{a, b} {
		at(now.Add(schedule.KeptInterval+2*time.Second), w)
		assert.Equal(t, map[string]any{"country": "kr"}, w.scheduleRow("hourly")["options"])
		assert.Equal(t, "2026-03-02T19:30:00Z", w.scheduleRow("hourly")["next"].([]any)[0])
		assert.Equal(t, "page", w.scheduleRow("extra")["source"])
	}
	assert.Equal(t, []string{"schedule_add extra: job docs; cron 0 18 * * 0; timezone UTC; options {}",
		"schedule_edit hourly: cron: 0 * * * * → 30 4 * * *; timezone: UTC → Asia/Seoul; options: {country: sg, date: 2026-01-28} → {country: kr}"}, a.asked())
	page := a.do("GET", "/schedules", "").body
	assert.Contains(t, page, "the file says: job seed; cron 0 * * * *; timezone UTC; options {country: sg, date: 2026-01-28}")
	assert.Contains(t, page, "2026-03-03 04:30 KST")
	assert.Contains(t, a.do("GET", "/audit", "").body, "schedule edit")

	// A server that starts with the same file obeys the page, one with a changed entry the file.
	same := worldAt(t, a.dir, "done", scheduled(t, hourly))
	assert.Equal(t, "page_over_file", same.scheduleRow("hourly")["source"])
	later := worldAt(t, a.dir, "done", scheduled(t, "schedules: [{name: hourly, job: seed, cron: '5 * * * *'}, {name: extra, job: news, cron: '0 1 * * *'}]\n"))
	assert.Equal(t, "5 * * * *", later.scheduleRow("hourly")["cron"])
	assert.Equal(t, "news", later.scheduleRow("extra")["job"], "the file names it later than the page")

	require.Equal(t, http.StatusOK, a.do("DELETE", "/api/v1/schedules/hourly", "").code)
	assert.Equal(t, "file", a.scheduleRow("hourly")["source"])
	assert.Equal(t, "removed", a.do("DELETE", "/api/v1/schedules/extra", "").json(t)["status"])
	assert.Nil(t, a.scheduleRow("extra"))

	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"PUT", "/api/v1/schedules/x", `{"job":"seed","cron":"61 * * * *"}`, 400, "is not a cron expression"},
		{"PUT", "/api/v1/schedules/x", `{"job":"sow","cron":"1 * * * *"}`, 400, "there is no job"},
		{"PUT", "/api/v1/schedules/x", `{"job":"seed","cron":"1 * * * *","timezone":"Nowhere"}`, 400, "timezone"},
		{"PUT", "/api/v1/schedules/x", `{"job":"seed","cron":"1 * * * *","options":{"country":"SG"}}`, 400, "country"},
		{"PUT", "/api/v1/schedules/x", `{"job":"seed","cron":"1 * * * *","options":{"country":["sg"]}}`, 400, "country"},
		{"PUT", "/api/v1/schedules/x", `{"job":"news","cron":"1 * * * *","options":{"publisher":false}}`, 400, "publisher"},
		{"PUT", "/api/v1/schedules/x", `{"job":"seed","cron":"1 * * * *","often":true}`, 400, "the body is not what is needed"},
		{"PUT", "/api/v1/schedules/x", `{"job":"seed","cron":"1 * * * *","timezone":null}`, 400, "the body is not what is needed"},
		{"PUT", "/api/v1/schedules/X", `{"job":"seed","cron":"1 * * * *"}`, 400, "its name must be"},
		{"DELETE", "/api/v1/schedules/hourly", "", 409, "remove it there, or pause it here"},
		{"DELETE", "/api/v1/schedules/extra", "", 404, "there is no such schedule"},
		{"POST", "/api/v1/schedules/extra/run", "", 404, "there is no such schedule"},
		{"POST", "/api/v1/schedules/extra/pause", "", 404, "there is no such schedule"},
	} {
		got := a.do(c.method, c.path, c.body)
		assert.Equal(t, c.code, got.code, "%s %s %s: %s", c.method, c.path, c.body, got.body)
		assert.Contains(t, got.body, c.says)
	}
}

// A kept definition that this version of the program refuses does not run, and shows
// why.
func TestKeptScheduleThatIsWrong(t *testing.T) {
	w := newWorld(t, "done")
	require.NoError(t, store.WriteJSON(t.Context(), w.store, schedule.KeptKey("old"), schedule.KeptSchedule{Definition: &schedule.Schedule{Name: "old", Job: "sow", Cron: "* * * * *"}}))
	now := at(time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC), w)
	turn(w, now, 3*time.Minute, 20*time.Second)
	assert.Contains(t, w.scheduleRow("old")["error"], `there is no job "sow"`)
	assert.Empty(t, w.scheduleRow("old")["next"])
	assert.Empty(t, w.ticks())
	assert.Contains(t, w.do("GET", "/schedules", "").body, "never: it cannot run")
	assert.Equal(t, http.StatusConflict, w.do("POST", "/api/v1/schedules/old/run", "").code)
}

// TestPausedSchedule pauses a schedule through one of two servers: neither starts it,
// also not at the moment of the pause, and what it would have started is not missed.
func TestPausedSchedule(t *testing.T) {
	a := newWorld(t, "done", scheduled(t, hourly))
	b := worldAt(t, a.dir, "done", scheduled(t, hourly))
	now := at(time.Date(2026, 3, 2, 9, 59, 50, 0, time.UTC), a, b)
	for _, w := range []*world{a, b} {
		w.tick(t.Context(), now) // they know it as it was
	}
	got := a.do("POST", "/api/v1/schedules/hourly/pause", "")
	require.Equal(t, http.StatusOK, got.code, got.body)
	assert.Equal(t, true, got.json(t)["paused"])
	assert.Empty(t, got.json(t)["next"])
	for now = now.Add(time.Second); now.Minute() != 30; now = now.Add(7 * time.Second) {
		b.tick(t.Context(), now)
		a.tick(t.Context(), now)
	}
	assert.Empty(t, a.ticks())
	now = at(now.Add(3*time.Hour), a, b)
	require.Equal(t, http.StatusOK, b.do("POST", "/api/v1/schedules/hourly/resume", "").code)
	restarted := worldAt(t, a.dir, "done", scheduled(t, hourly))
	for end := now.Add(31 * time.Minute); now.Before(end); now = now.Add(20 * time.Second) {
		restarted.tick(t.Context(), now)
		a.tick(t.Context(), now)
	}
	assert.Equal(t, []string{"20260302T140000Z started"}, a.ticks(), "none was missed")
	assert.Equal(t, []string{"schedule_resume hourly", "schedule_pause hourly"}, a.asked())
}

// TestRunNow starts the run of a schedule with its options, also of a paused one, and
// not while another run is active.
func TestRunNow(t *testing.T) {
	w := newWorld(t, "wait", scheduled(t, hourly))
	require.Equal(t, http.StatusOK, w.do("POST", "/api/v1/schedules/hourly/pause", "").code)
	got := w.do("POST", "/api/v1/schedules/hourly/run", "")
	require.Equal(t, http.StatusAccepted, got.code, got.body)
	id := got.json(t)["run_id"].(string)
	assert.Equal(t, "/api/v1/runs/"+id, got.header.Get("Location"))
	w.until("the run", func() bool { return len(w.board.Runs()) == 1 && !w.board.Runs()[0].Starting })
	assert.Equal(t, "--country=sg --date=2026-01-28", w.board.Runs()[0].Run.Options["args"])
	got = w.do("POST", "/api/v1/schedules/hourly/run", "")
	assert.Equal(t, http.StatusConflict, got.code)
	assert.Equal(t, id, got.json(t)["run_id"])
}

// TestSchedulesOnThePage uses the forms of the page.
func TestSchedulesOnThePage(t *testing.T) {
	w := newWorld(t, "done", scheduled(t, hourly))
	form := []string{"Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html"}
	at(time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC), w)
	before := w.scheduleRow("hourly")
	long, name := strings.Repeat("a", 64), "at most 64 lower-case letters, digits, _ and -"
	for _, c := range []struct {
		path, body string
		code       int
		says       string
	}{
		{"/schedules", "new=true&name=hourly&job=docs&cron=5+4+*+*+*", 409, "there is a schedule hourly already; edit that one, or choose another name"},
		{"/schedules", "new=true&name=" + long + "&job=docs&cron=5+4+*+*+*", 303, ""},
		{"/schedules", "name=" + long + "&job=docs&cron=5+5+*+*+*", 303, ""},
		{"/schedules", "new=1&job=seed&cron=15+3+*+*+*&name=" + long + "a", 400, name},
		{"/schedules", "new=1&job=seed&cron=15+3+*+*+*&name=Nightly", 400, name},
		{"/schedules", "new=1&job=seed&cron=15+3+*+*+*&name=-x", 400, name},
		{"/schedules", "name=extra&job=seed&cron=0+4+*+*+*&timezone=Asia%2FSeoul&options=country%3A+kr%0Aforce%3A+true", 303, ""},
		{"/schedules", "name=extra&job=seed&cron=0+4+*+*+*&options=country", 400, ""},
		{"/schedules", "name=extra&job=seed&cron=never", 400, ""},
		{"/schedules/extra/pause", "", 303, ""},
		{"/schedules/extra/resume", "", 303, ""},
		{"/schedules/hourly/remove", "", 409, ""},
	} {
		got := w.do("POST", c.path, c.body, form...)
		assert.Equal(t, c.code, got.code, "%s %s: %s", c.path, c.body, got.body)
		assert.Contains(t, got.body, c.says)
	}
	assert.Equal(t, before, w.scheduleRow("hourly"), "a form that adds a schedule replaces none")
	assert.Equal(t, "5 5 * * *", w.scheduleRow(long)["cron"], "its own form changes it")
	assert.Equal(t, map[string]any{"country": "kr", "force": true}, w.scheduleRow("extra")["options"])
	page := w.do("GET", "/schedules", "").body
	assert.Contains(t, page, "country: kr\nforce: true</textarea>")
	assert.Equal(t, http.StatusSeeOther, w.do("POST", "/schedules/extra/remove", "", form...).code)
	assert.Nil(t, w.scheduleRow("extra"))
	got := w.do("POST", "/schedules/hourly/run", "", form...)
	require.Equal(t, http.StatusSeeOther, got.code)
	assert.Regexp(t, "^/runs/", got.header.Get("Location"))
}

// The page and the API show how a schedule's last run ended, and each run knows the schedule that started it.
func TestScheduleShowsItsRun(t *testing.T) {
	for mode, want := range map[string]string{"refuse": "not_begun", "crash": "interrupted", "done": "done", "wait": "running"} {
		w := newWorld(t, mode, scheduled(t, hourly))
		at := at(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), w)
		_, err := w.scheduler.Tick(t.Context(), at.Add(-time.Minute))
		require.NoError(t, err)
		_, err = w.scheduler.Tick(t.Context(), at.Add(time.Second))
		require.NoError(t, err)
		require.Equal(t, []string{"20260302T100000Z started"}, w.ticks())
		id := w.lastTick().RunID
		if mode != "wait" {
			w.ended("seed")
		}
		w.until("the run's state", func() bool {
			row := w.do("GET", "/api/v1/schedules", "").json(t)["schedules"].([]any)[0].(map[string]any)
			return row["last"].(map[string]any)["outcome"] == want
		})
		run, err := ledger.Load(t.Context(), w.store, id)
		if mode != "wait" {
			require.NoError(t, err)
			assert.Equal(t, "hourly", run.Schedule, mode)
		}
		page := w.do("GET", "/schedules", "").body
		says := map[string]string{"not_begun": "it did not begin"}[want]
		assert.Contains(t, page, `<a class="part part-`+cmp.Or(map[string]string{"interrupted": "failed", "running": "active"}[want], want))
		assert.Regexp(t, `href="/runs/`+id+`" title="2026-03-02 10:00 UTC: `+cmp.Or(says, want), page)
		assert.Equal(t, mode == "refuse", strings.Contains(page, "two lower-case letters"))
		w.waitForChildren()
	}
}
