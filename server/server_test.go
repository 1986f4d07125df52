package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

// asChild makes the test binary act as the pipeline program: the runner starts it
// like the real one.
const asChild = "SEED_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		os.Exit(playPipeline(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// playPipeline does what the server sees of a pipeline: it acquires the lease, writes
// to the ledger, obeys its control object, and writes a report.
func playPipeline(args []string) int {
	ctx := context.Background()
	s, err := store.Open(ctx, os.Getenv("SEED_STORE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if args[0] == "dead-letters" {
		return playReplay(ctx, s, args)
	}
	if args[0] == "removals" {
		if err := s.Put(ctx, "removals-done.txt", strings.NewReader(strings.Join(args, " ")), store.PutOptions{}); err != nil {
			return 1
		}
		return 0
	}
	if args[0] == "try" {
		text, err := os.ReadFile(args[2])
		fmt.Printf("%s by %s", args[1], text)
		fmt.Fprintln(os.Stderr, err, "token=hush")
		return 2
	}
	if args[0] == "docs" { // unblock
		if strings.HasSuffix(args[3], "/none") {
			return 2
		}
		if err := s.Put(ctx, "unblocked.txt", strings.NewReader(strings.Join(args, " ")), store.PutOptions{}); err != nil {
			return 1
		}
		return 0
	}
	if args[0] == "runs" {
		return playShow(ctx, s, args[2])
	}
	job := strings.TrimPrefix(args[0], "--job=")
	switch os.Getenv(asChild) {
	case "refuse":
		if _, err := os.NewFile(3, "last words").WriteString("--country=XX: two lower-case letters, password=hunter2"); err != nil {
			return 3
		}
		return 2
	case "mute":
		return 3
	case "secret":
		if os.Getenv(known.TokenVariable)+os.Getenv(known.WebhookVariable) != "" {
			return 3
		}
	}
	id := os.Getenv(runs.RunIDVariable)
	holder := lease.CurrentHolder()
	holder.RunID, holder.Job = id, job
	l, err := lease.Acquire(ctx, lease.InStore(s), job, holder, 10*time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	run := ledger.Run{RunID: id, Job: job, Runner: "prism", StartedAt: time.Now(), Schedule: os.Getenv(runs.ScheduleVariable), StartedBy: os.Getenv("SEED_STARTED_BY"), Options: map[string]any{"args": strings.Join(args[1:], " ")}}
	if err := ledger.Start(ctx, s, run); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	state, code := ledger.Done, 0
	for os.Getenv(asChild) == "wait" {
		c, err := ledger.ReadControl(ctx, s, id)
		if err == nil && c.Action == ledger.ActionCancel {
			state, code = ledger.Cancelled, 130
			break
		}
		time.Sleep(20 * time.Millisecond) // in another process, where the clock cannot be faked
	}
	if os.Getenv(asChild) == "crash" {
		if err := debug.SetCrashOutput(os.NewFile(3, "last words"), debug.CrashOptions{}); err != nil {
			return 3
		}
		panic("crashed on purpose")
	}
	tally := sampleTally()
	run, err = ledger.Finish(ctx, s, id, state, nil, time.Now())
	if err == nil {
		err = ledger.WriteReport(ctx, s, ledger.BuildReport(testJob(run.Job), run, tally, time.Now(), ledger.LaneProgress{Lane: 0, Hosts: 40, HostsDone: 40, Finished: true, UpdatedAt: time.Now()}))
	}
	if err = errors.Join(err, l.Release(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func playReplay(ctx context.Context, s store.Store, args []string) int {
	line := strings.Join(args, " ")
	var all []byte
	if r, err := s.Open(ctx, "replays.txt"); err == nil {
		if all, err = io.ReadAll(r); errors.Join(err, r.Close()) != nil {
			return 1
		}
	} else if !errors.Is(err, store.ErrNotExist) {
		return 1
	}
	for key, text := range map[string]string{"replayed.txt": line, "replays.txt": string(all) + line + "\n"} {
		if err := s.Put(ctx, key, strings.NewReader(text), store.PutOptions{}); err != nil {
			return 1
		}
	}
	return 0
}

// playShow adds a job's own fields to the report.
func playShow(ctx context.Context, s store.Store, id string) int {
	run, err := ledger.Load(ctx, s, id)
	if err == nil {
		var report ledger.Report
		if report, err = ledger.ReportSoFar(ctx, s, testJob(run.Job), run, time.Now()); err == nil {
			report.Alerts = append(report.Alerts, "what the job adds")
			err = printable.JSON(os.Stdout, report)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func sampleTally() ledger.Tally {
	t := ledger.Tally{Counts: ledger.Counts{"domains_collected": 38, "domains_failed": 2, "domains_unique": 40},
		HTTP: ledger.HTTP{Requests: 120, Bytes: 3 << 20, Retries: 2, ByStatus: ledger.Counts{"200": 100, "404": 15, "503": 2}, Failures: ledger.Counts{"dns": 2, "timeout": 1}}}
	for range 40 {
		t.Timings.Observe(500 * time.Millisecond)
	}
	return t
}

// world is a server on a directory store, whose pipeline is this test binary.
type world struct {
	*Server
	t   *testing.T
	dir string
	log *lines
}

// lines is a log that tests read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T, mode string, change ...func(*Settings)) *world {
	t.Helper()
	dir := t.TempDir()
	return worldAt(t, dir, mode, change...)
}

func worldAt(t *testing.T, dir, mode string, change ...func(*Settings)) *world {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	log := &lines{}
	set := Settings{Jobs: testJobs(), Store: s, Program: []string{self}, Environ: []string{asChild + "=" + mode, "SEED_STORE=" + dir},
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), Stderr: os.Stderr}
	for _, c := range change {
		c(&set)
	}
	server, err := New(set)
	require.NoError(t, err)
	server.guard.WrongDelay = 0
	w := &world{server, t, dir, log}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
		w.waitForChildren()
	})
	return w
}

// waitForChildren lets no process outlive its test.
func (w *world) waitForChildren() {
	for _, c := range w.runner.Processes() {
		_ = ledger.WriteControl(context.Background(), w.store, c.Run.RunID, ledger.Control{Action: ledger.ActionCancel, At: time.Now()})
		select {
		case <-c.Ended:
		case <-time.After(30 * time.Second):
			w.t.Errorf("run %s does not end", c.Run.RunID)
		}
	}
	w.runner.Keepers.Wait()
}

// ended waits for a run's process.
func (w *world) ended(job string) {
	w.t.Helper()
	c := w.runner.Processes()[job]
	if c == nil {
		return
	}
	select {
	case <-c.Ended:
	case <-time.After(30 * time.Second):
		w.t.Fatalf("run %s does not end", c.Run.RunID)
	}
}

// until refreshes the board until a condition holds.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for now := time.Now(); ; now = now.Add(20 * time.Second) {
		require.NoError(w.t, w.board.Refresh(context.Background(), now))
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within 30 s", what)
		}
		time.Sleep(10 * time.Millisecond) // another process needs the time
	}
}

// form sends a form.
func (w *world) form(path, body string, header ...string) answer {
	w.t.Helper()
	return w.do("POST", path, body, append(header, "Content-Type", "application/x-www-form-urlencoded")...)
}

// start starts a run and returns its id.
func (w *world) start(path, body string) string {
	w.t.Helper()
	a := w.do("POST", path, body)
	require.Equal(w.t, http.StatusAccepted, a.code, a.body)
	return a.json(w.t)["run_id"].(string)
}

// reaches waits for a run's state.
func (w *world) reaches(id, state string) {
	w.t.Helper()
	w.until("run "+id+" "+state, func() bool { return w.do("GET", "/api/v1/runs/"+id, "").json(w.t)["state"] == state })
}

// An address that there is not, and a method that an address does not take, are told as all
// other errors are: as JSON to programs, on a page to browsers.
func TestNoRoute(t *testing.T) {
	w := newWorld(t, "done")
	for _, c := range []struct {
		method, path, accept string
		code                 int
		says                 string
	}{
		{"GET", "/api/v1/nothing", "", 404, `{"error":"there is no such address; GET /openapi.json describes those that there are"}`},
		{"POST", "/api/v1/runs/1/cancel/x", "text/html", 404, `{"error":"there is no such address; GET /openapi.json describes those that there are"}`},
		{"DELETE", "/api/v1/runs/1", "", 405, `{"error":"this address takes only GET, HEAD"}`},
		{"GET", "/api/v1/seeds/orchestrate", "", 405, `{"error":"this address takes only POST"}`},
	} {
		a := w.do(c.method, c.path, "", "Accept", c.accept)
		assert.Equal(t, c.code, a.code, c.path)
		assert.Equal(t, "application/json", a.header.Get("Content-Type"), c.path)
		assert.Equal(t, c.says+"\n", a.body, c.path)
	}
	assert.Equal(t, "POST", w.do("GET", "/api/v1/seeds/orchestrate", "").header.Get("Allow"))
	page := w.do("GET", "/runes", "", "Accept", "text/html")
	assert.Equal(t, http.StatusNotFound, page.code)
	assert.Contains(t, page.body, `<p class="message" role="alert">there is no such page</p>`)
	moved := w.do("GET", "/api/v1//runs", "")
	assert.Equal(t, "/api/v1/runs", moved.header.Get("Location"), "%d %s", moved.code, moved.body)
}

// A directory store that is unmounted or moved away makes the server not ready,
// and ready again once the directory is back.
func TestReadyzWhileTheStoreIsGone(t *testing.T) {
	w := newWorld(t, "done")
	at := time.Now()
	w.now = func() time.Time { return at }
	look := func(after time.Duration) answer {
		at = at.Add(after)
		w.tick(t.Context(), at)
		return w.do("GET", "/readyz", "")
	}
	assert.Equal(t, http.StatusOK, look(0).code)
	require.NoError(t, os.Rename(w.dir, w.dir+".away"))
	a := look(time.Minute)
	assert.Equal(t, http.StatusServiceUnavailable, a.code)
	assert.Contains(t, a.body, "the store does not answer; see the server's log")
	assert.Contains(t, w.log.String(), store.ErrGone.Error())
	require.NoError(t, os.Mkdir(w.dir, 0o755))
	assert.Equal(t, http.StatusServiceUnavailable, look(time.Minute).code, "an empty mount point is not the store")
	require.NoError(t, os.Remove(w.dir))
	require.NoError(t, os.Rename(w.dir+".away", w.dir))
	assert.Equal(t, http.StatusOK, look(time.Minute).code)
}

type answer struct {
	code   int
	header http.Header
	body   string
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &v), a.body)
	return v
}

