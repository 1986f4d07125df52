package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/server/schedule"
)

// slack receives the webhook's messages.
type slack struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string
	fail bool
}

func newSlack(t *testing.T) *slack {
	s := &slack{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var m map[string]string
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &m); err != nil || len(m) != 1 || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the webhook got %q", b)
		}
		if s.fail {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		s.got = append(s.got, m["text"])
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *slack) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.got...)
}

func (s *slack) breakDown(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = yes
}

// turn advances the clock step by step and lets the server tick.
func turn(w *world, from time.Time, span, step time.Duration) time.Time {
	w.t.Helper()
	for at := from; at.Before(from.Add(span)); at = at.Add(step) {
		w.tick(w.t.Context(), at)
	}
	return from.Add(span)
}

func failing(share int64) ledger.Tally {
	return ledger.Tally{Counts: ledger.Counts{"domains_failed": share, "domains_collected": 100 - share},
		HTTP: ledger.HTTP{Requests: 200, ByStatus: ledger.Counts{"200": 200}}}
}

func TestAlertOnceAndOver(t *testing.T) {
	s := newSlack(t)
	w := newWorld(t, "done", func(set *Settings) { set.Webhook = s.URL })
	day := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	w.now = func() time.Time { return day }
	at := turn(w, day, time.Minute, time.Second)
	w.put("20260302-100000-000-aaaaaaaa", "seed", ledger.Done, day, time.Minute, failing(34))
	at = turn(w, at, time.Hour, 40*time.Second)
	require.Len(t, s.messages(), 1, "once a breach, not once a tick")
	assert.Equal(t, "[ALERT] seed: 34.0 % of the work failed (limit 20 %)\nrun 20260302-100000-000-aaaaaaaa", s.messages()[0])
	assert.Contains(t, w.do("GET", "/", "").body, "34.0 % of the work failed")
	other := w.do("GET", "/runs", "").body
	assert.Contains(t, other, `<p><a href="/alerts">1 alert</a></p>`)
	assert.Contains(t, w.do("GET", "/start", "").body, `<p><a href="/alerts">1 alert</a></p>`, "the page that starts runs is another page")
	assert.NotContains(t, other, "of the work failed", "another page only says that there are alerts")

	w.put("20260302-110000-000-bbbbbbbb", "seed", ledger.Done, at, time.Minute, failing(40))
	at = turn(w, at, time.Hour, 40*time.Second)
	require.Len(t, s.messages(), 1, "it still fires: no news")

	next := worldAt(t, w.dir, "done", func(set *Settings) { set.Webhook = s.URL })
	w.leader = nil // as if it had been killed
	require.NoError(t, store.Retry(t.Context(), func() error { return dropLease(t, w.store) }))
	at = turn(next, at, time.Hour, 40*time.Second)
	require.Len(t, s.messages(), 1, "nor for a server that was started again")

	next.put("20260302-120000-000-cccccccc", "seed", ledger.Done, at, time.Minute, failing(3))
	at = turn(next, at, time.Hour, 40*time.Second)
	require.Len(t, s.messages(), 2)
	assert.Equal(t, "[OVER] seed: 3.0 % of the work failed (limit 20 %)\nrun 20260302-120000-000-cccccccc", s.messages()[1])
	assert.Empty(t, next.alarm.Firing())
	assert.Equal(t, 1, strings.Count(w.log.String(), "alert_raised"))
	assert.Equal(t, 1, strings.Count(next.log.String(), "alert_over"))

	s.breakDown(true)
	next.put("20260302-130000-000-dddddddd", "seed", ledger.Done, at, time.Minute, failing(90))
	at = turn(next, at, time.Hour, 40*time.Second)
	require.Len(t, s.messages(), 2)
	s.breakDown(false)
	turn(next, at, time.Hour, 40*time.Second)
	require.Len(t, s.messages(), 3, "what the webhook would not take is sent later, once")
	assert.NotContains(t, next.log.String(), s.URL, "the webhook's address is a secret")
}

func dropLease(t *testing.T, s store.Store) error {
	for o, err := range s.List(t.Context(), "lease/server/") {
		if err != nil {
			return err
		}
		if err := s.Delete(t.Context(), o.Key); err != nil {
			return err
		}
	}
	return nil
}

// TestConfig has settings of the file that are refused.
func TestConfig(t *testing.T) {
	c, err := ParseConfig([]byte("alerts:\n  seed: {failure_rate: 0.5, retry_rate: 0, duration: 90m}\n"), testJobs())
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:8787", c.Listen)
	assert.Equal(t, alert.Thresholds{"failure_rate": 0.5, "duration": 5400, "minimum_samples": 20}, c.limits["seed"])
	for text, says := range map[string]string{
		"alerts: {sed: {failure_rate: 1}}":                                                                "no job",
		"alerts: {seed: {failure_rate: -1}}":                                                              "use a share",
		"alerts: {docs: {error_rate: 20}}":                                                                "use a share from 0 to 1",
		"alerts: {seed: {duration: long}}":                                                                "use a duration",
		"alerts: {seed: {failure: 1}}":                                                                    "failure",
		"schedules: [{name: a, job: seed, cron: '61 * * * *'}]":                                           "is not a cron expression",
		"schedules: [{name: a, job: seed, cron: nightly}]":                                                "is not a cron expression",
		"schedules: [{name: a, job: sow, cron: '1 * * * *'}]":                                             "no job",
		"schedules: [{name: 'A b', job: seed, cron: '1 * * * *'}]":                                        "its name must be",
		"schedules: [{name: a, job: seed, cron: '1 * * * *', timezone: Nowhere}]":                         "timezone",
		"schedules: [{name: a, job: seed, cron: '1 * * * *', options: {land: x}}]":                        "unknown option",
		"schedules: [{name: a, job: seed, cron: '1 * * * *', options: {country: SG}}]":                    "country",
		"schedules: [{name: a, job: seed, cron: '1 * * * *'},{name: a, job: docs, cron: '1 * * * *'}]":    "two are named",
		"flags: {store: [a]}":                                                                             "must be a single value",
		"retention: {days: -1}":                                                                           "use 1 to 36500",
		"retention: {days: ninety}":                                                                       "Config.Retention",
		"retention: {weeks: 1}":                                                                           "weeks",
		"bot: {operator: Acme}":                                                                           "bot: contact:",
		"email: {from: a@example.org}":                                                                    "server is missing",
		"email: {server: mail, from: a@example.org, to: [b@example.org]}":                                 "is not host:port",
		"email: {server: 'mail:25', from: a@example.org}":                                                 "name 1 to 50 addresses",
		"email: {server: 'mail:25', from: nobody, to: [b@example.org]}":                                   "is not an e-mail address",
		"email: {server: 'mail:25', from: a@example.org, to: ['b@example.org, c@example.org']}":           "is not an e-mail address",
		"email: {server: 'mail:25', from: a@example.org, to: [b@example.org], tls: off}":                  "tls: use",
		"email: {server: 'mail:25', from: a@example.org, to: [b@example.org], tls: none, username: seed}": "in the clear",
		"email: {server: 'mail:25', from: a@example.org, to: [b@example.org], password: hunter2}":         "password",
		"surprise: 1": "surprise",
		"[":           "the server's configuration",
	} {
		_, err := ParseConfig([]byte(text), testJobs())
		assert.ErrorContains(t, err, says, text)
	}
}

