package server

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// seen is a page without tags, its spaces as one.
func seen(page string) string {
	var b strings.Builder
	in := false
	for _, r := range page {
		switch {
		case r == '<':
			in = true
			b.WriteByte(' ')
		case r == '>':
			in = false
		case !in:
			b.WriteRune(r)
		}
	}
	return html.UnescapeString(strings.Join(strings.Fields(b.String()), " "))
}

// withOptions stores a run that has ended.
func (w *world) withOptions(id, job string, state ledger.State, took time.Duration, tally ledger.Tally, options map[string]any) {
	w.t.Helper()
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	require.NoError(w.t, ledger.Start(w.t.Context(), w.store, ledger.Run{RunID: id, Job: job, Runner: "direct", StartedAt: at, Options: options}))
	run, err := ledger.Finish(w.t.Context(), w.store, id, state, nil, at.Add(took))
	require.NoError(w.t, err)
	require.NoError(w.t, ledger.WriteReport(w.t.Context(), w.store, ledger.BuildReport(testJob(job), run, tally, at.Add(took), ledger.LaneProgress{Hosts: 50, HostsDone: 40, Finished: true})))
}

const (
	older = "20260301-100000-000-aaaaaaaa"
	other = "20260302-090000-000-aaaaaaaa"
	this  = "20260302-100000-000-aaaaaaaa"
)

// The stages of every job come from its own declaration.
func TestStages(t *testing.T) {
	w := newWorld(t, "done")
	w.withOptions(this, "seed", ledger.Done, time.Minute, ledger.Tally{Counts: ledger.Counts{"files_listed": 4, "files_skipped": 1, "files_read": 3,
		"hosts_visited": 40, "metadata_written": 74}}, nil)
	text := seen(w.do("GET", "/runs/"+this, "").body)
	assert.Contains(t, text, "Stages listed 4 files files skipped: 1 read 3 files 75.0 % of 4 hosts 50 hosts visited 40 hosts 80.0 % of 50 written 74 results completed 0 files 0.0 % of 3 Progress")

	for i, j := range testJobs() {
		id := fmt.Sprintf("20260303-10000%d-000-aaaaaaaa", i)
		counts := ledger.Counts{}
		for _, s := range j.Stages {
			for n, name := range s.Counts {
				if s := ledger.LaneHosts; name != s && name != ledger.LaneHostsDone {
					counts[name] = int64(n + 7)
				}
			}
		}
		w.withOptions(id, j.Name, ledger.Done, time.Minute, ledger.Tally{Counts: counts}, nil)
		page := w.do("GET", "/runs/"+id, "").body
		assert.GreaterOrEqual(t, strings.Count(page, `class="stage"`), 4, j.Name)
		assert.Equal(t, len(j.Stages), strings.Count(page, `class="stage"`), j.Name)
		if j.Path == "" {
			assert.NotContains(t, page, `id="again"`, j.Name)
		}
	}
}

// An option that differs from the job's default is marked, and has the default next to it.
func TestOptions(t *testing.T) {
	w := newWorld(t, "done", func(s *Settings) { s.Environ = append(s.Environ, "SEED_CONCURRENCY=5") })
	w.withOptions(this, "seed", ledger.Done, time.Minute, sampleTally(), map[string]any{"job": "seed", "country": "sg", "host-delay": "200ms",
		"rate": "3", "concurrency": "5", "of-another-version": "postgres://u:swordfish@db"})
	page := w.do("GET", "/runs/"+this, "").body
	assert.NotContains(t, page, "swordfish")
	text := seen(page)
	assert.Contains(t, text, "Differs from the default Value Default --concurrency 5 64 --country sg – --rate 3 0 --of-another-version postgres://REDACTED@db –")
	assert.Regexp(t, `[0-9]+ options with their defaults .*--host-delay=200ms`, text)
	assert.NotContains(t, text, "--store=")
	assert.Contains(t, text, "A run that the server starts cannot have --rate=3 , --of-another-version=postgres://REDACTED@db : it has the server’s own value.")
	assert.Contains(t, text, "pipeline --job=seed --concurrency=5 --country=sg --rate=3")

	w.withOptions(older, "catalog", ledger.Done, time.Minute, sampleTally(), map[string]any{"host-delay": "1s"})
	assert.Contains(t, seen(w.do("GET", "/runs/"+older, "").body), "All options have their defaults.")
}