func (w *world) do(method, path, body string, header ...string) answer {
	w.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8787"+path, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, "http://127.0.0.1:8787"+path, nil)
	}
	if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	b, err := io.ReadAll(rec.Result().Body)
	require.NoError(w.t, err)
	return answer{rec.Code, rec.Result().Header, string(b)}
}

// put stores a run that is over.
func (w *world) put(id, job string, state ledger.State, started time.Time, took time.Duration, tally ledger.Tally) {
	w.t.Helper()
	require.NoError(w.t, ledger.Start(w.t.Context(), w.store, ledger.Run{RunID: id, Job: job, Runner: "prism", StartedAt: started}))
	run, err := ledger.Finish(w.t.Context(), w.store, id, state, nil, started.Add(took))
	require.NoError(w.t, err)
	require.NoError(w.t, ledger.WriteReport(w.t.Context(), w.store, ledger.BuildReport(testJob(run.Job), run, tally, started.Add(took), ledger.LaneProgress{Hosts: 40, HostsDone: 40, Finished: true})))
}

func TestTrigger(t *testing.T) {
	w := newWorld(t, "done")
	a := w.do("POST", "/api/v1/seeds/orchestrate", `{"country":"sg","category":"news","date":"2026-01-28","force":true,"outage_threshold":0.5}`)
	require.Equal(t, http.StatusAccepted, a.code, a.body)
	id, _ := a.json(t)["run_id"].(string)
	assert.Regexp(t, `^[0-9]{8}-[0-9]{6}-[0-9]{3}-[0-9a-f]{8}$`, id)
	assert.Equal(t, "/api/v1/runs/"+id, a.header.Get("Location"))
	assert.Equal(t, http.StatusOK, w.do("GET", "/api/v1/runs/"+id, "").code, "a run is there as soon as its id is known")
	w.ended("seed")
	w.reaches(id, "done")
	run := w.do("GET", "/api/v1/runs/"+id, "").json(t)
	assert.Equal(t, map[string]any{"args": "--country=sg --category=news --date=2026-01-28 --force=true --outage-threshold=0.5"}, run["options"])
	assert.EqualValues(t, 38, run["counts"].(map[string]any)["domains_collected"])
	assert.Len(t, run["lanes"], 1)
	started := known.JobsOf(testJobs()).Started()
	bodies := map[string][2]string{"docs": {`{"provider":"toss-payments,stripe"}`, "--provider=toss-payments,stripe"},
		"catalog": {`{"site":"matter_2"}`, "--site=matter_2"}, "news": {`{"publisher":"a,b,c"}`, "--publisher=a,b,c"}}
	for _, j := range started[1:] {
		id := w.start(j.Path, bodies[j.Name][0])
		w.ended(j.Name)
		w.reaches(id, "done")
		assert.Equal(t, map[string]any{"args": bodies[j.Name][1]}, w.do("GET", "/api/v1/runs/"+id, "").json(t)["options"])
	}
	assert.Len(t, w.do("GET", "/api/v1/runs", "").json(t)["runs"], len(started))
}

