package server

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// The form offers what there is. A refusal is next to its field, and what was written stays.
func TestStartForm(t *testing.T) {
	w := newWorld(t, "done", func(set *Settings) {
		set.Runs.Offer = func(_ context.Context, job string) (map[string][]string, error) {
			return map[string]map[string][]string{"seed": {"country": {"fr", "sg"}}, "docs": {"provider": {"stripe", "toss"}}}[job], nil
		}
		set.Runs.Refuse = func(_ context.Context, job string, flags []string, _ bool) error {
			switch given := strings.Join(flags, " "); {
			case strings.HasPrefix(given, "--country=zz"):
				return wrongUsage{errors.New(`no raw file matches --country="zz" --category="" --date=""`)}
			case given == "--provider=stripe,tos":
				return wrongUsage{errors.New("--provider=tos: there is no such provider; known are stripe, toss")}
			}
			return wrongUsage{errors.New("add --contact=URL")}
		}
	})
	page := w.do("GET", "/start", "").body
	assert.Contains(t, page, `list="seed-country-offered"`)
	assert.Contains(t, page, `<datalist id="seed-country-offered"><option value="fr"></option><option value="sg"></option></datalist>`)
	assert.Contains(t, page, `<label><input type="checkbox" name="provider" value="toss"> toss</label>`)
	assert.Contains(t, w.do("GET", "/start?job=docs&provider=toss,x", "").body, `name="provider" value="toss" checked>`)

	send := func(body string) string {
		t.Helper()
		a := w.form("/runs", body, "Accept", "text/html")
		assert.Equal(t, http.StatusBadRequest, a.code, a.body)
		return a.body
	}
	wrong := func(page string) string {
		return strings.Join(regexp.MustCompile(`id="([a-z_-]+-wrong)">[^<]*|Nothing was started: [^<]*`).FindAllString(page, -1), "|")
	}
	page = send("job=seed&country=zz&force=true")
	assert.Equal(t, `id="seed-country-wrong">no raw file matches --country=&#34;zz&#34; --category=&#34;&#34; --date=&#34;&#34;`, wrong(page))
	assert.Contains(t, page, `name="country" value="zz"`)
	assert.Contains(t, page, `name="force" value="true" checked`)
	page = send("job=docs&provider=stripe&provider=tos")
	assert.Equal(t, `id="docs-provider-wrong">--provider=tos: there is no such provider; known are stripe, toss`, wrong(page))
	assert.Contains(t, page, `name="provider" value="stripe" checked>`)
	assert.Contains(t, page, `name="provider" value="tos"`, "in the field for others")
	page = send("job=seed&country=ZZ&date=yesterday")
	assert.Regexp(t, `^id="seed-country-wrong">[^|]*two lower-case letters[^|]*\|id="seed-date-wrong">that is no day; write YYYY-MM-DD$`, wrong(page))
	assert.Contains(t, page, `value="yesterday"`)
	assert.Equal(t, "Nothing was started: add --contact=URL", strings.TrimSpace(wrong(send("job=seed"))))
	assert.Contains(t, w.form("/runs", "job=none", "Accept", "text/html").body, "there is no such job")
}

// A run that failed before it did anything shows why, and leads to the form with its options: no zeros.
func TestNothingDone(t *testing.T) {
	w := newWorld(t, "done")
	now := time.Now()
	require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: "20260128-093000-000-0a1b2c3d", Job: "seed", StartedAt: now}))
	run, err := ledger.Finish(t.Context(), w.store, "20260128-093000-000-0a1b2c3d", ledger.Failed, errors.New("the run did not begin"), now)
	require.NoError(t, err)
	require.NoError(t, ledger.WriteReport(t.Context(), w.store, ledger.BuildReport(testJob("seed"), run, ledger.Tally{}, now)))
	page := w.do("GET", "/runs/20260128-093000-000-0a1b2c3d", "").body
	assert.Contains(t, page, "It requested nothing and changed nothing.")
	assert.Contains(t, page, `class="button" href="/start?job=seed`)
	assert.NotContains(t, page, "Answers by status")
	w.put("20260128-093000-000-0a1b2c3e", "seed", ledger.Failed, now, time.Second, ledger.Tally{}) // it has lanes
	page = w.do("GET", "/runs/20260128-093000-000-0a1b2c3e", "").body
	assert.NotContains(t, page, "It requested nothing")
	assert.Contains(t, page, "Answers by status")
}

// Times are in UTC, or in the zone of the cookie that the switch sets.
func TestZone(t *testing.T) {
	w := newWorld(t, "done")
	w.put("20260128-093000-000-0a1b2c3d", "seed", ledger.Done, time.Date(2026, 1, 28, 18, 30, 0, 0, time.UTC), time.Minute, sampleTally())
	at := func(header ...string) string {
		return strings.Join(regexp.MustCompile(`started <time[^>]*>[^<]*|data-zone="">[^<]*`).FindAllString(
			w.do("GET", "/runs/20260128-093000-000-0a1b2c3d", "", header...).body, -1), "|")
	}
	const moment = `started <time datetime="2026-01-28T18:30:00Z">`
	assert.Equal(t, moment+`2026-01-28 18:30:00|data-zone="">UTC`, at())
	a := w.do("GET", "/zone?zone=Asia/Seoul", "", "Referer", "http://127.0.0.1:8787//evil.example/runs?job=seed")
	assert.Equal(t, "/evil.example/runs?job=seed", a.header.Get("Location"), "it stays on this server")
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	require.Equal(t, "seed_zone=Asia/Seoul", cookie)
	assert.Equal(t, moment+`2026-01-29 03:30:00|data-zone="">Asia/Seoul`, at("Cookie", cookie))
	assert.Equal(t, moment+`2026-01-28 18:30:00|data-zone="">UTC`, at("Cookie", "seed_zone=../x"))
	for _, zone := range []string{"Seoul", "Local", "../../etc"} {
		a := w.do("GET", "/zone?zone="+zone, "", "Accept", "text/html")
		assert.Equal(t, http.StatusBadRequest, a.code)
		assert.Contains(t, a.body, "use a name such as Asia/Seoul")
	}
	assert.Equal(t, "/", w.do("GET", "/zone?zone=UTC", "", "Referer", "https://elsewhere.example/x").header.Get("Location"))
}

// Prometheus' own parser reads the metrics, and its linter finds nothing in their names.
func TestMetricsAreWellFormed(t *testing.T) {
	w := newWorld(t, "done")
	tally := sampleTally()
	tally.HTTP.Retries, tally.Timings = 7, ledger.Histogram{}
	tally.Timings.Observe(time.Second)
	tally.Timings.Observe(3 * time.Second)
	tally.Count("files_listed", 4)
	tally.Count("odd \"name\"\n", 1)
	w.put("20260128-093000-000-0a1b2c3d", "seed", ledger.Done, time.Now(), time.Minute, tally)
	require.NoError(t, w.board.Refresh(t.Context(), time.Now()))
	text := w.do("GET", "/metrics", "").body
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err, text)
	assert.Empty(t, problems)
	for _, line := range []string{`seed_engine_run_retries{job="seed"} 7`, `seed_engine_run_item_duration_seconds_count{job="seed"} 2`,
		`seed_engine_run_item_duration_seconds_sum{job="seed"} 4`, `seed_engine_run_item_duration_seconds{job="seed",quantile="1"} 3`,
		`seed_engine_run_stage_seconds_per_item{job="seed",stage="listed"} 15`} {
		assert.Contains(t, text, line)
	}
}
