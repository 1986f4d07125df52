package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/launch"
)

// inner names the environment variable that turns this test binary into the
// program, so that a run has its own process, as for a user.
const inner = "PIPELINE_TEST_ARGS"

func TestProgram(t *testing.T) {
	args := os.Getenv(inner)
	if args == "" {
		return // not started by start
	}
	require.NoError(t, os.Unsetenv(inner))
	os.Exit(Main(strings.Fields(args), os.Stdout, os.Stderr))
}

type answer struct {
	code           int
	stdout, stderr string
}

// start runs the program in dir, in a process of its own.
func start(t *testing.T, dir, args string, change ...func(*exec.Cmd)) answer {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, exe, "-test.run=^TestProgram$")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "SEED_") {
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(c.Env, inner+"="+args)
	var stdout, stderr bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &stdout, &stderr
	for _, f := range change {
		f(c)
	}
	err = c.Run()
	require.True(t, err == nil || c.ProcessState != nil, err)
	return answer{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// says fails the test unless the program ended with that code and wrote each of those texts.
func (a answer) says(t *testing.T, code int, want ...string) {
	t.Helper()
	assert.Equal(t, code, a.code, "%s%s", a.stdout, a.stderr)
	for _, w := range want {
		assert.Contains(t, a.stdout+a.stderr, w)
	}
}

// here runs the program in this process.
func here(t *testing.T, args string) answer {
	t.Helper()
	resetBeam(t)
	var stdout, stderr bytes.Buffer
	code := Main(strings.Fields(args), &stdout, &stderr)
	return answer{code, stdout.String(), stderr.String()}
}

// smallBucket makes a bucket with three hosts that answer at once and, if bad, bad records.
func smallBucket(t *testing.T, bad bool) string {
	t.Helper()
	dir := t.TempDir()
	records := []string{
		`{"raw_url":"https://kind-urlset-1.com/a"}`, `{"raw_url":"https://kind-urlset-2.com/"}`, `{"raw_url":"https://kind-no-robots-3.org/"}`,
	}
	if bad {
		records = append(records, `{"raw_url":"not a url"}`)
	}
	writeFile(t, filepath.Join(dir, "b/datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"),
		fmt.Sprintf(`{"meta":{"country":"sg","category":"news","record_count":%d},"records":[%s]}`, len(records), strings.Join(records, ",")))
	return dir
}

func report(t *testing.T, b []byte) ledger.Report {
	t.Helper()
	var r ledger.Report
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), "%s", b)
	require.False(t, d.More(), "there is more than the report:\n%s", b)
	return r
}

// Wherever a failed run is shown, its reason is shown.
func TestRunsSayWhy(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	for id, why := range map[string]error{"r1": errors.New("the pipeline stopped: the runner said token=REDACTED no, and that it will not"), "r2": launch.ErrInterrupted} {
		require.NoError(t, ledger.Start(t.Context(), s, ledger.Run{RunID: id, Job: "seed", Runner: "direct", StartedAt: time.Now()}))
		_, err := ledger.Finish(t.Context(), s, id, ledger.Failed, why, time.Now())
		require.NoError(t, err)
		here(t, "runs list --store="+dir).says(t, exitOK, why.Error()[:50])
		here(t, "runs show "+id+" --store="+dir).says(t, exitOK, why.Error()[:50])
	}
}

// A crawl's dead letters are listed by their subject. They cannot be replayed
// into a database that no run has ever used.
func TestDeadLettersOfACrawl(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("b", 0o755))
	s, err := store.Open(t.Context(), "b")
	require.NoError(t, err)
	for _, in := range []ledger.Input{{URL: "https://shop.example/p/7", Source: "shop"}, {Source: "othershop"}} {
		require.NoError(t, ledger.Put(t.Context(), s, ledger.DeadLetter{Job: "catalog", RunID: "r", Stage: "s", Kind: "blocked", Input: in, Error: "e"}))
	}
	require.NoError(t, ledger.Put(t.Context(), s, ledger.DeadLetter{Job: "news", RunID: "r", Stage: "Fetch", Kind: "http_500", Input: ledger.Input{URL: "https://daily.example/a/1", Source: "daily"}, Error: "e"}))
	require.NoError(t, s.Close())
	here(t, "dead-letters --job=catalog --store=b").says(t, exitOK, "https://shop.example/p/7  e", "othershop")
	for _, job := range []string{"catalog", "news"} {
		here(t, "dead-letters replay --job="+job+" --store=b").says(t, exitUsage, "--db")
	}
	_, err = os.Stat("b.db")
	assert.Error(t, err, "it made a database")
}

