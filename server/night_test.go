package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// nightRun is who runs what in TestNights.
type nightRun struct {
	job, schedule, by string
	options           map[string]any
	who               string // in messages
}

var (
	zz, sg, news = map[string]any{"country": "zz"}, map[string]any{"country": "sg"}, map[string]any{"country": "zz", "category": "news"}
	nightRuns    = map[string]nightRun{
		"A": {"seed", "a", "", zz, "schedule a (seed)"},
		"B": {"seed", "b", "", sg, "schedule b (seed)"},
		"N": {"seed", "n", "", news, "schedule n (seed)"},
		"W": {"seed", "w", "", nil, "schedule w (seed)"},
		"C": {"seed", "c", "", zz, "schedule c (seed)"},
		"z": {"seed", "", "", zz, "seed for country zz"},
		"s": {"seed", "", "", sg, "seed for country sg"},
		"n": {"seed", "", "", news, "seed for category news, country zz"},
		"w": {"seed", "", "", nil, "seed"},
		"d": {"docs", "", "", map[string]any{"provider": "stripe"}, "docs for provider stripe"},
		"e": {"docs", "", "", map[string]any{"provider": "toss,Stripe"}, "docs for provider stripe and toss"},
		"f": {"docs", "", "", nil, "docs"},
		// A person by a form: of a part, of all, and a schedule's run now.
		"P": {"seed", "", ledger.Person, zz, "?"},
		"Q": {"seed", "", ledger.Person, nil, "?"},
		"R": {"seed", "a", ledger.Person, zz, "?"},
	}
	// nightEnds are the ends of runs, with what a message says.
	nightEnds = map[byte]struct {
		state     ledger.State
		why, says string
	}{
		'+': {ledger.Done, "", ": a run is done again"},
		'-': {ledger.Failed, "nothing matches", " failed: nothing matches"},
		'8': {ledger.Failed, "dial tcp 127.0.0.1:40018: refused", " failed: dial tcp 127.0.0.1:40018: refused"},
		'9': {ledger.Failed, "dial tcp 127.0.0.1:40019: refused", " failed: dial tcp 127.0.0.1:40019: refused"},
		'~': {ledger.Interrupted, "stopped by a signal.", " was interrupted: stopped by a signal"},
		'/': {ledger.Cancelled, "", ""},
		'#': {ledger.Failed, "the run did not begin: --country=ZZ: two lower-case letters (exit status 2)",
			" did not begin: country=ZZ: two lower-case letters"},
	}
)

// TestNights has sequences of runs and what each one sends: A-!A is a run of A that fails and raises A's alert, B+=A is one of B
// that is done and ends it. Between them the server starts again (restart), another one leads (second), the schedule A is
// renamed C (rename) or removed (remove).
func TestNights(t *testing.T) {
	for about, nights := range map[string]string{
		"one night after another":                        "A-!A A- A- A+=A A+ A-!A",
		"another schedule of the job is done":            "A-!A B+ A- B+ A- B+ A+=A",
		"two schedules fail, each for itself":            "A-!A B-!B A+=A B- B+=B",
		"a hand-started run of another part is done":     "A-!A s+ A- s+ A+=A",
		"a narrower run is done":                         "A-!A n+ A- N+ A+=A",
		"a wider run is done":                            "N-!N A+=N N-!N W+=N",
		"an equal run is done":                           "A-!A z+=A A-!A",
		"all of it is done":                              "A-!A B-!B w+=A=B",
		"nothing narrower ends an alert about all":       "W-!W A+ B+ z+ W- w+=W",
		"an unattended run of a part":                    "z-!z s+ n+ z- z+=z",
		"an unattended run and a schedule of one part":   "z-!z A-!A A+=A=z",
		"a schedule and a person's run of one part":      "A-!A P- P+=A",
		"a typo in the start form":                       "P# P- Q- Q+",
		"a person's typo while a schedule fails":         "A-!A P# A- A+=A",
		"a person runs all":                              "A-!A n-!n Q- Q+=n=A",
		"run now of a schedule that fails":               "A-!A R- R+=A",
		"run now fails where the schedule is well":       "A+ R- A+ A-!A",
		"another reason is news":                         "A-!A A#!A A# A-!A A+=A",
		"another port is no news":                        "A8!A A9 A8 A+=A",
		"a run that did not begin":                       "A#!A A# A+=A",
		"interrupted, then resumed by the next run":      "A~!A A+=A",
		"interrupted, resumed, interrupted":              "A~!A A~ A+=A A~!A",
		"resumed by a person":                            "A~!A P+=A",
		"a person cancels the next":                      "A-!A A/ A- A/ A+=A",
		"cancelled alone":                                "A/ z/ P/ A+",
		"the server starts again":                        "A-!A restart A- restart B+ restart A+=A",
		"the server starts again while nothing fires":    "A-!A A+=A restart A+ A-!A",
		"another server leads":                           "A-!A second B+ A- second A+=A",
		"another server leads, back and forth":           "A-!A second B-!B second A+=A second B+=B",
		"a schedule is renamed":                          "A-!A rename=A C-!C A+=C",
		"a schedule is renamed and is well":              "A-!A rename=A C+ C-!C C+=C",
		"a schedule is removed":                          "A-!A remove=A z+ B+",
		"a schedule is removed, its part failed unasked": "z-!z A-!A remove=A z+=z",
		"lists of names":                                 "e-!e d+ f+=e d-!d e+=d",
		"jobs have nothing to do with each other":        "f-!f w+ A+ f+=f",
	} {
		t.Run(about, func(t *testing.T) { playNights(t, nights) })
	}
}