// "Run again" starts a run with the options that a request can have.
func TestRunAgain(t *testing.T) {
	w := newWorld(t, "done")
	w.withOptions(older, "migrate", ledger.Done, time.Minute, ledger.Tally{}, nil)
	w.withOptions(this, "seed", ledger.Done, time.Minute, sampleTally(), map[string]any{"country": "sg", "force": "true", "rate": "3", "date": "no day"})
	assert.Equal(t, http.StatusForbidden, w.do("POST", "/runs/"+this+"/again", "", "Sec-Fetch-Site", "cross-site").code)
	assert.Equal(t, http.StatusBadRequest, w.do("POST", "/runs/"+older+"/again", "").code)
	assert.Equal(t, http.StatusNotFound, w.do("POST", "/runs/none/again", "").code)
	a := w.do("POST", "/runs/"+this+"/again", "")
	require.Equal(t, http.StatusSeeOther, a.code, a.body)
	id := strings.TrimPrefix(a.header.Get("Location"), "/runs/")
	w.ended("seed")
	w.reaches(id, "done")
	assert.Equal(t, map[string]any{"args": "--country=sg --force=true"}, w.do("GET", "/api/v1/runs/"+id, "").json(t)["options"])
}

// Before a run has begun its page shows the server's options too: the command line on it must
// not ask real sites where the server's runs do not.
func TestOptionsBeforeARunBegins(t *testing.T) {
	w := newWorld(t, "done", func(s *Settings) {
		s.Environ = append(s.Environ, "SEED_WEB=demo", "SEED_STORE=s3://bucket", "SEED_FORCE=false")
	})
	assert.Equal(t, map[string]any{"web": "demo", "country": "sg", "force": "true"}, w.runner.Options("seed", []string{"--country=sg", "--force=true"}))
}

// The log is searched and filtered by level on the server; the page needs no script.
func TestLogPage(t *testing.T) {
	w := newWorld(t, "done")
	w.withOptions(this, "seed", ledger.Done, time.Minute, sampleTally(), nil)
	path := "/runs/" + this + "/log"
	assert.Contains(t, seen(w.do("GET", path, "").body), "This run has no log")
	log, err := ledger.NewLog(w.store, this, "")
	require.NoError(t, err)
	for i, line := range []string{`{"time":"2026-03-02T10:00:01Z","level":"INFO","event":"files_found","run_id":"x","count":3,"deep":{"a":1}}`,
		`{"time":"2026-03-02T10:00:02Z","level":"WARN","event":"file_ignored","file_path":"<b>raw</b>"}`,
		`{"time":"2026-03-02T10:00:03Z","level":"ERROR","event":"run_ended","error":"It Broke"}`, "no JSON"} {
		_, err := log.Write([]byte(line + "\n"))
		require.NoError(t, err, i)
	}
	require.NoError(t, log.Flush(t.Context()))
	text := seen(w.do("GET", path, "").body)
	assert.Contains(t, text, "4 of 4 lines, the newest first.")
	assert.Contains(t, text, "2026-03-02 10:00:03 ERROR run ended error=It Broke 2026-03-02 10:00:02 WARN file ignored file_path=<b>raw</b> 2026-03-02 10:00:01 INFO files found count=3 deep={\"a\":1} no JSON")
	assert.NotContains(t, w.do("GET", path, "").body, "<b>raw")
	text = seen(w.do("GET", path+"?level=warn&lines=1", "").body)
	assert.Contains(t, text, "1 of 3 lines found among 4")
	assert.Contains(t, text, "It Broke")
	assert.NotContains(t, text, "raw")
	assert.Contains(t, seen(w.do("GET", path+"?q=it+broke", "").body), "1 of 1 lines found among 4")
	assert.Contains(t, seen(w.do("GET", path+"?q=files_found&level=error", "").body), "0 of 0 lines found among 4")
	for _, bad := range []string{"?level=loud", "?lines=0", "?lines=5001", "?lines=x", "?q=" + strings.Repeat("a", 201)} {
		assert.Equal(t, http.StatusBadRequest, w.do("GET", path+bad, "").code, bad)
	}
	assert.Contains(t, seen(w.do("GET", "/runs/"+this, "").body), "The newest of 4 lines.")
}