func TestTriggerRefuses(t *testing.T) {
	w := newWorld(t, "done")
	for _, c := range []struct{ path, body, says string }{
		{"/api/v1/seeds/orchestrate", `{"land":"sg"}`, `unknown field \"land\"; known fields: country, category, date, sample, force`},
		{"/api/v1/seeds/orchestrate", `{"country":"SG"}`, "country: a country is two lower-case letters, such as sg"},
		{"/api/v1/seeds/orchestrate", `{"country":""}`, "country: a country is"},
		{"/api/v1/seeds/orchestrate", `{"country":null}`, "country: a country is"},
		{"/api/v1/seeds/orchestrate", `{"category":"../x"}`, "category: "},
		{"/api/v1/seeds/orchestrate", `{"date":"2026-02-30"}`, "date: that is no day; write YYYY-MM-DD"},
		{"/api/v1/seeds/orchestrate", `{"force":"yes"}`, "force: write true or false"},
		{"/api/v1/seeds/orchestrate", `{"outage_threshold":1.5}`, "outage_threshold: use a share from 0 (off) to 1"},
		{"/api/v1/seeds/orchestrate", `{"outage_threshold":-0.1}`, "outage_threshold: use a share"},
		{"/api/v1/seeds/orchestrate", `{"outage_threshold":"0"}`, "outage_threshold: use a share"},
		{"/api/v1/seeds/orchestrate", `{"outage_threshold":null}`, "outage_threshold: use a share"},
		{"/api/v1/seeds/orchestrate", `[]`, "is not a JSON object"},
		{"/api/v1/seeds/orchestrate", `null `, "is not a JSON object"},
		{"/api/v1/docs/runs", `{"limit":-1}`, "limit: use 0 (all)"},
		{"/api/v1/docs/runs", `{"country":"sg"}`, "unknown field"},
		{"/api/v1/catalog/runs", `{"stop_after_known":1e9}`, "stop_after_known: "},
		{"/api/v1/catalog/runs", `{"stop_after_known":null}`, "stop_after_known: "},
		{"/api/v1/catalog/runs", `{"stop_after_known":1.5}`, "stop_after_known: "},
		{"/api/v1/news/runs", `{"x":1}`, "known fields: limit, purpose, publisher"},
		{"/api/v1/news/runs", `{"publisher":""}`, "publisher: write ids of publishers, separated by commas"},
		{"/api/v1/docs/runs", `{"provider":"stripe,,toss"}`, "provider: write ids of providers"},
		{"/api/v1/catalog/runs", `{"site":"shop --force"}`, "site: write names of sites"},
	} {
		a := w.do("POST", c.path, c.body)
		assert.Equal(t, http.StatusBadRequest, a.code, c.body)
		assert.Contains(t, a.body, c.says, c.body)
	}
	assert.Empty(t, w.board.Runs(), "nothing was started")
}

// wrongUsage is an error as cli.Serve's check returns.
type wrongUsage struct{ error }

func (wrongUsage) Usage() {}

// A run that could not start is refused where it is asked for: no run begins, so no alert is raised. An error that is not about the
// request lets the run say it.
func TestStartRefuses(t *testing.T) {
	var asked []string
	w := newWorld(t, "done", func(set *Settings) {
		set.Runs.Refuse = func(_ context.Context, job string, flags []string, now bool) error {
			asked = append(asked, fmt.Sprint(job, " ", strings.Join(flags, " "), " ", now))
			if slices.Contains(flags, "--provider=strpe") {
				return fmt.Errorf("checking: %w", wrongUsage{errors.New("--provider=strpe: there is no such provider; known are stripe, toss")})
			}
			return errors.New("the store is down")
		}
	})
	form := []string{"Content-Type", "application/x-www-form-urlencoded", "Origin", "http://127.0.0.1:8787"}
	for _, c := range []struct {
		method, path, body string
		header             []string
	}{
		{"POST", "/runs", "job=docs&provider=strpe", form},
		{"POST", "/api/v1/docs/runs", `{"provider":"strpe"}`, nil},
		{"POST", "/schedules", "new=1&name=x&job=docs&cron=15+3+*+*+*&options=provider:+strpe", form},
		{"PUT", "/api/v1/schedules/x", `{"job":"docs","cron":"15 3 * * *","options":{"provider":"strpe"}}`, nil},
	} {
		a := w.do(c.method, c.path, c.body, c.header...)
		assert.Equal(t, http.StatusBadRequest, a.code, "%s: %s", c.path, a.body)
		assert.Contains(t, a.body, "there is no such provider; known are stripe, toss")
	}
	const now, later = "docs --provider=strpe true", "docs --provider=strpe false"
	assert.Equal(t, []string{now, now, later, later}, asked)
	w.tick(t.Context(), time.Now())
	assert.Empty(t, w.board.Runs())
	assert.Empty(t, w.alarm.Firing())
	assert.Empty(t, w.scheduler.All())
	a := w.do("POST", "/api/v1/docs/runs", `{"provider":"stripe"}`)
	assert.Equal(t, http.StatusAccepted, a.code, a.body)
	assert.Contains(t, w.log.String(), "run_not_checked")
}