const nightFile = `public_url: https://seed.example/
schedules:
  - {name: b, job: seed, cron: '0 0 1 1 *', options: {country: sg}}
  - {name: n, job: seed, cron: '0 0 1 1 *', options: {country: zz, category: news}}
  - {name: w, job: seed, cron: '0 0 1 1 *'}
`

func playNights(t *testing.T, nights string) {
	const a, c = "  - {name: a, job: seed, cron: '0 0 1 1 *', options: {country: zz}}\n", "  - {name: c, job: seed, cron: '0 0 1 1 *', options: {country: zz}}\n"
	s, file := newSlack(t), nightFile+a
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	w := newWorld(t, "done", scheduled(t, file), func(set *Settings) { set.Webhook = s.URL })
	at = turn(w, at, time.Minute, 20*time.Second)
	again := func(drop bool) {
		if drop {
			require.NoError(t, dropLease(t, w.store))
		}
		w = worldAt(t, w.dir, "done", scheduled(t, file), func(set *Settings) { set.Webhook = s.URL })
		at = turn(w, at, time.Minute, 20*time.Second)
	}
	for n, step := range strings.Fields(nights) {
		id := fmt.Sprintf("20260302-10%04d-000-aaaaaaaa", n)
		var says, rest string
		switch {
		case strings.HasPrefix(step, "restart"), strings.HasPrefix(step, "second"):
			again(true)
			continue
		case strings.HasPrefix(step, "rename"), strings.HasPrefix(step, "remove"):
			file = nightFile
			if rest = step[len("rename"):]; strings.HasPrefix(step, "rename") {
				file += c
			}
			again(true)
			says = ": there is no such schedule any more"
		default:
			r, end := nightRuns[step[:1]], nightEnds[step[1]]
			says, rest = end.says, step[2:]
			run := ledger.Run{RunID: id, Job: r.job, StartedAt: at, Schedule: r.schedule, StartedBy: r.by, Options: r.options}
			require.NoError(t, ledger.Start(t.Context(), w.store, run))
			var why error
			if end.why != "" {
				why = errors.New(end.why)
			}
			run, err := ledger.Finish(t.Context(), w.store, id, end.state, why, at.Add(time.Second))
			require.NoError(t, err)
			require.NoError(t, ledger.WriteReport(t.Context(), w.store, ledger.BuildReport(testJob(r.job), run, ledger.Tally{}, at.Add(time.Second))))
			at = turn(w, at.Add(time.Minute), time.Minute, 20*time.Second)
		}
		var want []string
		for ; rest != ""; rest = rest[2:] {
			word, link := map[byte]string{'!': "ALERT", '=': "OVER"}[rest[0]], id
			if strings.HasPrefix(step, "re") {
				link = "20260302-100000-000-aaaaaaaa" // the run that raised it
				if nightRuns[rest[1:2]].schedule != "a" || strings.HasPrefix(nights, "z-") {
					link = "20260302-100001-000-aaaaaaaa"
				}
			}
			want = append(want, "["+word+"] "+nightRuns[rest[1:2]].who+says+"\nhttps://seed.example/runs/"+link)
		}
		got := s.messages()
		s.mu.Lock()
		s.got = nil
		s.mu.Unlock()
		require.Equal(t, append([]string{}, want...), got, "%s: step %d, %s", nights, n+1, step)
		for _, m := range got {
			t.Log(step, strings.ReplaceAll(m, "\n", " ⏎ "))
		}
	}
}