// Each process of a run is shown, also one that is silent.
func TestWorkers(t *testing.T) {
	w := newWorld(t, "done")
	require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: this, Job: "seed", Runner: "flink", StartedAt: time.Now()}))
	require.NoError(t, ledger.SayAlive(t.Context(), w.store, this, "node-1-77", 3))
	log, err := ledger.NewLog(w.store, this, "node-2-78")
	require.NoError(t, err)
	for _, line := range []string{`2026-03-02T10:00:02Z","level":"WARN","event":"host_slow","host":"a.sg"}`, `2026-03-02T10:00:03Z","level":"WARN","event":"host_slow","host":"b.sg"}`,
		`2026-03-02T10:00:01Z","level":"ERROR","event":"lane_lost"}`} {
		_, err = log.Write([]byte(`{"time":"` + line + "\n"))
		require.NoError(t, err)
	}
	require.NoError(t, log.Flush(t.Context()))
	text := seen(w.do("GET", "/runs/"+this, "").body)
	assert.Regexp(t, `node-1-77 3 [0-9-]+ [0-9:]+ 0 node-2-78 – – 3 Warnings of workers .* lane lost ERROR 1 2026-03-02 10:00:01 node-2-78 host slow WARN 2 2026-03-02 10:00:03 node-2-78 host=b.sg `, text)
	w.now = func() time.Time { return time.Now().Add(time.Minute) }
	w.board.Change() // the page is rendered again when something has changed
	assert.Regexp(t, `node-1-77 3 [0-9-]+ [0-9:]+ silent 0`, seen(w.do("GET", "/runs/"+this, "").body))
}

// Each reason of failure has examples: pages to open, their lines of the log, dead letters.
func TestFailureExamples(t *testing.T) {
	w := newWorld(t, "done")
	tally := sampleTally()
	tally.HTTP.Examples = ledger.Examples{"dns": {"https://gone.sg/robots.txt"}, "404": {"https://a.sg/x?<b>", "javascript:alert(1)"}, "200": {"https://fine.sg/"}}
	tally.DeadLetter("store_failed")
	w.withOptions(this, "seed", ledger.Done, time.Minute, tally, nil)
	letter := ledger.DeadLetter{Job: "seed", RunID: this, Stage: "visit", Kind: "store_failed", Input: ledger.Input{DomainID: "gov:sg:b.sg"}, Error: "it would not"}
	require.NoError(t, ledger.Put(t.Context(), w.store, letter))
	page := w.do("GET", "/runs/"+this, "").body
	assert.Contains(t, page, `<a href="https://gone.sg/robots.txt" rel="noreferrer noopener nofollow">https://gone.sg/robots.txt</a> (<a href="/runs/`+this+`/log?q=gone.sg"`)
	assert.Contains(t, page, `<a href="#dead-letter-`+letter.ID()+`" rel="noreferrer noopener nofollow">gov:sg:b.sg</a>`)
	assert.Contains(t, page, `id="dead-letter-`+letter.ID()+`"`)
	assert.NotContains(t, page, `href="javascript`)
	assert.NotContains(t, page, "fine.sg")
	text := seen(page)
	assert.Contains(t, text, "Requests without an answer dns 2 66.7 % https://gone.sg/robots.txt ( log ) timeout 1 33.3 % –")
	assert.Contains(t, text, "Answers 4xx and 5xx 404 15 88.2 % https://a.sg/x?<b> ( log ) javascript:alert(1)")
	examples := w.do("GET", "/api/v1/runs/"+this, "").json(t)["http"].(map[string]any)["examples"]
	assert.Equal(t, []any{"https://gone.sg/robots.txt"}, examples.(map[string]any)["dns"])
}
