package server

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/schedule"
)

const onPage = 50 // runs or dead letters

// frontWorld has runs of two weeks before Wednesday, 4 March 2026.
func frontWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "done", func(set *Settings) {
		c, err := ParseConfig([]byte("schedules: [{name: nightly, job: seed, cron: '0 3 * * *', timezone: Asia/Seoul}, {name: hourly, job: news, cron: '0 * * * *'}]"), testJobs())
		require.NoError(t, err)
		set.Config = c
	})
	w.now = func() time.Time { return time.Date(2026, 3, 4, 12, 30, 0, 0, time.UTC) }
	put := func(at, job string, state ledger.State) {
		started, err := time.Parse("2006-01-02 15:04", at)
		require.NoError(t, err)
		id := started.Format("20060102-150405") + "-000-0a1b2c3d"
		require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: id, Job: job, StartedAt: started, Options: map[string]any{"country": "sg"}}))
		run, err := ledger.Finish(t.Context(), w.store, id, state, map[bool]error{true: fmt.Errorf("the %s store refused <b>", job)}[state == ledger.Failed], started.Add(time.Minute))
		require.NoError(t, err)
		require.NoError(t, ledger.WriteReport(t.Context(), w.store, ledger.BuildReport(testJob(job), run, sampleTally(), run.FinishedAt)))
	}
	put("2026-02-20 10:00", "seed", ledger.Done)
	put("2026-03-02 10:00", "news", ledger.Failed)
	put("2026-03-03 10:00", "seed", ledger.Done)
	put("2026-03-03 11:00", "seed", ledger.Failed)
	put("2026-03-03 12:00", "docs", ledger.Interrupted)
	put("2026-03-04 10:00", "docs", ledger.Done)
	require.NoError(t, w.board.Refresh(t.Context(), w.now()))
	_, err := w.scheduler.Refresh(t.Context(), w.now())
	require.NoError(t, err)
	return w
}

// section is the text of a part of a page, without tags.
func section(t *testing.T, page, live string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `data-live="`+live+`">`)
	require.True(t, found, live)
	part, _, _ := strings.Cut(rest, "</section>")
	part = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(part, " ")
	return strings.Join(strings.Fields(part), " ")
}

func TestFrontAnswers(t *testing.T) {
	w := frontWorld(t)
	page := w.do("GET", "/", "").body
	assert.Equal(t, "Now No run is active.", section(t, page, "active"))
	assert.Equal(t, "Failed since yesterday docs: 1 run interrupted No reason was given; the log may say why. Since then 20260304-100000-000-0a1b2c3d was done. "+
		"seed: 1 run failed the seed store refused &lt;b&gt; No later run of this job is done yet.", section(t, page, "failed"))
	strips := section(t, page, "strips")
	assert.Contains(t, strips, "nightly seed No result yet. Next in 5 h 30 min No run yet hourly news No result yet. Next in 30 min No run yet Runs without a schedule docs")
	assert.Contains(t, strips, "seed ✓ 2026-02-20 10:00 UTC: done after 1m0s ✓ 2026-03-03 10:00 UTC: done after 1m0s ✗ 2026-03-03 11:00 UTC: failed after 1m0s: the seed store refused")
	tick := schedule.Tick{At: time.Date(2026, 3, 3, 18, 0, 0, 0, time.UTC), Outcome: "missed", Missed: 2}
	require.NoError(t, store.WriteJSON(t.Context(), w.store, schedule.TickKey("nightly", tick.At), tick))
	_, err := w.scheduler.Tick(t.Context(), w.now())
	require.NoError(t, err)
	w.board.Change()
	assert.Contains(t, section(t, w.do("GET", "/", "").body, "strips"),
		"nightly seed No result; late by 18 h . Next in 5 h 30 min ○ 2026-03-04 03:00 KST: missed, no server was running (2 times)")
	row := w.scheduleRow("nightly")
	assert.Equal(t, map[string]any{"at": "2026-03-03T18:00:00Z", "outcome": "missed", "missed": 2.0}, row["last"])
	assert.Equal(t, []any{row["last"]}, row["recent"])
	assert.Equal(t, []any{nil, (18*time.Hour + 30*time.Minute).Seconds()}, []any{row["newest_result_at"], row["late_s"]})
	w.scheduler.Plans[0].Kept.Paused = true
	w.board.Change()
	assert.Contains(t, section(t, w.do("GET", "/", "").body, "strips"), "nightly seed No result. paused", "a paused schedule is not late")
}