func TestExitTellsJoinedErrorsApart(t *testing.T) {
	var b bytes.Buffer
	exit("pipeline", errors.Join(errors.Join(errors.New("a:\n b"), nil), fmt.Errorf("c: %w", errors.New("d"))), &b)
	assert.Equal(t, "pipeline: a: b; c: d\n", b.String())
}

func TestHelpAndVersion(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	f := func(args string, has, hasNot []string) {
		t.Helper()
		a := here(t, args)
		assert.True(t, a.code == exitOK && a.stderr == "", "%s: exit %d: %s", args, a.code, a.stderr)
		for _, s := range has {
			assert.Contains(t, a.stdout, s, args)
		}
		for _, s := range hasNot {
			assert.NotContains(t, a.stdout, s, args)
		}
	}
	seed := []string{"-concurrency", "(default 64)", "-host-delay", "(default 200ms)", "-until", "-report", "--endpoint", "SEED_HOST_DELAY"}
	for _, args := range []string{"", "help", "--help", "-h"} {
		f(args, []string{"seed docs catalog news migrate", "runs", "errors", "status [RUN]", "completion SHELL"}, []string{"-concurrency"})
		n := strings.Count(here(t, args).stdout, "\n")
		assert.True(t, n <= 25, "%q: %d lines", args, n)
	}
	f("help seed", append(seed, "--help-all shows all 5"), []string{"-delete-verified", "-dry-run", "-robots-cache", "-parallel-fetch"})
	f("help seed --help-all", append(seed, "-robots-cache", "-server-delay"), []string{"-delete-verified", "-parallel-fetch"})
	f("seed --help-all", []string{"-robots-cache"}, nil)
	f("plan seed --help", []string{"pipeline plan seed [flags]", "-until"}, nil)
	f("help catalog", []string{"-host-delay", "(default 1s)"}, []string{"-savers"})
	f("help migrate", []string{"-delete-verified", "-dry-run", "(default true)", "-store", "-country"}, []string{"-homepage", "-concurrency"})
	f("help runs", []string{"show RUN", "cancel RUN", "pause RUN", "resume RUN", "--store"}, nil)
	f("runs --help", []string{"show RUN"}, nil)
	f("help errors", []string{"retry [ID…]", "show ID", "--store"}, nil)
	f("dead-letters -h", []string{"retry [ID…]"}, nil)
	f("help version", []string{"version"}, nil)
	f("version", []string{"seed-engine ", "commit ", "\ngo1.", "\nBeam "}, []string{"\n\n"})
	left := tree(t, ".")
	assert.True(t, len(left) <= 0, "help made %q", left)
}