// TestDocsReportGoesByConfig passes the configured thresholds to the docs job, so that
// its own report agrees with the server. Other jobs do not judge themselves.
func TestDocsReportGoesByConfig(t *testing.T) {
	w := newWorld(t, "done", scheduled(t, "alerts: {docs: {success_rate: 0.8, duration: 6h, pages_change: 2, mean_response: 0s, failure_rate: 0.5, minimum_samples: 5}, seed: {duration: 1h}}"))
	for path, want := range map[string]string{
		"/api/v1/docs/runs":         "--fallback=true --alerts=duration=6h,mean_response=0s,pages_change=2,success_rate=0.8",
		"/api/v1/seeds/orchestrate": "",
	} {
		body := "{}"
		if want != "" {
			body = `{"fallback":true}`
		}
		id := w.do("POST", path, body).json(t)["run_id"].(string)
		w.ended("docs")
		w.ended("seed")
		w.reaches(id, "done")
		assert.Equal(t, map[string]any{"args": want}, w.do("GET", "/api/v1/runs/"+id, "").json(t)["options"])
	}
}

const hourly = "schedules: [{name: hourly, job: seed, cron: '0 * * * *', options: {country: sg, date: 2026-01-28}}]\n"

func scheduled(t *testing.T, yaml string) func(*Settings) {
	c, err := ParseConfig([]byte(yaml), testJobs())
	require.NoError(t, err)
	return func(s *Settings) { s.Config = c }
}

func (w *world) ticks() (out []string) {
	for o, err := range w.store.List(w.t.Context(), "schedules/") {
		require.NoError(w.t, err)
		var k schedule.Tick
		require.NoError(w.t, store.ReadJSON(w.t.Context(), w.store, o.Key, known.MaxObject, &k))
		out = append(out, strings.TrimSuffix(path.Base(o.Key), ".json")+" "+k.Outcome)
	}
	return out
}

func TestScheduleOnTwoServers(t *testing.T) {
	a := newWorld(t, "done", scheduled(t, hourly))
	b := worldAt(t, a.dir, "done", scheduled(t, hourly))
	at := time.Date(2026, 3, 2, 9, 59, 30, 0, time.UTC)
	for range 60 {
		var wg sync.WaitGroup
		for _, w := range []*world{a, b} {
			wg.Go(func() { w.tick(t.Context(), at) })
		}
		wg.Wait()
		at = at.Add(time.Second)
	}
	assert.Equal(t, []string{"20260302T100000Z started"}, a.ticks())
	a.ended("seed")
	b.ended("seed")
	a.until("the run's end", func() bool { r := a.board.Runs(); return len(r) == 1 && r[0].State() == "done" })
	assert.Equal(t, "--country=sg --date=2026-01-28", a.board.Runs()[0].Run.Options["args"])
	for _, w := range []*world{a, b} {
		assert.Contains(t, w.do("GET", "/schedules", "").body, a.board.Runs()[0].Run.RunID)
	}
}

func TestScheduleOverlapAndMissed(t *testing.T) {
	w := newWorld(t, "wait", scheduled(t, hourly))
	at := time.Date(2026, 3, 2, 9, 59, 59, 0, time.UTC)
	for _, now := range []time.Time{at, at.Add(time.Second), at.Add(time.Hour), at.Add(time.Hour + time.Second)} {
		_, err := w.scheduler.Tick(t.Context(), now)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"20260302T100000Z started", "20260302T110000Z active"}, w.ticks(), "no overlap with itself")
	assert.Contains(t, w.log.String(), "schedule_overlaps")

	// Down from 11:00 to 15:30, then started again.
	next := worldAt(t, w.dir, "wait", scheduled(t, hourly))
	_, err := next.scheduler.Tick(t.Context(), at.Add(5*time.Hour+30*time.Minute))
	require.NoError(t, err)
	assert.Equal(t, "20260302T150000Z missed", next.ticks()[2])
	assert.Contains(t, next.log.String(), "msg=schedule_ticks_missed schedule=hourly count=4")
	_, err = next.scheduler.Tick(t.Context(), at.Add(5*time.Hour+31*time.Minute))
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(next.log.String(), "schedule_ticks_missed"))
}