// TestBodies sends bodies as programs do, and as pages of other sites can.
func TestBodies(t *testing.T) {
	w := newWorld(t, "done")
	letters := "/api/v1/runs/20260128-093000-000-0a1b2c3d/dead-letters/replay"
	w.put("20260128-093000-000-0a1b2c3d", "seed", ledger.Done, time.Now(), time.Minute, sampleTally())
	const form, plain = "application/x-www-form-urlencoded", "text/plain"
	for _, c := range []struct {
		name, body, kind string
		code             int // of a request that starts a run
		header           []string
	}{
		{"curl -X POST", "", "", 202, nil},
		{"curl -d ''", "", form, 202, nil},
		{"curl -d '{}'", "{}", form, 202, nil},
		{"curl -d @file", `{"country":"sg"}`, form + "; charset=utf-8", 202, nil},
		{"no type", "{}", "", 202, nil},
		{"JSON", " {}\n", "application/json; charset=utf-8", 202, nil},
		{"blank, of any type", "\n", plain, 202, nil},
		{"a form's fields", "country=sg", form, 400, nil},
		{"text", "{}", plain, 415, nil},
		{"XML", "<x/>", "application/xml", 415, nil},
		{"no type at all", "{}", "json", 415, nil},
		{"our own page, JSON", "{}", "application/json", 202, []string{"Origin", "http://127.0.0.1:8787", "Sec-Fetch-Site", "same-origin"}},
		{"our own page, a form", "{}", form, 415, []string{"Origin", "http://127.0.0.1:8787"}},
		{"a browser, no type", "{}", "", 415, []string{"Sec-Fetch-Site", "none"}},
		{"another site, JSON", "{}", "application/json", 403, []string{"Origin", "https://evil.example"}},
		{"another site, empty", "", "", 403, []string{"Sec-Fetch-Site", "cross-site"}},
	} {
		for _, path := range []string{"/api/v1/seeds/orchestrate", letters} {
			want, body := c.code, c.body
			if path == letters {
				body = strings.Replace(body, `{"country":"sg"}`, `{}`, 1)
				if want == 202 {
					want = 200
				}
			}
			a := w.do("POST", path, body, append([]string{"Content-Type", c.kind}, c.header...)...)
			assert.Equal(t, want, a.code, "%s: %s", c.name, a.body)
			if want == 415 {
				assert.Contains(t, a.body, "Content-Type: application/json", c.name)
			}
		}
		w.ended("seed")
	}
}

func TestOverlap(t *testing.T) {
	w := newWorld(t, "wait")
	first := w.start("/api/v1/seeds/orchestrate", `{}`)
	second := w.do("POST", "/api/v1/seeds/orchestrate", `{"country":"sg"}`)
	assert.Equal(t, http.StatusConflict, second.code)
	assert.Equal(t, first, second.json(t)["run_id"])
	assert.Equal(t, http.StatusAccepted, w.do("POST", "/api/v1/docs/runs", "").code, "another job is free")

	other := worldAt(t, w.dir, "wait")
	a := other.do("POST", "/api/v1/seeds/orchestrate", `{}`)
	assert.Equal(t, http.StatusConflict, a.code, "another server on the store sees it too")
	assert.Equal(t, first, a.json(t)["run_id"])

	assert.Equal(t, http.StatusAccepted, w.do("POST", "/api/v1/runs/"+first+"/cancel", "").code)
	w.ended("seed")
	assert.Equal(t, http.StatusAccepted, other.do("POST", "/api/v1/seeds/orchestrate", `{}`).code, "a run that has ended prevents no other")
}

func TestRaceOfTwoServers(t *testing.T) {
	a := newWorld(t, "wait")
	b := worldAt(t, a.dir, "wait")
	codes := make(chan int, 8)
	var wg sync.WaitGroup
	for i := range 8 {
		w := a
		if i%2 == 1 {
			w = b
		}
		wg.Go(func() { codes <- w.do("POST", "/api/v1/seeds/orchestrate", "").code })
	}
	wg.Wait()
	close(codes)
	count := map[int]int{}
	for c := range codes {
		count[c]++
	}
	assert.Equal(t, map[int]int{202: 1, 409: 7}, count)
}

func TestSteer(t *testing.T) {
	w := newWorld(t, "wait")
	id := w.start("/api/v1/seeds/orchestrate", "")
	w.reaches(id, "running")
	for _, c := range []struct{ verb, state string }{{"pause", "paused"}, {"resume", "running"}, {"cancel", "cancelling"}} {
		assert.Equal(t, http.StatusAccepted, w.do("POST", "/api/v1/runs/"+id+"/"+c.verb, "").code)
		assert.Equal(t, c.state, w.do("GET", "/api/v1/runs/"+id, "").json(t)["state"])
	}
	taken := w.do("POST", "/api/v1/runs/"+id+"/resume", "")
	assert.Equal(t, http.StatusConflict, taken.code)
	assert.Regexp(t, "is over .(it was cancelled|cancelled)", taken.json(t)["error"])
	w.ended("seed")
	w.reaches(id, "cancelled")
	a := w.do("POST", "/api/v1/runs/"+id+"/pause", "")
	assert.Equal(t, http.StatusConflict, a.code)
	assert.Contains(t, a.body, "is over (cancelled)")
	for _, path := range []string{"/api/v1/runs/nobody", "/api/v1/runs/..%2Fx", "/api/v1/runs/nobody/dead-letters"} {
		assert.Equal(t, http.StatusNotFound, w.do("GET", path, "").code, path)
	}
}