// TestOneRun runs a job, and then every command that shows or controls the run.
func TestOneRun(t *testing.T) {
	t.Parallel()
	dir := smallBucket(t, true)
	const run = "--store=b --web=demo --host-delay=1ms "
	a := start(t, dir, run+"--report=- --runner=prism")
	require.Equal(t, exitOK, a.code, a.stderr) // bad records are a dead letter, which does not fail a run
	for d := json.NewDecoder(strings.NewReader(a.stderr)); d.More(); {
		var line struct{ Event string }
		err := d.Decode(&line)
		require.True(t, err == nil && line.Event != "", "the log is not one of JSON events (%v):\n%s", err, a.stderr)
	}
	r := report(t, []byte(a.stdout))
	assert.Equal(t, ledger.Done, r.State)
	assert.Subset(t, r.Counts, map[string]int64{"domains_collected": 3, "records": 4, "records_bad": 1, "dead_letters": 1})
	_, ok := r.Options["store"]
	assert.True(t, !ok && r.Options["web"] == "demo", "the report's options: %v", r.Options)

	// the same under --strict, with --force because all is done
	a = start(t, dir, run+"--report=r.json --strict --force --runner=direct")
	a.says(t, exitStrict, "see `errors`", `"event":"run_reported"`)
	assert.Contains(t, a.stdout, "domains_collected")
	b, err := os.ReadFile(filepath.Join(dir, "r.json"))
	require.NoError(t, err)
	forced := report(t, b)
	assert.True(t, forced.State == ledger.Done && forced.Counts["domains_collected"] == 3 && forced.Runner == "direct", "--report=r.json: %+v", forced)

	list := start(t, dir, "runs --store=b")
	lines := strings.Split(strings.TrimSpace(list.stdout), "\n")
	list.says(t, exitOK)
	require.Len(t, lines, 3)
	assert.True(t, strings.HasPrefix(lines[1], forced.RunID) && strings.HasPrefix(lines[2], r.RunID), "not newest first: %s", list.stdout)
	show := start(t, dir, "runs show "+r.RunID, func(c *exec.Cmd) { c.Env = append(c.Env, "SEED_STORE=b") })
	show.says(t, exitOK, `"worker": "launcher"`, `"event": "domain_extraction_failed"`)
	got := report(t, []byte(show.stdout))
	assert.True(t, got.RunID == r.RunID && got.State == ledger.Done, "runs show: %+v", got)
	kept := start(t, dir, "runs log --store=b "+r.RunID)
	kept.says(t, exitOK, `"event":"run_ended"`, `"event":"domain_extraction_failed"`)
	for l := range strings.Lines(kept.stdout) {
		assert.Contains(t, l, `"run_id":"`+r.RunID+`","job":"seed"`)
		assert.Equal(t, 1, strings.Count(l, `"run_id"`), l)
	}
	start(t, dir, "runs cancel "+r.RunID+" --store=b").says(t, exitUsage, "is over (done)")

	bucket, err := store.Open(t.Context(), filepath.Join(dir, "b"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(ledger.Start(t.Context(), bucket, ledger.Run{RunID: "cancelled", Job: "seed"}),
		ledger.WriteControl(t.Context(), bucket, "cancelled", ledger.Control{Action: ledger.ActionCancel}), bucket.Close()))
	for _, verb := range []string{"pause", "resume"} {
		start(t, dir, "runs "+verb+" cancelled --store=b").says(t, exitUsage, "run cancelled: it was cancelled, which cannot be undone")
	}
	start(t, dir, "runs cancel cancelled --store=b").says(t, exitOK)

	letters := start(t, dir, "dead-letters --store=b")
	lines = strings.Split(strings.TrimSpace(letters.stdout), "\n")
	letters.says(t, exitOK)
	require.Len(t, lines, 2)
	assert.Contains(t, lines[1], "bad_records")
	id := strings.Fields(lines[1])[0]
	one := start(t, dir, "dead-letters show --store=b "+id)
	var d ledger.DeadLetter
	require.NoError(t, json.Unmarshal([]byte(one.stdout), &d))
	assert.True(t, d.Attempts == 2 && d.RunID == forced.RunID && d.Input.Key+d.Input.File != "", "dead-letters show: %+v", d)
	// A person replays the dead letter, and the next run reads its input again.
	mark := filepath.Join(dir, "b", d.Input.File+".success")
	require.FileExists(t, mark, "the raw file is not done")
	for _, missing := range []string{"dead-letters replay --store=b 000000000000 " + id, "dead-letters replay --store=b --run=none " + id} {
		start(t, dir, missing).says(t, exitUsage)
		assert.FileExists(t, mark, "it was refused, and touched the store")
	}
	start(t, dir, "dead-letters replay --store=b "+id).says(t, exitOK, "1 dead letter")
	assert.NoFileExists(t, mark)
	again := report(t, []byte(start(t, dir, run+"--report=-").stdout))
	assert.Subset(t, again.Counts, map[string]int64{"files_read": 1, "records_bad": 1, "domains_already_done": 3})
	assert.Zero(t, again.HTTP.Requests)
}

// TestPreviews: a preview creates no file, not even the copy of the sample.
func TestPreviews(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	f := func(args, want string) {
		t.Helper()
		a := here(t, args)
		assert.True(t, a.code == exitOK && strings.Contains(a.stdout, want), "%s: exit %d: %s%s", args, a.code, a.stdout, a.stderr)
		left := tree(t, ".")
		assert.True(t, len(left) <= 0, "%s made %q", args, left)
	}
	f("--until=list", "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json\n")
	f("--until=list --country=kr", "datasets/country=kr/")
	f("--until=extract", "would visit up to")
	f("--job=migrate", "would copy 1 files")
	f("--estimate", "of these to visit")
}

// TestFailingStore: the exit code is 1 when a store exists but fails, and 2 when
// it refuses access.
func TestFailingStore(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
	f := func(status int, body string, want int) {
		t.Helper()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		defer s.Close()
		for _, args := range []string{"", "runs "} {
			a := here(t, args+"--store=s3://bucket?endpoint="+s.URL)
			a.says(t, want, "s3://bucket")
			assert.True(t, strings.Count(a.stderr, "\n") == 1 && a.stdout == "", "%sstatus %d: %s%s", args, status, a.stdout, a.stderr)
			assert.NotContains(t, a.stderr, "EXAMPLE")
		}
	}
	f(503, `<Error><Code>ServiceUnavailable</Code><Message>later</Message></Error>`, exitFailed)
	f(404, `<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>`, exitUsage)
	f(403, `<Error><Code>AccessDenied</Code><Message>no</Message></Error>`, exitUsage)
	left := tree(t, ".")
	assert.True(t, len(left) <= 0, "it made %q", left)
}

// TestUnreadableStore runs the program as a user who may not read the store.
func TestUnreadableStore(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "b/datasets/x"), "")
	require.NoError(t, os.Chmod(filepath.Join(dir, "b"), 0o300)) // may be entered, not read
	require.NoError(t, os.Chmod(filepath.Join(dir, "b/datasets"), 0))
	t.Cleanup(func() { // else it cannot be removed
		_ = os.Chmod(filepath.Join(dir, "b"), 0o700)
		_ = os.Chmod(filepath.Join(dir, "b/datasets"), 0o700)
	})
	if os.Geteuid() != 0 {
		unreadable(t, start(t, dir, "--store=b"))
		return
	}
	// Root may read everything, so a copy of the binary runs as the user nobody.
	exe, err := os.Executable()
	require.NoError(t, err)
	binary, err := os.ReadFile(exe)
	require.NoError(t, err)
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, binary, 0o755))
	for _, d := range []string{dir, filepath.Dir(dir)} {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	unreadable(t, start(t, dir, "--store=b", func(c *exec.Cmd) {
		c.Path = program
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}))
}