// die ends a server between its claim of a tick and the start of the run.
func die(t *testing.T, w *world, now time.Time) {
	t.Helper()
	w.scheduler.Start = func(context.Context, ledger.Run, []string, string) error { runtime.Goexit(); return nil }
	dead := make(chan struct{})
	go func() {
		defer close(dead)
		_, _ = w.scheduler.Tick(t.Context(), now) // the dead server has not finished this tick
		t.Error("the server lives on")
	}()
	<-dead
}

// TestTickOfADeadServer lets a server die between claiming a tick and starting its
// run. Half a minute later another server starts the run that the claim names, once.
func TestTickOfADeadServer(t *testing.T) {
	tick := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name        string
		restarted   bool // by a server that started after the tick
		foundAfter  time.Duration
		wantAfter   time.Duration
		want, wrote string
	}{
		{"another server", false, 0, schedule.ClaimTimeout, "20260302T100000Z started", "orchestrator_start"},
		{"the restarted one", true, 2 * time.Second, schedule.ClaimTimeout, "20260302T100000Z started", "orchestrator_start"},
		{"restarted a minute later", true, time.Minute, time.Minute, "20260302T100000Z started", "orchestrator_start"},
		{"restarted too late", true, schedule.MaxLate + time.Second, schedule.MaxLate + time.Second, "20260302T100000Z missed", "schedule_ticks_missed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newWorld(t, "done", scheduled(t, hourly))
			b := worldAt(t, a.dir, "done", scheduled(t, hourly))
			_, err := a.scheduler.Tick(t.Context(), tick.Add(-time.Second))
			require.NoError(t, err)
			if !c.restarted {
				_, err = b.scheduler.Tick(t.Context(), tick.Add(-time.Second))
				require.NoError(t, err)
			}
			die(t, a, tick)
			claim := a.lastTick()
			require.Equal(t, "claimed", claim.Outcome)
			for after := c.foundAfter; after < c.wantAfter; after += time.Second {
				_, err := b.scheduler.Tick(t.Context(), tick.Add(after))
				require.NoError(t, err)
				require.Equal(t, "claimed", b.lastTick().Outcome, "after %s the claim is young", after)
			}
			for after := c.wantAfter; after < c.wantAfter+5*time.Second; after += time.Second {
				_, err := b.scheduler.Tick(t.Context(), tick.Add(after))
				require.NoError(t, err)
				require.Equal(t, []string{c.want}, b.ticks())
				b.ended("seed")
			}
			assert.Equal(t, 1, strings.Count(b.log.String(), c.wrote))
			var ids []string
			for r, err := range ledger.List(t.Context(), b.store) {
				require.NoError(t, err)
				ids = append(ids, r.RunID)
			}
			if c.wrote == "orchestrator_start" {
				assert.Equal(t, []string{claim.RunID}, ids)
				assert.Contains(t, b.do("GET", "/schedules", "").body, claim.RunID)
			} else {
				assert.Empty(t, ids)
			}
		})
	}
}

func (w *world) lastTick() schedule.Tick {
	w.t.Helper()
	all, err := w.scheduler.Newest(w.t.Context(), "hourly", 1)
	require.NoError(w.t, err)
	require.Len(w.t, all, 1)
	return all[0]
}

// TestTickOfASlowServer takes a tick over from a server that is only slow. When that
// server resumes, the run has begun, and it starts none.
func TestTickOfASlowServer(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 59, 59, 0, time.UTC)
	for _, mode := range []string{"done", "wait"} {
		t.Run(mode, func(t *testing.T) {
			a := newWorld(t, mode, scheduled(t, hourly))
			b := worldAt(t, a.dir, mode, scheduled(t, hourly))
			for _, w := range []*world{a, b} {
				_, err := w.scheduler.Tick(t.Context(), at)
				require.NoError(t, err)
			}
			start, claimed, wake := a.scheduler.Start, make(chan struct{}), make(chan struct{})
			a.scheduler.Start = func(ctx context.Context, run ledger.Run, flags []string, by string) error {
				close(claimed)
				<-wake
				return start(ctx, run, flags, by)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := a.scheduler.Tick(t.Context(), at.Add(time.Second))
				ended <- err
			}()
			<-claimed
			for _, after := range []time.Duration{time.Second, time.Second + schedule.ClaimTimeout} {
				_, err := b.scheduler.Tick(t.Context(), at.Add(after))
				require.NoError(t, err)
			}
			require.Equal(t, []string{"20260302T100000Z started"}, b.ticks())
			if mode == "done" {
				b.ended("seed")
			} else {
				b.until("the run in the ledger", func() bool { _, err := ledger.Load(t.Context(), b.store, b.lastTick().RunID); return err == nil })
			}
			close(wake)
			require.NoError(t, <-ended)
			assert.Equal(t, []string{"20260302T100000Z started"}, a.ticks())
			assert.NotContains(t, a.log.String(), "orchestrator_start")
			n := 0
			for _, err := range ledger.List(t.Context(), b.store) {
				require.NoError(t, err)
				n++
			}
			assert.Equal(t, 1, n)
		})
	}
}

// TestTickBehindAStartingRun keeps a tick claimed while another server is starting its
// run, and then records the outcome.
func TestTickBehindAStartingRun(t *testing.T) {
	w := newWorld(t, "done", scheduled(t, hourly))
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	id := ledger.NewRunID(at)
	require.NoError(t, store.WriteJSON(t.Context(), w.store, schedule.TickKey("hourly", at), schedule.Tick{At: at, Outcome: "claimed", ClaimedAt: at, RunID: id}))
	holder := lease.Holder{Host: "elsewhere", PID: 1, RunID: id, Job: "seed"}
	start, err := lease.Acquire(t.Context(), lease.InStore(w.store), "start/seed", holder, time.Minute)
	require.NoError(t, err)
	for range 3 {
		_, err = w.scheduler.Tick(t.Context(), at.Add(time.Minute))
		require.NoError(t, err)
		require.Equal(t, []string{"20260302T100000Z claimed"}, w.ticks())
	}
	require.NoError(t, start.Release(t.Context()))
	_, err = w.scheduler.Tick(t.Context(), at.Add(time.Minute+time.Second))
	require.NoError(t, err)
	require.Equal(t, []string{"20260302T100000Z started"}, w.ticks())
	w.ended("seed")
	_, err = ledger.Load(t.Context(), w.store, id)
	require.NoError(t, err)
}