func TestCrash(t *testing.T) {
	for mode, state := range map[string]string{"crash": "interrupted", "refuse": "failed", "mute": "failed"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			id := w.start("/api/v1/seeds/orchestrate", "")
			w.ended("seed")
			w.reaches(id, state)
			why := map[string]string{"crash": "panic: crashed on purpose (exit status 2)",
				"refuse": "the run did not begin: --country=XX: two lower-case letters, password=REDACTED (exit status 2)",
				"mute":   "the run did not begin: exit status 3; it left no error message, see its log"}[mode]
			assert.Equal(t, why, w.do("GET", "/api/v1/runs/"+id, "").json(t)["error"])
			assert.Equal(t, why, w.do("GET", "/api/v1/runs", "").json(t)["runs"].([]any)[0].(map[string]any)["error"])
			assert.Contains(t, w.do("GET", "/runs/"+id, "", "Accept", "text/html").body, html.EscapeString(why))
			run, err := ledger.Load(t.Context(), w.store, id)
			require.NoError(t, err)
			assert.Equal(t, why, run.Error)
			report, err := ledger.ReportSoFar(t.Context(), w.store, testJob(run.Job), run, time.Now())
			require.NoError(t, err)
			assert.Equal(t, why, report.Error)
			assert.Equal(t, http.StatusNotFound, w.do("GET", "/api/v1/runs/"+id+"/log", "").code)
			w.until("a free job", func() bool { id, err := w.runner.Active(t.Context(), "seed"); return id == "" && err == nil })
			assert.Equal(t, http.StatusAccepted, w.do("POST", "/api/v1/seeds/orchestrate", "").code, "the next run can start at once")
		})
	}
}

// fullStore takes nothing about runs while it is full.
type fullStore struct {
	store.Store
	full atomic.Bool
}

func (s *fullStore) put(key string, put func() error) error {
	if s.full.Load() && strings.HasPrefix(key, "runs/") {
		return errors.New("no space left on device")
	}
	return put()
}

func (s *fullStore) Put(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	return s.put(key, func() error { return s.Store.Put(ctx, key, body, o) })
}

func (s *fullStore) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	return s.put(key, func() error { return s.Store.PutIfAbsent(ctx, key, body, o) })
}

// Why a run failed is not lost where the store takes nothing when it fails: the run is
// not said to have been killed later.
func TestCrashOnAFullStore(t *testing.T) {
	for mode, why := range map[string]string{"crash": "panic: crashed on purpose (exit status 2)", "mute": "the run did not begin: exit status 3; it left no error message, see its log"} {
		t.Run(mode, func(t *testing.T) {
			full := &fullStore{}
			w := newWorld(t, mode, func(s *Settings) { full.Store = s.Store; s.Store = full })
			full.full.Store(true)
			id := w.start("/api/v1/seeds/orchestrate", "")
			w.ended("seed")
			w.runner.Keepers.Wait()
			now := time.Now()
			w.tick(t.Context(), now)
			_, err := ledger.Load(t.Context(), w.store, id)
			require.Equal(t, mode == "mute", errors.Is(err, store.ErrNotExist))
			full.full.Store(false)
			w.tick(t.Context(), now.Add(leaderTTL/3))
			run, err := ledger.Load(t.Context(), w.store, id)
			require.NoError(t, err)
			require.Equal(t, why, run.Error)
			require.Equal(t, 1, strings.Count(w.log.String(), "run_process_ended"))
			require.Empty(t, w.runner.Unrecorded)

			full.full.Store(true)
			id = w.start("/api/v1/seeds/orchestrate", "")
			w.ended("seed")
			w.runner.Keepers.Wait()
			full.full.Store(false)
			require.Equal(t, http.StatusAccepted, w.do("POST", "/api/v1/seeds/orchestrate", "").code)
			run, err = ledger.Load(t.Context(), w.store, id)
			require.NoError(t, err)
			require.Equal(t, why, run.Error)
		})
	}
}

func TestSecretsStayHere(t *testing.T) {
	t.Setenv(known.TokenVariable, "0123456789abcdef")
	t.Setenv(known.WebhookVariable, "http://127.0.0.1:1/hook")
	w := newWorld(t, "secret")
	id := w.start("/api/v1/seeds/orchestrate", "")
	w.ended("seed")
	w.reaches(id, "done")
}

// TestRestart starts a second server, which finds an active run of the first one and
// a run whose process died while there was no server.
func TestRestart(t *testing.T) {
	w := newWorld(t, "wait")
	id := w.start("/api/v1/seeds/orchestrate", "")
	w.reaches(id, "running")

	next := worldAt(t, w.dir, "wait")
	next.until("the run in the other server", func() bool { return strings.Contains(next.do("GET", "/api/v1/runs", "").body, id) })
	assert.Equal(t, http.StatusAccepted, next.do("POST", "/api/v1/runs/"+id+"/cancel", "").code)
	w.ended("seed")
	next.reaches(id, "cancelled")

	lost := ledger.NewRunID(time.Now())
	require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: lost, Job: "seed", Runner: "prism", StartedAt: time.Now()}))
	next.until("the lost run", func() bool { return strings.Contains(next.do("GET", "/api/v1/runs", "").body, lost) })
	next.tick(t.Context(), time.Now())
	next.reaches(lost, "interrupted")
}

// What a site or a raw file says cannot turn the order of a line around on any page, or
// hide a part of it. A dead letter's error is stored without such characters.
func TestPagesShowInvisibleCharacters(t *testing.T) {
	const said, safe, id = "no\u202eevil\u200b", `no\u202eevil\u200b`, "20260128-093000-000-0a1b2c3d"
	w := newWorld(t, "done")
	tally := sampleTally()
	tally.HTTP.Examples = map[string][]string{"dns": {"https://a.sg/" + said}}
	w.ends(id, "seed", ledger.Failed, errors.New(said), time.Now().Add(-time.Hour), tally, nil, said)
	letter := ledger.DeadLetter{Job: "seed", RunID: id, Kind: "bad_file", LastAt: time.Now(), Input: ledger.Input{DomainID: said, Source: said, URL: said, File: said, Key: said}, Error: said}
	require.NoError(t, ledger.Put(t.Context(), w.store, letter))
	w.tick(t.Context(), time.Now())
	for path, times := range map[string]int{"/": 6, "/runs": 1, "/runs/" + id: 7, "/alerts": 2, "/dead-letters": 4, "/dead-letters/seed/" + letter.ID(): 5} {
		page := w.do("GET", path, "", "Accept", "text/html").body
		assert.Equal(t, times, strings.Count(page, safe), path)
		assert.NotContains(t, page, "\u202e", path)
	}
}