// What is over is listed with its end, and a test message reaches one channel.
func TestPastAlertsAndChannels(t *testing.T) {
	s, rec := newSlack(t), newReceiver(t)
	w := newWorld(t, "done", func(set *Settings) { set.Webhook, set.AlertURL, set.AlertSecret = s.URL, rec.URL, alertSecret })
	now := at(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), w)
	now = at(turn(w, now, time.Minute, 20*time.Second), w)
	for n, state := range []ledger.State{ledger.Failed, ledger.Done} {
		w.ends(fmt.Sprintf("20260302-10000%d-000-aaaaaaaa", n), "seed", state, nil, now, ledger.Tally{}, nil)
		now = at(turn(w, now.Add(time.Minute), time.Minute, 20*time.Second), w)
	}
	list := w.do("GET", "/api/v1/alerts", "").json(t)
	require.Equal(t, []any{map[string]any{"job": "seed", "rule": "run_failed", "run_id": "20260302-100000-000-aaaaaaaa", "since": "2026-03-02T10:02:00Z",
		"text": "its log may say why", "until": "2026-03-02T10:04:00Z", "over": "a run is done again"}}, list["past"])
	require.Contains(t, list["rules"], map[string]any{"job": "seed", "rule": "failure_rate", "text": "more than 20 % of the work failed"})
	page := section(t, w.do("GET", "/alerts", "").body, "channels")
	require.Contains(t, page, "Send a test to slack")
	require.Contains(t, w.do("GET", "/alerts", "").body, "seed failed: its log may say why")

	s.told()
	require.Equal(t, http.StatusSeeOther, w.form("/alerts/channels/slack/test", "").code)
	require.Equal(t, []string{"[TEST] This channel works: somebody tried it on the page of alerts"}, s.told())
	require.Contains(t, w.do("GET", "/alerts?tested=slack", "").body, "slack has taken the test message")
	require.NotContains(t, w.do("GET", "/alerts?tested=other", "").body, "has taken")
	require.Equal(t, "sent", w.do("POST", "/api/v1/alerts/channels/webhook/test", "").json(t)["status"])
	require.Equal(t, "test", rec.got[len(rec.got)-1]["type"])
	require.Equal(t, http.StatusNotFound, w.do("POST", "/api/v1/alerts/channels/email/test", "").code)
	s.breakDown(true)
	got := w.do("POST", "/api/v1/alerts/channels/slack/test", "")
	require.Equal(t, http.StatusBadGateway, got.code)
	require.Contains(t, got.body, "slack did not take the test message: the webhook answered 500")
	require.Contains(t, w.asked(), "alerts_test slack")
}

// A run of a form is a person's, also where it takes the place of a schedule's. One of the API is not.
func TestStartedBy(t *testing.T) {
	w := newWorld(t, "done", scheduled(t, hourly))
	for n, start := range []func() answer{
		func() answer { return w.form("/runs", "job=seed") },
		func() answer { return w.form("/schedules/hourly/run", "") },
		func() answer { return w.do("POST", "/api/v1/schedules/hourly/run", "") },
		func() answer { return w.do("POST", "/api/v1/seeds/orchestrate", "") },
	} {
		got := start()
		require.Less(t, got.code, 400, got.body)
		w.ended("seed")
		w.until("the run's end", func() bool { r := w.board.Runs(); return len(r) == n+1 && r[0].State() == "done" })
		row := w.do("GET", "/api/v1/runs", "").json(t)["runs"].([]any)[0].(map[string]any)
		require.Equal(t, [][]any{{nil, "person"}, {"hourly", "person"}, {"hourly", nil}, {nil, nil}}[n], []any{row["schedule"], row["started_by"]})
	}
}

// A run of a person that goes badly tells the person, on its page, and no channel.
func TestPersonIsTold(t *testing.T) {
	w := newJudge(t)
	for id, by := range map[string]string{"20260302-100001-000-aaaaaaaa": ledger.Person, "20260302-100002-000-aaaaaaaa": ""} {
		require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: id, Job: "seed", StartedAt: w.at, StartedBy: by}))
		run, err := ledger.Finish(t.Context(), w.store, id, ledger.Done, nil, w.at.Add(time.Second))
		require.NoError(t, err)
		require.NoError(t, ledger.WriteReport(t.Context(), w.store, ledger.BuildReport(testJob("seed"), run, failing(34), w.at.Add(time.Second))))
		w.at = w.at.Add(time.Minute)
		w.pass(time.Minute)
		const wrong = "34.0 % of the work failed (limit 20 %)"
		if by == "" {
			require.Equal(t, []string{"[ALERT] seed: " + wrong}, w.told())
		} else {
			require.Empty(t, w.told())
		}
		head := section(t, w.do("GET", "/runs/"+id, "").body, "head")
		require.Equal(t, by != "", strings.Contains(head, "Alerts of this run seed: "+wrong), head)
	}
}