func unreadable(t *testing.T, a answer) {
	t.Helper()
	a.says(t, exitUsage, "permission denied", "give this user the right")
	assert.Equal(t, 1, strings.Count(a.stderr, "\n"), a.stderr)
}

// TestBrokenLetter: a dead letter that cannot be read does not hide the others.
func TestBrokenLetter(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	ctx := t.Context()
	s, err := store.Open(ctx, "mem://letters")
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	require.NoError(t, s.Put(ctx, "dead-letters/seed/000.json", strings.NewReader("{"), store.PutOptions{}))
	require.NoError(t, ledger.Put(ctx, s, ledger.DeadLetter{Job: "seed", RunID: "r", Kind: "bad_file", Input: ledger.Input{File: "datasets/x"}, Error: "broken"}))
	a := here(t, "dead-letters --store=mem://letters")
	a.says(t, exitFailed, "000.json")
	assert.Contains(t, a.stdout, "bad_file")
}

func TestSecretsInErrors(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	for _, args := range []string{
		"--store=s3://key:hunter2@bucket", "--store=https://key:hunter2@bucket-{env}/x", "--store=s3://bucket?endpoint=http://key:hunter2@host",
		"runs --store=r2://key:hunter2@bucket", "--runner=flink --endpoint=h:1 --store=file://key:hunter2@x",
	} {
		a := here(t, args)
		assert.True(t, a.code == exitUsage && !strings.Contains(a.stdout+a.stderr, "hunter2"), "%s: exit %d: %s", args, a.code, a.stderr)
	}
}