func TestSummaries(t *testing.T) {
	s := newSlack(t)
	w := newWorld(t, "done", func(set *Settings) { set.Webhook = s.URL })
	sunday := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	for i := range 8 { // Sunday the 1st to Sunday the 8th
		at := sunday.AddDate(0, 0, i-7)
		w.put(at.Format("20060102-150405")+"-000-aaaaaaaa", "seed", ledger.Done, at, time.Minute, failing(3))
	}
	at := turn(w, sunday, 12*time.Hour, time.Minute)
	for _, m := range s.messages() {
		assert.NotContains(t, m, "2026-03-08", "the day is not over")
	}
	before := len(s.messages())
	turn(w, at.Add(2*time.Minute), 6*time.Hour, 5*time.Minute)
	got := s.messages()[before:]
	require.Len(t, got, 2, "one a day, one a week")
	assert.Equal(t, "[REPORT] daily 2026-03-08\nseed: runs 1 done; domains collected 97, domains failed 3; 200 requests, 0 dead letters", got[0])
	assert.Equal(t, "[REPORT] weekly 2026-W10\nseed: runs 7 done; domains collected 679, domains failed 21; 1400 requests, 0 dead letters", got[1])
	var sum alarm.Summary
	require.NoError(t, store.ReadJSON(t.Context(), w.store, "reports/weekly/2026-W10.json", known.MaxObject, &sum))
	assert.EqualValues(t, 679, sum.Jobs["seed"].Counts["domains_collected"])
	assert.Contains(t, w.do("GET", "/reports", "").body, "Week 2026-W10")

	next := worldAt(t, w.dir, "done", func(set *Settings) { set.Webhook = s.URL })
	require.NoError(t, dropLease(t, w.store))
	turn(next, sunday.AddDate(0, 0, 1), time.Hour, time.Minute)
	assert.Len(t, s.messages(), before+2, "a server that was started again writes none twice")
}

// ends stores a run that has ended, with an error or without.
func (w *world) ends(id, job string, state ledger.State, why error, at time.Time, tally ledger.Tally, rows any, alerts ...string) {
	w.t.Helper()
	require.NoError(w.t, ledger.Start(w.t.Context(), w.store, ledger.Run{RunID: id, Job: job, Runner: "prism", StartedAt: at}))
	run, err := ledger.Finish(w.t.Context(), w.store, id, state, why, at.Add(time.Minute))
	require.NoError(w.t, err)
	r := ledger.BuildReport(testJob(run.Job), run, tally, at.Add(time.Minute))
	r.Providers, r.Alerts = rows, nil
	for _, a := range alerts { // "site NAME: what is wrong" is about one site
		if source, text, ok := strings.Cut(strings.TrimPrefix(a, "site "), ": "); ok && strings.HasPrefix(a, "site ") {
			r.Complain("site", ledger.Complaint{Source: source, Text: text})
		} else {
			r.Alerts = append(r.Alerts, a)
		}
	}
	require.NoError(w.t, ledger.WriteReport(w.t.Context(), w.store, r))
}

// told returns the messages since the last call, without the run's id.
func (s *slack) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{}
	for _, m := range s.got {
		text, _, _ := strings.Cut(m, "\nrun ")
		out = append(out, text)
	}
	s.got = nil
	return out
}

// forgotten is how long after a source was last judged its alerts end.
const forgotten = 14 * 24 * time.Hour

// judge is a server on which runs end, and what Slack is told of them.
type judge struct {
	*world
	*slack
	at time.Time
	n  int
}