// Every page says that a store's results are a demo's, from when a run has marked it, or from the first page of a server whose runs do.
func TestDemoBanner(t *testing.T) {
	demo := newWorld(t, "done", func(s *Settings) { s.Environ = append(s.Environ, "SEED_WEB=demo") })
	w := newWorld(t, "done")
	now := at(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), w)
	const banner = "everything that was found is invented"
	const id = "20260128-093000-000-0a1b2c3d"
	w.put(id, "seed", ledger.Done, now.Add(-time.Hour), time.Minute, sampleTally())
	paths := []string{"/", "/start", "/runs", "/runs/" + id, "/runs/none", "/dead-letters", "/explore", "/providers", "/schedules", "/alerts", "/reports", "/audit", "/login"}
	pages := func(want bool) {
		t.Helper()
		for _, path := range paths {
			assert.Equal(t, want, strings.Contains(w.do("GET", path, "", "Accept", "text/html").body, banner), path)
		}
	}
	assert.Contains(t, demo.do("GET", "/login", "", "Accept", "text/html").body, banner)
	w.tick(t.Context(), now)
	pages(false)
	require.NoError(t, ledger.MarkDemo(t.Context(), w.store))
	w.tick(t.Context(), now.Add(10*time.Second))
	pages(true)
	require.NoError(t, ledger.MarkDemo(t.Context(), w.store), "again")
}

func TestDeadLetters(t *testing.T) {
	w := newWorld(t, "done")
	now := time.Now()
	w.put("20260128-093000-000-0a1b2c3d", "seed", ledger.Done, now, time.Minute, sampleTally())
	var ids []string
	for _, d := range []string{"a.sg", "b.sg"} {
		letter := ledger.DeadLetter{Job: "seed", RunID: "20260128-093000-000-0a1b2c3d", Stage: "visit", Kind: "store_failed", Input: ledger.Input{DomainID: d}, Error: "it would not"}
		require.NoError(t, ledger.Put(t.Context(), w.store, letter))
		ids = append(ids, letter.ID())
	}
	path := "/api/v1/runs/20260128-093000-000-0a1b2c3d/dead-letters"
	list := w.do("GET", path, "").json(t)["dead_letters"].([]any)
	require.Len(t, list, 2)

	none := w.do("POST", path+"/replay", `{"ids":["abc"]}`)
	assert.Equal(t, http.StatusNotFound, none.code)
	assert.Contains(t, none.body, "no such dead letter")
	for _, body := range []string{`{"ids":[]}`, `{"ids":null}`, `{"id":["a"]}`, `{"ids":["../x"]}`, `{"ids":"a"}`, `[]`} {
		assert.Equal(t, http.StatusBadRequest, w.do("POST", path+"/replay", body).code, body)
	}
	_, err := w.store.Head(t.Context(), "replayed.txt")
	require.ErrorIs(t, err, store.ErrNotExist, "nothing is replayed by itself")

	a := w.do("POST", path+"/replay", `{"ids":["`+ids[0]+`"]}`)
	require.Equal(t, http.StatusOK, a.code, a.body)
	assert.EqualValues(t, 1, a.json(t)["replayed"])
	assert.Equal(t, "dead-letters replay --job=seed --run=20260128-093000-000-0a1b2c3d "+ids[0], w.read("replayed.txt"))
	assert.EqualValues(t, 2, w.do("POST", path+"/replay", "").json(t)["replayed"])
}