// Schedulers show the last line of a program's output.
func TestExitSaysOneLine(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, exitFailed, exit("pipeline", errors.New("[3:1] unknown field\n   1 | store: x\n>  3 | stor: y\n"), &stderr))
	assert.Equal(t, "pipeline: [3:1] unknown field 1 | store: x > 3 | stor: y\n", stderr.String())
}

// TestTerminal: text of strangers in the store never reaches the terminal
// unescaped.
func TestTerminal(t *testing.T) {
	dir := t.TempDir()
	evil := "\x1b]0;owned\x07 \u202egnp.exe \u009b2J\nSECOND\tcell"
	b, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	letter := ledger.DeadLetter{Job: "seed", RunID: "r1", Kind: "bad_file\x1b[31m", Input: ledger.Input{URL: "https://a.example/\x1b[2J"}, Error: evil}
	run := ledger.Run{RunID: "r1", Job: "seed", Runner: "prism\x1b[2J", StartedAt: time.Now()}
	require.NoError(t, errors.Join(ledger.Put(t.Context(), b, letter), ledger.Start(t.Context(), b, run)))
	for _, line := range []string{"runs list", "runs show r1", "dead-letters list", "dead-letters show " + letter.ID(), "runs show " + "\x1b[2J"} {
		a := here(t, line+" --store="+dir)
		escapes := strings.ContainsFunc(a.stdout+a.stderr, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) })
		assert.False(t, escapes, "%s writes %q", line, a.stdout+a.stderr)
		if strings.HasSuffix(line, "list") {
			assert.Equal(t, 2, strings.Count(a.stdout, "\n"), "%s: what a stranger wrote makes a line of its own:\n%s", line, a.stdout)
		}
	}
}

// With --strict a run that left something undone has its own exit code.
func TestExitOfStrict(t *testing.T) {
	for says, err := range map[string]error{
		"pipeline: the run is complete, but some providers are not done: their rows of the report say why; the next run tries them again\n": launch.ErrNotDone,
		"pipeline: the run is complete, but it left dead letters: see `errors`\n":                                                           launch.ErrStrict,
	} {
		var stderr strings.Builder
		assert.Equal(t, exitStrict, exit("pipeline", err, &stderr))
		assert.Equal(t, says, stderr.String())
	}
}

func TestPurgeCommand(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	for id, age := range map[string]time.Duration{"old": 91 * 24 * time.Hour, "new": time.Hour} {
		at := time.Now().Add(-age)
		require.NoError(t, ledger.Start(t.Context(), s, ledger.Run{RunID: id, Job: "seed", StartedAt: at}))
		_, err := ledger.Finish(t.Context(), s, id, ledger.Done, nil, at)
		require.NoError(t, err)
	}
	for _, bad := range []string{"", " --older-than=ninety", " --older-than=-1h", " --older-than=0d", " --older-than=90d new", " --older-than=90d --job=sow"} {
		here(t, "runs purge --store="+dir+bad).says(t, exitUsage)
	}
	here(t, "runs list --older-than=1h --store="+dir).says(t, exitUsage)
	here(t, "runs purge --older-than=90d --job=docs --store="+dir).says(t, exitOK, "removed 0 runs and 0 dead letters")
	here(t, "runs purge --older-than=90d --store="+dir).says(t, exitOK, "removed 1 runs and 0 dead letters")
	a := here(t, "runs list --store="+dir)
	a.says(t, exitOK, "new")
	assert.NotContains(t, a.stdout, "old")
}