func newJudge(t *testing.T, change ...func(*Settings)) *judge {
	j := &judge{slack: newSlack(t), at: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	j.world = newWorld(t, "done", append(change, func(set *Settings) { set.Webhook = j.URL })...)
	j.now = func() time.Time { return j.at }
	j.pass(time.Minute)
	return j
}

func (j *judge) pass(span time.Duration) { j.at = turn(j.world, j.at, span, 20*time.Second) }

// ended ends a run, and compares what is told within five minutes.
func (j *judge) ended(job string, state ledger.State, why error, tally ledger.Tally, rows any, alerts []string, want ...string) {
	j.t.Helper()
	j.n++
	j.ends(fmt.Sprintf("20260302-10%04d-000-aaaaaaaa", j.n), job, state, why, j.at, tally, rows, alerts...)
	j.at = j.at.Add(time.Minute)
	j.pass(5 * time.Minute)
	require.Equal(j.t, append([]string{}, want...), j.told(), "%s %s %v", job, state, why)
}

// TestAlertsOfRuns raises an alert for failed runs, once for each reason, and judges
// rates only of complete runs.
func TestAlertsOfRuns(t *testing.T) {
	w := newJudge(t)
	then := func(_ string, state ledger.State, why error, tally ledger.Tally, want ...string) {
		t.Helper()
		w.ended("seed", state, why, tally, nil, nil, want...)
	}
	down, full := errors.New("the store is down"), errors.New("the disk is full")
	then("a run that fails at once", ledger.Failed, down, ledger.Tally{}, "[ALERT] seed failed: the store is down")
	then("again, for the same reason", ledger.Failed, down, ledger.Tally{})
	then("for another reason", ledger.Failed, full, ledger.Tally{}, "[ALERT] seed failed: the disk is full")
	then("a person stops the next", ledger.Cancelled, nil, ledger.Tally{})
	then("one is done, badly", ledger.Done, nil, failing(34), "[OVER] seed: a run is done again", "[ALERT] seed: 34.0 % of the work failed (limit 20 %)")
	then("what failed at its start ends nothing", ledger.Failed, down, ledger.Tally{}, "[ALERT] seed failed: the store is down")
	then("a part of a run is no rate", ledger.Interrupted, errors.New("stopped by a signal"), failing(1), "[ALERT] seed was interrupted: stopped by a signal")
	then("nor when all of it failed", ledger.Cancelled, nil, failing(90))
	then("all is well", ledger.Done, nil, failing(1), "[OVER] seed: a run is done again", "[OVER] seed: 1.0 % of the work failed (limit 20 %)")
	then("just over the limit", ledger.Done, nil, ledger.Tally{Counts: ledger.Counts{"domains_failed": 20001, "domains_collected": 79999}}, "[ALERT] seed: 20.001 % of the work failed (limit 20 %)")
	then("a crash", ledger.Interrupted, nil, ledger.Tally{}, "[ALERT] seed was interrupted: its log may say why")

	// Two runs that end between two ticks are both judged, in the order of their ends.
	w.ends("20260302-120002-000-aaaaaaaa", "seed", ledger.Done, nil, w.at, failing(1), nil)
	w.ends("20260302-120001-000-aaaaaaaa", "seed", ledger.Failed, down, w.at.Add(time.Second), ledger.Tally{}, nil)
	w.at = w.at.Add(2 * time.Minute)
	w.pass(5 * time.Minute)
	assert.Equal(t, []string{"[OVER] seed: a run is done again", "[OVER] seed: 1.0 % of the work failed (limit 20 %)", "[ALERT] seed failed: the store is down"}, w.told())

	// A new server announces nothing about old runs, except about the newest one.
	require.NoError(t, dropLease(t, w.store))
	require.NoError(t, w.store.Delete(t.Context(), alert.StateKey))
	next := worldAt(t, w.dir, "done", func(set *Settings) { set.Webhook = w.URL })
	turn(next, w.at.Add(time.Hour), 2*time.Minute, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] seed failed: the store is down"}, w.told())
}

// TestAlertsOfProviders raises alerts for publishers, providers and sites that were
// skipped or stopped, or whose pages can no longer be parsed.
func TestAlertsOfProviders(t *testing.T) {
	w := newJudge(t)
	then := func(job string, rows any, alerts []string, want ...string) {
		t.Helper()
		w.ended(job, ledger.Done, nil, ledger.Tally{}, rows, alerts, want...)
	}
	row := func(name, state, reason string, alerts ...string) map[string]any {
		return map[string]any{"provider": name, "state": state, "reason": reason, "alerts": alerts}
	}
	then("news", []any{row("mk", "stopped", "it answered 403"), row("bbc", "run", ""), row("cnn", "skipped", "none of its sitemaps can be read")}, []string{"provider mk was stopped"},
		"[ALERT] mk (news) was stopped: it answered 403", "[ALERT] cnn (news) was skipped: none of its sitemaps can be read")
	then("news", []any{row("mk", "stopped", "it answered 429"), row("bbc", "run", "", "bbc: no article for three runs")}, nil,
		"[ALERT] bbc (news): no article for three runs")
	then("news", []any{row("mk", "run", ""), row("bbc", "run", "")}, nil,
		"[OVER] mk (news) is open again", "[OVER] bbc (news): nothing is wrong any more")
	held := row("stripe", "held", "until tomorrow")
	held["error_rate"], held["requests"] = 100, 100 // no second alert
	then("docs", []any{held, row("go", "done", "unreachable"), row("git", "done", "max_pages", "its chunks are empty"), row("aws", "open", "")}, nil,
		"[ALERT] stripe (docs) was held: until tomorrow", "[ALERT] go (docs): unreachable",
		"[ALERT] git (docs): its chunks are empty")
	then("catalog", nil, []string{"site shop: field price no longer matches"}, "[ALERT] shop (catalog): field price no longer matches")
	then("catalog", nil, []string{"site shop: field price no longer matches", "site odd: a: b", "site odd: its list shrank"}, "[ALERT] odd (catalog): a: b; its list shrank")
	then("catalog", nil, nil, "[OVER] odd (catalog): nothing is wrong any more", "[OVER] shop (catalog): nothing is wrong any more")

	w.at = w.at.Add(forgotten - 2*time.Hour)
	w.pass(time.Minute)
	w.told() // the week's report
	then("docs", []any{row("go", "held", "until tomorrow"), row("aws", "done", "")}, nil)
	w.at = w.at.Add(2 * time.Hour)
	then("news", []any{row("mk", "run", "")}, nil, "[OVER] cnn (news): no run has judged it since 2026-03-02")
	then("docs", []any{row("aws", "done", "")}, nil, "[OVER] stripe (docs): no run has judged it since 2026-03-02",
		"[OVER] git (docs): no run has judged it since 2026-03-02")
	require.Equal(t, []string{"docs/provider/go"}, slices.Collect(maps.Keys(w.alarm.State.Firing)), "it was judged two hours ago")
}

// Only a run of the same or a wider selection ends what a run raised; each schedule has its own alerts, also for a server that
// was started again. A run that a person starts opens no schedule's alert.
func TestAlertsBySelection(t *testing.T) {
	s := newSlack(t)
	yaml := "schedules:\n  - {name: never-ok, job: seed, cron: '*/3 * * * *', options: {country: zz}}\n" +
		"  - {name: always-ok, job: seed, cron: '1-59/3 * * * *', options: {country: sg, category: policy}}\n"
	hook, file := func(set *Settings) { set.Webhook = s.URL }, scheduled(t, yaml)
	w := newWorld(t, "done", file, hook)
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	starts := func(w *world) {
		w.scheduler.Start = func(context.Context, ledger.Run, []string, string) error { return nil }
	}
	starts(w)
	at = turn(w, at, time.Minute, 20*time.Second)
	n := 0
	run := func(job, schedule string, state ledger.State, options map[string]any, want ...string) {
		t.Helper()
		n++
		r := ledger.Run{RunID: fmt.Sprintf("20260302-10%04d-000-aaaaaaaa", n), Job: job, StartedAt: at, Schedule: schedule, Options: options}
		require.NoError(t, ledger.Start(t.Context(), w.store, r))
		var why error
		if state == ledger.Failed {
			why = errors.New("nothing matches")
		}
		r, err := ledger.Finish(t.Context(), w.store, r.RunID, state, why, at.Add(time.Second))
		require.NoError(t, err)
		require.NoError(t, ledger.WriteReport(t.Context(), w.store, ledger.BuildReport(testJob(job), r, ledger.Tally{}, at.Add(time.Second))))
		at = turn(w, at.Add(time.Minute), 2*time.Minute, 20*time.Second)
		require.Equal(t, append([]string{}, want...), s.told())
	}
	zz, sg := map[string]any{"country": "zz"}, map[string]any{"country": "sg", "category": "policy"}
	const down, fine = " failed: nothing matches", ": a run is done again"
	run("seed", "never-ok", ledger.Failed, zz, "[ALERT] schedule never-ok (seed)"+down)
	run("seed", "always-ok", ledger.Done, sg)
	run("seed", "", ledger.Failed, sg, "[ALERT] seed for category policy, country sg"+down)
	run("seed", "", ledger.Done, map[string]any{"country": "zz", "date": "2026-01-28"})
	require.NoError(t, dropLease(t, w.store))
	w = worldAt(t, w.dir, "done", file, hook)
	starts(w)
	run("seed", "never-ok", ledger.Failed, zz)
	run("seed", "always-ok", ledger.Done, sg, "[OVER] seed for category policy, country sg"+fine)
	run("seed", "", ledger.Failed, zz, "[ALERT] seed for country zz"+down)
	assert.Equal(t, []string{"never-ok", ""}, []string{w.alarm.Firing()[1].Schedule, w.alarm.Firing()[0].Schedule})
	rows := w.do("GET", "/api/v1/alerts", "").json(t)["firing"].([]any)
	assert.Equal(t, "never-ok", rows[1].(map[string]any)["schedule"])
	assert.Equal(t, "country=zz", rows[0].(map[string]any)["selection"])
	assert.Contains(t, w.do("GET", "/alerts", "").body, "schedule never-ok (seed) failed: nothing matches")
	run("seed", "", ledger.Done, map[string]any{"force": "true"}, "[OVER] seed for country zz"+fine, "[OVER] schedule never-ok (seed)"+fine)

	// Lists, in any order and case. What was given at its default selects nothing.
	run("docs", "", ledger.Failed, map[string]any{"provider": "Stripe, toss,stripe"}, "[ALERT] docs for provider stripe and toss"+down)
	run("docs", "", ledger.Done, map[string]any{"provider": "stripe"})
	run("docs", "", ledger.Done, map[string]any{"url": "https://a.example/"})
	run("docs", "", ledger.Failed, map[string]any{"provider": "toss,STRIPE"})
	run("docs", "", ledger.Done, map[string]any{"provider": "git,toss,stripe", "url": ""}, "[OVER] docs for provider stripe and toss"+fine)
	run("news", "", ledger.Failed, map[string]any{"due": "false"}, "[ALERT] news"+down)
	run("news", "", ledger.Done, map[string]any{"due": "true"})
	run("news", "", ledger.Done, nil, "[OVER] news"+fine)

	// A run of another site does not say that a site is well again.
	n++
	w.ends(fmt.Sprintf("20260302-10%04d-000-aaaaaaaa", n), "catalog", ledger.Done, nil, at, ledger.Tally{}, nil, "site shop: its list shrank")
	at = turn(w, at.Add(time.Minute), 2*time.Minute, 20*time.Second)
	require.Equal(t, []string{"[ALERT] shop (catalog): its list shrank"}, s.told())
	run("catalog", "", ledger.Done, map[string]any{"site": "odd"})
	run("catalog", "", ledger.Done, map[string]any{"site": "odd,Shop"}, "[OVER] shop (catalog): nothing is wrong any more")

	// The alerts of a schedule that was removed end, and those of a selection that no run has for two weeks.
	run("seed", "never-ok", ledger.Failed, zz, "[ALERT] schedule never-ok (seed)"+down)
	run("seed", "", ledger.Failed, zz, "[ALERT] seed for country zz"+down)
	at = turn(w, at.Add(forgotten), time.Minute, 20*time.Second)
	s.told() // the week's report, and ticks
	n += 1000
	run("seed", "", ledger.Done, sg, "[OVER] seed for country zz: no run has judged it since 2026-03-02")
	require.NoError(t, dropLease(t, w.store))
	w = worldAt(t, w.dir, "done", hook)
	at = turn(w, at, time.Minute, 20*time.Second)
	assert.Contains(t, s.told(), "[OVER] schedule never-ok (seed): there is no such schedule any more")
}

// TestRemind repeats once a week, in one message, that providers of one cause are not open.
func TestRemind(t *testing.T) {
	w := newJudge(t)
	rows := func(state string) (out []map[string]any) {
		for _, id := range []string{"a", "b"} {
			out = append(out, map[string]any{"provider": id, "state": state, "reason": id + ".test refuses"})
		}
		return out
	}
	w.ended("docs", ledger.Done, nil, ledger.Tally{}, rows("blocked"), nil, "[ALERT] a (docs) was blocked: a.test refuses",
		"[ALERT] b (docs) was blocked: b.test refuses")
	still := []string{"[STILL] blocked for a week or more: a (docs): a.test refuses; and b (docs): b.test refuses"}
	later := func(days int) (out []string) {
		w.at = w.at.Add(time.Duration(days) * 24 * time.Hour)
		w.pass(time.Minute)
		for _, text := range w.told() { // between them are reports of days and weeks
			if strings.HasPrefix(text, "[STILL]") {
				out = append(out, text)
			}
		}
		return out
	}
	for range 2 {
		require.Empty(t, later(6))
		require.Equal(t, still, later(1))
	}
	w.ends("20260317-093000-000-aaaaaaaa", "docs", ledger.Done, nil, w.at, ledger.Tally{}, rows("done"))
	require.Empty(t, later(1))
	require.Empty(t, later(8))
}

// TestManySites tells in one message which of more than three sites a run found closed, or open again.
func TestManySites(t *testing.T) {
	rec := newReceiver(t)
	w := newJudge(t, func(set *Settings) { set.AlertURL, set.AlertSecret = rec.URL, alertSecret })
	run := func(blocked string, want ...string) {
		t.Helper()
		var rows []map[string]any
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			row := map[string]any{"provider": id, "state": "done"}
			if strings.Contains(blocked, id) {
				row = map[string]any{"provider": id, "state": "blocked", "reason": id + ".test refuses"}
			}
			rows = append(rows, row)
		}
		w.ended("docs", ledger.Done, nil, ledger.Tally{}, rows, nil, want...)
	}
	refuses := func(id string) string { return id + " was blocked: " + id + ".test refuses" }
	run("abcd", "[ALERT] 4 of docs: "+strings.Join([]string{refuses("a"), refuses("b"), refuses("c"), "and " + refuses("d")}, "; "))
	data := rec.got[0]["data"].([]any)
	require.Len(t, data, 4)
	require.Equal(t, map[string]any{"job": "docs", "rule": "provider", "provider": "d", "since": data[3].(map[string]any)["since"], "run_id": "20260302-100001-000-aaaaaaaa",
		"text": "it was blocked: d.test refuses"}, data[3])
	run("abcde", "[ALERT] e (docs) was blocked: e.test refuses")
	require.Equal(t, "e", rec.got[1]["data"].(map[string]any)["provider"])
	run("e", "[OVER] 4 of docs: a is open again; b is open again; c is open again; and d is open again")
	run("", "[OVER] e (docs) is open again")
}