// Dead letters of several runs are replayed by a filter. A dismissed one is left out, by
// every way, until it is reopened; who dismissed it, when and why stays with it.
func TestDismissAndReplayFound(t *testing.T) {
	const perCommand = 1000 // ids
	w := newWorld(t, "done", withTokens)
	now := at(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), w)
	bearer := []string{"Authorization", "Bearer " + token}
	form := append([]string{"Content-Type", "application/x-www-form-urlencoded"}, bearer...)
	var ids []string
	for i := range perCommand + 2 {
		d := ledger.DeadLetter{Job: "seed", RunID: fmt.Sprint("r", i), Kind: "store_failed", LastAt: now, Input: ledger.Input{DomainID: fmt.Sprintf("d%d.sg", i), Key: "results/"}, Error: "it would not"}
		require.NoError(t, ledger.Put(t.Context(), w.store, d))
		ids = append(ids, d.ID())
	}
	news := ledger.DeadLetter{Job: "news", RunID: "r1", Earlier: nil, Kind: "not_html", LastAt: now, Input: ledger.Input{URL: "https://x.kr/a", Source: "x"}, Error: "a picture"}
	require.NoError(t, ledger.Put(t.Context(), w.store, news))
	require.NoError(t, w.store.Put(t.Context(), "results/robots.txt", strings.NewReader("User-agent: *"), store.PutOptions{}))

	shut := "/dead-letters/seed/" + ids[0]
	page := w.do("GET", shut, "", bearer...).body
	for _, has := range []string{"it would not", "d0.sg", "results/robots.txt", "13 B", `href="/runs/r0"`, "/runs/r0/log?q=d0.sg"} {
		assert.Contains(t, page, has)
	}
	require.Equal(t, 400, w.do("POST", shut+"/dismiss", "note=", form...).code)
	require.Equal(t, 303, w.do("POST", shut+"/dismiss", "note=It+is+known.", form...).code)
	got := w.do("GET", "/api/v1"+shut, "", bearer...).json(t)["dismissed"]
	assert.Equal(t, map[string]any{"at": "2026-03-02T10:00:00Z", "by": "token from 192.0.2.1:1234", "note": "It is known."}, got)
	assert.Contains(t, plainText(w.do("GET", shut, "", bearer...).body), "Dismissed 2026-03-02 10:00:00 by token from 192.0.2.1:1234: It is known.")
	assert.Equal(t, 409, w.do("POST", shut+"/replay", "", form...).code)
	for path, body := range map[string]string{"/api/v1/runs/r0/dead-letters/replay": `{"ids":["` + ids[0] + `"]}`} {
		require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: "r0", Job: "seed", StartedAt: now.Add(-time.Hour)}))
		assert.Equal(t, 404, w.do("POST", path, body, bearer...).code)
		assert.EqualValues(t, 0, w.do("POST", path, "{}", bearer...).json(t)["replayed"])
	}
	_, err := w.store.Head(t.Context(), "replayed.txt")
	require.ErrorIs(t, err, store.ErrNotExist)

	asks := w.do("GET", "/dead-letters/replay?kind=store_failed", "", bearer...).body
	assert.Contains(t, asks, "Replay 1,001 dead letters?")
	assert.Contains(t, asks, `<input type="hidden" name="kind" value="store_failed">`)
	done := w.do("POST", "/dead-letters/replay", "kind=store_failed", form...)
	assert.Equal(t, "/dead-letters?kind=store_failed&replayed=1001", done.header.Get("Location"))
	var replayed []string
	for _, line := range strings.Split(strings.TrimSpace(w.read("replays.txt")), "\n") {
		words := strings.Fields(line)
		assert.Equal(t, []string{"dead-letters", "replay", "--job=seed"}, words[:3])
		assert.LessOrEqual(t, len(words), 3+perCommand)
		replayed = append(replayed, words[3:]...)
	}
	slices.Sort(replayed)
	want := slices.Sorted(slices.Values(ids[1:]))
	assert.Equal(t, want, replayed)

	all := w.do("POST", "/api/v1/dead-letters/replay", `{"run":"r1"}`, bearer...).json(t)
	assert.EqualValues(t, 2, all["replayed"])
	assert.Equal(t, []any{"news", "seed"}, all["jobs"])
	for _, bad := range []string{`{"state":"dismissed"}`, `{"job":""}`, `{"job":"x"}`, `{"job":1}`, `[]`, `null`} {
		assert.Equal(t, 400, w.do("POST", "/api/v1/dead-letters/replay", bad, bearer...).code, bad)
	}
	assert.Equal(t, 409, w.do("GET", "/dead-letters/replay?kind=other", "", bearer...).code)
	require.Equal(t, 303, w.do("POST", shut+"/reopen", "", form...).code)
	require.Equal(t, 303, w.do("POST", shut+"/replay", "", form...).code)
	assert.Equal(t, "dead-letters replay --job=seed "+ids[0], w.read("replayed.txt"))
	var lines []string
	for _, l := range w.do("GET", "/api/v1/audit", "", bearer...).json(t)["lines"].([]any) {
		l := l.(map[string]any)
		lines = append(lines, fmt.Sprint(l["action"], " ", l["target"], " ", l["detail"]))
	}
	assert.Contains(t, lines, "dead_letter_dismiss seed/"+ids[0]+" It is known.")
	assert.Contains(t, lines, "dead_letter_reopen seed/"+ids[0]+" <nil>")
	assert.Contains(t, lines, "dead_letters_replay seed 1001, chosen by kind=store_failed")
	for _, path := range []string{"/dead-letters/seed/none", "/dead-letters/x/" + ids[0], "/dead-letters/seed/..%2fx"} {
		assert.Equal(t, 404, w.do("GET", path, "", bearer...).code, path)
	}
}

func (w *world) read(key string) string {
	w.t.Helper()
	r, err := w.store.Open(w.t.Context(), key)
	require.NoError(w.t, err)
	b, err := io.ReadAll(r)
	require.NoError(w.t, errors.Join(err, r.Close()))
	return string(b)
}

func TestListPages(t *testing.T) {
	w := newWorld(t, "done")
	at := time.Date(2026, 1, 28, 9, 0, 0, 0, time.UTC)
	for i := range 5 {
		job := "seed"
		if i == 4 {
			job = "docs"
		}
		w.put(fmt.Sprintf("20260128-09000%d-000-0a1b2c3d", i), job, ledger.Done, at.Add(time.Duration(i)*time.Second), time.Minute, sampleTally())
	}
	require.NoError(t, w.board.Refresh(t.Context(), time.Now()))
	ids := func(path string) (out []string, next any) {
		v := w.do("GET", path, "").json(t)
		for _, r := range v["runs"].([]any) {
			out = append(out, r.(map[string]any)["run_id"].(string)[14:15])
		}
		return out, v["next"]
	}
	all, next := ids("/api/v1/runs?limit=2&job=seed")
	assert.Equal(t, []string{"3", "2"}, all)
	all, next = ids("/api/v1/runs?limit=2&job=seed&before=" + next.(string))
	assert.Equal(t, []string{"1", "0"}, all)
	assert.Nil(t, next)
	for _, q := range []string{"limit=0", "limit=x", "limit=1001", "job=x", "job=", "before=.."} {
		assert.Equal(t, http.StatusBadRequest, w.do("GET", "/api/v1/runs?"+q, "").code, q)
	}
}