func TestRunFilter(t *testing.T) {
	w := frontWorld(t)
	for query, want := range map[string][]string{
		"job=docs":                       {"20260304-10", "20260303-12"},
		"state=failed":                   {"20260303-11", "20260302-10"},
		"state=failed&job=seed":          {"20260303-11"},
		"from=2026-03-03&to=2026-03-03":  {"20260303-12", "20260303-11", "20260303-10"},
		"to=2026-03-02":                  {"20260302-10", "20260220-10"},
		"text=NEWS+store":                {"20260302-10"},
		"text=country%3Dsg&state=failed": {"20260303-11", "20260302-10"},
		"text=nothing-like-that":         nil,
	} {
		var got []string
		for _, r := range w.do("GET", "/api/v1/runs?"+query, "").json(t)["runs"].([]any) {
			got = append(got, r.(map[string]any)["run_id"].(string)[:11])
		}
		assert.Equal(t, want, got, query)
		page := section(t, w.do("GET", "/runs?"+query, "").body, "runs")
		for _, id := range want {
			assert.Contains(t, page, id, query)
		}
		assert.Equal(t, len(want) == 0, strings.Contains(page, "The filter chooses none of the newest 1,000 runs."), query)
	}
	for _, query := range []string{"state=x", "from=x", "to=2026-02-30", "text=" + strings.Repeat("x", 201), "job=x", "before=.."} {
		assert.Equal(t, http.StatusBadRequest, w.do("GET", "/api/v1/runs?"+query, "").code, query)
		assert.Equal(t, http.StatusBadRequest, w.do("GET", "/runs?"+query, "").code, query)
	}
	for _, name := range []string{"job", "state", "from", "to", "text", "before"} {
		assert.Equal(t, http.StatusBadRequest, w.do("GET", "/api/v1/runs?"+name+"=", "").code, "a program leaves out what it does not mean: %s", name)
	}
	assert.Equal(t, http.StatusOK, w.do("GET", "/runs?job=&state=&from=&to=&text=", "").code, "a form sends its empty fields")
}

func TestStartPage(t *testing.T) {
	w := newWorld(t, "done")
	all := w.do("GET", "/start", "").body
	one := w.do("GET", "/start?job=seed&country=sg&force=true&category=%22%3E%3Cb%3E", "").body
	for _, j := range known.JobsOf(testJobs()).Started() {
		form := `<input type="hidden" name="job" value="` + j.Name + `">`
		assert.Contains(t, all, form)
		assert.Equal(t, j.Name == "seed", strings.Contains(one, form), j.Name)
	}
	assert.Contains(t, one, `name="country" value="sg"`)
	assert.Contains(t, one, `name="force" value="true" checked`)
	assert.NotContains(t, one, `"><b>`)
	assert.NotContains(t, all, "checked")
	assert.Equal(t, http.StatusBadRequest, w.do("GET", "/start?job=x", "").code)
	assert.NotContains(t, w.do("GET", "/", "").body, `<form method="post" action="/runs"`)
}