// TestLateAndMissing raises alerts for ticks that were skipped because a run was still
// active, and for jobs without a run that was done for too long, also of the command
// line.
func TestLateAndMissing(t *testing.T) {
	s := newSlack(t)
	w := newWorld(t, "done", scheduled(t, hourly+"alerts: {seed: {freshness: 26h}, docs: {freshness: 3h}}\n"), func(set *Settings) { set.Webhook = s.URL })
	at := time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)
	w.scheduler.Start = func(context.Context, ledger.Run, []string, string) error {
		return &runs.ActiveError{RunID: "20260302-090000-000-aaaaaaaa"}
	}
	at = turn(w, at, 3*time.Hour, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] schedule hourly (seed): the run of 2026-03-02 10:00 UTC was skipped, because another run was still active"}, s.told())
	w.scheduler.Start = func(context.Context, ledger.Run, []string, string) error { return nil }
	at = turn(w, at, time.Hour, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] docs: no run was done for 3h0m20s (limit 3 h)", "[OVER] schedule hourly (seed): the run of 2026-03-02 13:00 UTC has started"}, s.told())
	w.ends("20260302-133000-000-aaaaaaaa", "docs", ledger.Done, nil, at, ledger.Tally{}, nil)
	w.ends("20260302-133000-000-bbbbbbbb", "seed", ledger.Failed, nil, at, ledger.Tally{}, nil)
	at = turn(w, at, 2*time.Hour, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] seed failed: its log may say why", "[OVER] docs: a run is done again"}, s.told())
	turn(w, at, 2*time.Hour, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] docs: the last run that was done ended 3h0m20s ago (limit 3 h)"}, s.told())
}