// TestReportAfterState reads a run between its last two writes. The board and the
// alerts wait for the report, but for a killed run's only a minute.
func TestReportAfterState(t *testing.T) {
	w := newWorld(t, "done")
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	id := ledger.NewRunID(at)
	require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: id, Job: "seed", Runner: "prism", StartedAt: at}))
	run, err := ledger.Finish(t.Context(), w.store, id, ledger.Done, nil, at.Add(time.Second))
	require.NoError(t, err)
	w.tick(t.Context(), at.Add(time.Second))
	require.Equal(t, "done", w.do("GET", "/api/v1/runs/"+id, "").json(t)["state"])
	require.True(t, w.board.Runs()[0].ReportPending)
	require.NoError(t, ledger.WriteReport(t.Context(), w.store, ledger.BuildReport(testJob(run.Job), run, failing(90), at.Add(time.Second))))
	for i := range 20 {
		w.tick(t.Context(), at.Add(time.Duration(i)*time.Second))
	}
	assert.EqualValues(t, 90, w.do("GET", "/api/v1/runs/"+id, "").json(t)["counts"].(map[string]any)["domains_failed"])
	require.Len(t, w.alarm.Firing(), 1)
	assert.Equal(t, "failure_rate", w.alarm.Firing()[0].Rule)

	// Until it is marked as interrupted, a killed run is silent. It can be neither paused nor cancelled, only started again.
	killed := ledger.NewRunID(at.Add(time.Hour))
	require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: killed, Job: "docs", Runner: "prism", StartedAt: at.Add(time.Hour)}))
	require.NoError(t, w.board.Refresh(t.Context(), at.Add(time.Hour)))
	silent, page := w.do("GET", "/api/v1/runs/"+killed, "").json(t), w.do("GET", "/runs/"+killed, "").body
	assert.Equal(t, []any{"silent", "no sign of life since 2026-03-02T11:00:00Z; the next run of docs resumes it"}, []any{silent["state"], silent["error"]})
	assert.Contains(t, page, "no sign of life since 2026-03-02T11:00:00Z")
	assert.NotContains(t, page, "/pause")
	assert.Contains(t, w.do("GET", "/runs?state=silent", "").body, killed)
	assert.NotContains(t, w.do("GET", "/start?job=docs", "").body, killed)
	_, err = ledger.Finish(t.Context(), w.store, killed, ledger.Interrupted, nil, at.Add(time.Hour))
	require.NoError(t, err)
	turn(w, at.Add(time.Hour), 2*time.Minute, time.Second)
	require.Equal(t, killed, w.board.Runs()[0].Run.RunID)
	assert.False(t, w.board.Runs()[0].ReportPending)
	assert.Contains(t, w.alarm.State.Seen, killed)
	require.Len(t, w.alarm.Firing(), 2)
	assert.Equal(t, "run_failed", w.alarm.Firing()[0].Rule)
}

// countingStore counts listings by their prefix.
type countingStore struct {
	store.Store
	mu    sync.Mutex
	lists map[string]int
}

func (c *countingStore) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists[prefix]++
	return c.Store.List(ctx, prefix)
}

// TestManyWatchOneRun requests the page of an active run many times. The store is read
// once for each version of the board.
func TestManyWatchOneRun(t *testing.T) {
	counting := &countingStore{lists: map[string]int{}}
	w := newWorld(t, "done", func(s *Settings) { counting.Store, s.Store = s.Store, counting })
	id := ledger.NewRunID(time.Now())
	require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: id, Job: "seed", Runner: "prism", StartedAt: time.Now()}))
	require.NoError(t, w.board.Refresh(t.Context(), time.Now()))
	letters := "dead-letters/seed/"
	for look := range 3 {
		clear(counting.lists)
		var all sync.WaitGroup
		pages := make([]string, 50)
		for i := range pages {
			all.Go(func() { pages[i] = w.do("GET", "/runs/"+id, "").body })
		}
		all.Wait()
		run := "runs/" + id
		assert.Equal(t, map[string]int{letters: 1, run + "/alive/": 1, run + "/log": 1}, counting.lists)
		for _, page := range pages {
			assert.Contains(t, page, id)
			if look == 1 {
				assert.Contains(t, page, "it would not", "what is new is shown")
			}
		}
		require.NoError(t, ledger.Put(t.Context(), w.store, ledger.DeadLetter{Job: "seed", RunID: id, Kind: "store_failed", Input: ledger.Input{DomainID: "a.sg"}, Error: "it would not"}))
		w.board.Change()
	}
}

// TestChart draws what a run did between two samples.
func TestChart(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	samples := []runs.Sample{{At: at}, {At: at.Add(10 * time.Second), Done: 50}, {At: at.Add(20 * time.Second), Done: 150}}
	got := runs.Rates(samples, func(s runs.Sample) int64 { return s.Done })
	assert.Equal(t, []runs.Point{{At: at, V: 0}, {At: at.Add(10 * time.Second), V: 5}, {At: at.Add(20 * time.Second), V: 10}}, got)
	assert.Contains(t, string(runs.LineChart("Hosts", "hosts a second", "good", got)), `aria-label="Hosts: from 0 to 10 hosts a second, at most 10"`)
	assert.Empty(t, runs.LineChart("Hosts", "", "good", got[:1]))
	assert.Contains(t, string(runs.ColumnChart(`<b>"`, []runs.Column{{Parts: []runs.Part{{Class: "good", V: 1}}}})), "&lt;b&gt;&#34;")

	w := newWorld(t, "wait")
	id := w.start("/api/v1/seeds/orchestrate", "")
	w.reaches(id, "running")
	w.do("POST", "/api/v1/runs/"+id+"/cancel", "")
	w.ended("seed")
	w.reaches(id, "cancelled")
	page := w.do("GET", "/runs/"+id, "").body
	assert.Contains(t, page, "Requests a second: from 0 to")
	next := worldAt(t, w.dir, "wait")
	assert.Contains(t, next.do("GET", "/runs/"+id, "").body, "Requests a second: from 0 to", "the chart outlives the server")
}

// The page shows the time for a host only if hosts were timed: news times none.
func TestPageShowsTimesThatThereAre(t *testing.T) {
	w := newWorld(t, "done")
	timed, none := sampleTally(), sampleTally()
	none.Timings = ledger.Histogram{}
	w.put("20260101-000000-000-00000001", "seed", ledger.Done, time.Now().Add(-time.Hour), time.Minute, timed)
	w.put("20260101-000000-000-00000002", "news", ledger.Done, time.Now().Add(-time.Hour), time.Minute, none)
	page := func(id string) string { return w.do("GET", "/runs/"+id, "", "Accept", "text/html").body }
	for _, name := range []string{"p50", "p95"} {
		assert.Contains(t, page("20260101-000000-000-00000001"), name)
		assert.NotContains(t, page("20260101-000000-000-00000002"), name)
	}
}