// Before a run is cancelled a page asks.
func TestCancelAsks(t *testing.T) {
	w := newWorld(t, "wait")
	id := w.start("/api/v1/docs/runs", "")
	w.reaches(id, "running")
	asks := `<form method="get" action="/runs/` + id + `/cancel">`
	assert.Contains(t, w.do("GET", "/runs/"+id, "").body, asks)
	page := w.do("GET", "/runs/"+id+"/cancel", "").body
	assert.Contains(t, page, "Cancel run "+id+"?")
	assert.Contains(t, page, `<form method="post" action="/runs/`+id+`/cancel"`)
	assert.Contains(t, page, `<a href="/runs/`+id+`">No, go back</a>`)
	require.NoError(t, w.board.Refresh(t.Context(), time.Now().Add(time.Minute)))
	assert.Equal(t, "running", w.do("GET", "/api/v1/runs/"+id, "").json(t)["state"], "asking changes nothing")
	assert.Equal(t, http.StatusSeeOther, w.do("POST", "/runs/"+id+"/cancel", "").code)
	w.ended("docs")
	w.reaches(id, "cancelled")
	assert.Equal(t, http.StatusConflict, w.do("GET", "/runs/"+id+"/cancel", "").code)
}

// The page and the API choose dead letters of all runs by the same filter, and the link
// to older ones keeps it.
func TestDeadLetterFilter(t *testing.T) {
	w := newWorld(t, "done")
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for i := range onPage + 5 {
		kind := []string{"bad_file", "store_failed"}[i%2]
		require.NoError(t, ledger.Put(t.Context(), w.store, ledger.DeadLetter{Job: "seed", RunID: "r1", Kind: kind, LastAt: at, Input: ledger.Input{DomainID: fmt.Sprintf("d%d.sg", i)}, Error: "no"}))
	}
	require.NoError(t, ledger.Put(t.Context(), w.store, ledger.DeadLetter{Job: "news", RunID: "r2", Kind: "not_html", LastAt: at.AddDate(0, 0, 1), Input: ledger.Input{URL: "https://x.kr/"}, Error: "A Picture"}))
	shut := ledger.DeadLetter{Job: "news", RunID: "r9", Kind: "not_html", LastAt: at, Input: ledger.Input{URL: "https://y.kr/"}, Error: "A Picture"}
	require.NoError(t, ledger.Put(t.Context(), w.store, shut))
	_, err := ledger.Dismiss(t.Context(), w.store, "news", shut.ID(), &ledger.Dismissal{At: at, By: "kim", Note: "known"})
	require.NoError(t, err)
	for query, want := range map[string]int{
		"state=dismissed": 1, "state=all&job=news": 2, "job=news": 1, "kind=not_html": 1, "kind=store_failed": 27, "run=r1": onPage + 5, "run=r2": 1, "from=2026-03-03": 1, "to=2026-03-02": onPage + 5, "text=picture": 1, "text=none+has+this": 0,
	} {
		assert.Len(t, w.do("GET", "/api/v1/dead-letters?"+query, "").json(t)["dead_letters"], want, query)
		page := w.do("GET", "/dead-letters?"+query, "").body
		assert.Equal(t, min(want, onPage), strings.Count(page, `<td class="n" data-label="Tries">1</td>`), query)
	}
	page := w.do("GET", "/dead-letters?run=r1", "").body
	link := regexp.MustCompile(`href="(/dead-letters\?[^"]*after=[^"]*)"`).FindStringSubmatch(page)
	require.NotNil(t, link, page)
	older := w.do("GET", strings.ReplaceAll(link[1], "&amp;", "&"), "").body
	assert.Equal(t, 5, strings.Count(older, `<td class="n" data-label="Tries">1</td>`))
	assert.NotContains(t, older, "not html", "the filter stays")
	for _, query := range []string{"job=x", "kind=X", "run=..", "state=x", "from=x", "after=x", "text=" + strings.Repeat("x", 201)} {
		assert.Equal(t, http.StatusBadRequest, w.do("GET", "/api/v1/dead-letters?"+query, "").code, query)
		assert.Equal(t, http.StatusBadRequest, w.do("GET", "/dead-letters?"+query, "").code, query)
	}
	assert.Equal(t, http.StatusOK, w.do("GET", "/dead-letters?job=&kind=&run=&from=&to=&text=", "").code)
}