// TestAlertsOfSchedules announces once that ticks were missed or that a run did not
// start, and once that runs start again.
func TestAlertsOfSchedules(t *testing.T) {
	s := newSlack(t)
	hook := func(set *Settings) { set.Webhook = s.URL }
	seoul := scheduled(t, "schedules: [{name: hourly, job: seed, cron: '0 * * * *', timezone: Asia/Seoul}]\n")
	w := newWorld(t, "done", seoul, hook)
	at := time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)
	started := func(context.Context, ledger.Run, []string, string) error { return nil }
	w.scheduler.Start = started
	w.now = func() time.Time { return at }
	at = turn(w, at, time.Hour, 20*time.Second)
	assert.Empty(t, s.told(), "what starts is no news")
	at = at.Add(4 * time.Hour)
	at = turn(w, at, 2*time.Minute, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] schedule hourly (seed): 4 runs were missed, the last of 2026-03-02 23:00 KST, because no server was running or it was too slow"}, s.told())
	page := w.do("GET", "/schedules", "").body
	assert.Contains(t, page, "missed, no server was running (4 times)")
	assert.Contains(t, page, "2026-03-02 23:00 KST", "the last tick, on the schedule's own clock")
	assert.Contains(t, page, "2026-03-03 00:00 KST", "and the next")

	// Another server takes over and announces nothing twice.
	require.NoError(t, dropLease(t, w.store))
	next := worldAt(t, w.dir, "done", seoul, hook)
	next.now = w.now
	next.scheduler.Start = started
	at = turn(next, at, 5*time.Minute, 20*time.Second)
	assert.Empty(t, s.told())
	at = turn(next, at, time.Hour, 20*time.Second)
	assert.Equal(t, []string{"[OVER] schedule hourly (seed): the run of 2026-03-03 00:00 KST has started"}, s.told())
	next.scheduler.Start = func(context.Context, ledger.Run, []string, string) error { return errors.New("no such program") }
	at = turn(next, at, 2*time.Hour, 20*time.Second)
	assert.Equal(t, []string{"[ALERT] schedule hourly (seed): the run of 2026-03-03 01:00 KST did not start: no such program"}, s.told())

	// A missed tick and a started one in the same tick of the server: one message.
	next.scheduler.Start = started
	at = turn(next, at, time.Hour, 20*time.Second)
	require.Len(t, s.told(), 1)
	at = time.Date(2026, 3, 2, 21, 0, 30, 0, time.UTC)
	at = turn(next, at, 3*time.Minute, 20*time.Second)
	assert.Len(t, s.told(), 1)
	assert.Empty(t, next.alarm.Firing())

	// The alert of a removed schedule ends.
	at = at.Add(5*time.Hour + 30*time.Minute)
	at = turn(next, at, time.Minute, 20*time.Second)
	require.Len(t, s.told(), 1)
	require.NoError(t, dropLease(t, w.store))
	last := worldAt(t, w.dir, "done", hook)
	turn(last, at, 2*time.Minute, 20*time.Second)
	assert.Equal(t, []string{"[OVER] schedule hourly (seed): there is no such schedule any more"}, s.told())
}

// TestRetention removes runs that ended long ago, with all of their objects, and dead
// letters whose last failure was long ago.
func TestRetention(t *testing.T) {
	for yaml, want := range map[string][]string{
		"":                        {"20260101-100000-000-aaaaaaaa", "20260301-100000-000-aaaaaaaa"},
		"retention: {days: 10}\n": {"20260301-100000-000-aaaaaaaa"},
		"retention: {days: 0}\n":  {"20250101-100000-000-aaaaaaaa", "20260101-100000-000-aaaaaaaa", "20260301-100000-000-aaaaaaaa"},
	} {
		w := newWorld(t, "done", scheduled(t, yaml))
		now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
		w.now = func() time.Time { return now }
		for _, at := range []time.Time{now.AddDate(-1, -2, -1), now.AddDate(0, -2, -1), now.AddDate(0, 0, -1)} {
			w.put(at.Format("20060102-150405")+"-000-aaaaaaaa", "seed", ledger.Done, at, time.Minute, sampleTally())
		}
		turn(w, now, time.Minute, time.Second)
		var ids []string
		for r, err := range ledger.List(t.Context(), w.store) {
			require.NoError(t, err)
			ids = append([]string{r.RunID}, ids...)
		}
		assert.Equal(t, want, ids, yaml)
		for o, err := range w.store.List(t.Context(), "runs/2025") {
			require.NoError(t, err)
			assert.Len(t, want, 3, "what is left of a run that is gone: %s", o.Key)
		}
	}
}

// TestDeadLettersStay shows a run's dead letters on its page, also when a later run
// has failed with the same inputs, and all open ones in one list.
func TestDeadLettersStay(t *testing.T) {
	w := newWorld(t, "done")
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	first, second := "20260302-100000-000-aaaaaaaa", "20260302-110000-000-bbbbbbbb"
	tally := ledger.Tally{DeadLetters: ledger.Counts{"bad_file": 2}}
	w.put(first, "seed", ledger.Done, at, time.Minute, tally)
	w.put(second, "seed", ledger.Done, at.Add(time.Hour), time.Minute, ledger.Tally{DeadLetters: ledger.Counts{"bad_file": 1}})
	file := func(job, name, run string) ledger.DeadLetter {
		d := ledger.DeadLetter{Job: job, RunID: run, Kind: "bad_file", Input: ledger.Input{File: name}, Error: "broken " + name}
		require.NoError(t, ledger.Put(t.Context(), w.store, d))
		return d
	}
	done := file("seed", "done.json", first)
	file("seed", "again.json", first)
	again := file("seed", "again.json", second)
	file("news", "other.json", "20260302-120000-000-cccccccc")
	require.NoError(t, w.board.Refresh(t.Context(), at.Add(2*time.Hour)))
	inputs := func(path string) (out []string) {
		for _, d := range w.do("GET", path, "").json(t)["dead_letters"].([]any) {
			out = append(out, d.(map[string]any)["input"].(map[string]any)["file"].(string))
		}
		slices.Sort(out)
		return out
	}
	assert.Equal(t, []string{"again.json", "done.json"}, inputs("/api/v1/runs/"+first+"/dead-letters"))
	assert.Equal(t, []string{"again.json"}, inputs("/api/v1/runs/"+second+"/dead-letters"))
	assert.Equal(t, []string{"again.json", "done.json", "other.json"}, inputs("/api/v1/dead-letters"))
	assert.Equal(t, []string{"other.json"}, inputs("/api/v1/dead-letters?job=news"))
	assert.Equal(t, 400, w.do("GET", "/api/v1/dead-letters?job=sow", "").code)
	page := w.do("GET", "/runs/"+first, "").body
	assert.Contains(t, page, "It left 2, all of them open.")
	assert.Contains(t, page, "broken again.json")
	assert.Contains(t, page, `by <a href="/runs/`+second+`">a later run</a>`)
	assert.Contains(t, w.do("GET", "/dead-letters", "").body, "broken other.json")
	assert.NotContains(t, w.do("GET", "/dead-letters?job=seed", "").body, "broken other.json")

	require.NoError(t, ledger.Remove(t.Context(), w.store, "seed", done.ID()))
	assert.Contains(t, w.do("GET", "/runs/"+first, "").body, "It left 2; 1 of them are open")
	require.NoError(t, ledger.Remove(t.Context(), w.store, "seed", again.ID()))
	assert.Contains(t, w.do("GET", "/runs/"+first, "").body, "It left 2; none of them is open any more.")
}
