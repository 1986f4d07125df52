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
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in:\n%s", err, b)
	}
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
		if _, err := ledger.Finish(t.Context(), s, id, ledger.Failed, why, time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"runs list", "runs show " + id} {
			if a := here(t, line+" --store="+dir); a.code != exitOK || !strings.Contains(a.stdout, why.Error()[:50]) {
				t.Errorf("%s: exit %d, %s, want %q", line, a.code, a.stdout, why)
			}
		}
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
	list := here(t, "dead-letters --job=catalog --store=b")
	for _, want := range []string{"https://shop.example/p/7  e", "othershop"} {
		if list.code != exitOK || !strings.Contains(list.stdout, want) {
			t.Errorf("exit %d, without %q:\n%s%s", list.code, want, list.stdout, list.stderr)
		}
	}
	for _, job := range []string{"catalog", "news"} {
		a := here(t, "dead-letters replay --job="+job+" --store=b")
		if a.code != exitUsage || !strings.Contains(a.stderr, "--db") {
			t.Errorf("replay of %s without the run's database: exit %d\n%s%s", job, a.code, a.stdout, a.stderr)
		}
	}
	_, err = os.Stat("b.db")
	assert.Error(t, err, "it made a database")
}

func TestExitTellsJoinedErrorsApart(t *testing.T) {
	var b bytes.Buffer
	exit("pipeline", errors.Join(errors.Join(errors.New("a:\n b"), nil), fmt.Errorf("c: %w", errors.New("d"))), &b)
	if want := "pipeline: a: b; c: d\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
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
	f("help seed", append(seed, "--help-all shows all 4"), []string{"-delete-verified", "-dry-run", "-robots-cache", "-parallel-fetch"})
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
	if a.code != exitOK { // bad records are a dead letter, which does not fail a run
		t.Fatalf("exit %d: %s", a.code, a.stderr)
	}
	for d := json.NewDecoder(strings.NewReader(a.stderr)); d.More(); {
		var line struct{ Event string }
		err := d.Decode(&line)
		require.True(t, err == nil && line.Event != "", "the log is not one of JSON events (%v):\n%s", err, a.stderr)
	}
	r := report(t, []byte(a.stdout))
	if r.State != ledger.Done || r.Counts["domains_collected"] != 3 || r.Counts["records"] != 4 || r.Counts["records_bad"] != 1 || r.Counts["dead_letters"] != 1 {
		t.Errorf("state %s, counts %v", r.State, r.Counts)
	}
	_, ok := r.Options["store"]
	assert.True(t, !ok && r.Options["web"] == "demo", "the report's options: %v", r.Options)

	// the same under --strict, with --force because all is done
	a = start(t, dir, run+"--report=r.json --strict --force --runner=direct")
	if a.code != exitStrict || !strings.Contains(a.stderr, "see `errors`") || !strings.Contains(a.stderr, `"event":"run_reported"`) || !strings.Contains(a.stdout, "domains_collected") {
		t.Errorf("--strict: exit %d, stdout %q, stderr %q", a.code, a.stdout, a.stderr)
	}
	b, err := os.ReadFile(filepath.Join(dir, "r.json"))
	require.NoError(t, err)
	forced := report(t, b)
	if forced.State != ledger.Done || forced.Counts["domains_collected"] != 3 || forced.Runner != "direct" {
		t.Errorf("--report=r.json: %+v", forced)
	}

	list := start(t, dir, "runs --store=b")
	lines := strings.Split(strings.TrimSpace(list.stdout), "\n")
	if list.code != exitOK || len(lines) != 3 || !strings.HasPrefix(lines[1], forced.RunID) || !strings.HasPrefix(lines[2], r.RunID) {
		t.Errorf("runs: exit %d, not newest first:\n%s%s", list.code, list.stdout, list.stderr)
	}
	show := start(t, dir, "runs show "+r.RunID, func(c *exec.Cmd) { c.Env = append(c.Env, "SEED_STORE=b") })
	if got := report(t, []byte(show.stdout)); show.code != exitOK || got.RunID != r.RunID || got.State != ledger.Done {
		t.Errorf("runs show: exit %d: %+v %s", show.code, got, show.stderr)
	}
	if want := `"event": "domain_extraction_failed"`; !strings.Contains(show.stdout, `"worker": "launcher"`) || !strings.Contains(show.stdout, want) {
		t.Errorf("runs show has no warnings of workers, want %s:\n%s", want, show.stdout)
	}
	kept := start(t, dir, "runs log --store=b "+r.RunID)
	if kept.code != exitOK || !strings.Contains(kept.stdout, `"event":"run_ended"`) || !strings.Contains(kept.stdout, `"event":"domain_extraction_failed"`) {
		t.Errorf("runs log: exit %d:\n%s%s", kept.code, kept.stdout, kept.stderr)
	}
	for l := range strings.Lines(kept.stdout) {
		if !strings.Contains(l, `"run_id":"`+r.RunID+`","job":"seed"`) || strings.Count(l, `"run_id"`) != 1 {
			t.Errorf("a line of the run's log: %s", l)
		}
	}
	over := start(t, dir, "runs cancel "+r.RunID+" --store=b")
	if over.code != exitUsage || !strings.Contains(over.stderr, "is over (done)") {
		t.Errorf("runs cancel of an ended run: exit %d: %s", over.code, over.stderr)
	}

	bucket, err := store.Open(t.Context(), filepath.Join(dir, "b"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(ledger.Start(t.Context(), bucket, ledger.Run{RunID: "cancelled", Job: "seed"}),
		ledger.WriteControl(t.Context(), bucket, "cancelled", ledger.Control{Action: ledger.ActionCancel}), bucket.Close()))
	for verb, code := range map[string]int{"pause": exitUsage, "resume": exitUsage, "cancel": exitOK} {
		if a := start(t, dir, "runs "+verb+" cancelled --store=b"); a.code != code || code == exitUsage && !strings.Contains(a.stderr, "run cancelled: it was cancelled, which cannot be undone") {
			t.Errorf("runs %s after a cancel: exit %d, want %d: %s", verb, a.code, code, a.stderr)
		}
	}

	letters := start(t, dir, "dead-letters --store=b")
	lines = strings.Split(strings.TrimSpace(letters.stdout), "\n")
	if letters.code != exitOK || len(lines) != 2 || !strings.Contains(lines[1], "bad_records") {
		t.Fatalf("dead-letters: exit %d:\n%s%s", letters.code, letters.stdout, letters.stderr)
	}
	id := strings.Fields(lines[1])[0]
	one := start(t, dir, "dead-letters show --store=b "+id)
	var d ledger.DeadLetter
	if err := json.Unmarshal([]byte(one.stdout), &d); err != nil || d.Attempts != 2 || d.RunID != forced.RunID || d.Input.Key+d.Input.File == "" {
		t.Errorf("dead-letters show: %v, %+v", err, d)
	}
	// A person replays the dead letter, and the next run reads its input again.
	mark := filepath.Join(dir, "b", d.Input.File+".success")
	_, err = os.Stat(mark)
	require.NoError(t, err, "the raw file is not done")
	for _, missing := range []string{"dead-letters replay --store=b 000000000000 " + id, "dead-letters replay --store=b --run=none " + id} {
		if a := start(t, dir, missing); a.code != exitUsage {
			t.Errorf("%s: exit %d", missing, a.code)
		}
		if _, err := os.Stat(mark); err != nil {
			t.Errorf("%s was refused, and touched the store: %v", missing, err)
		}
	}
	replayed := start(t, dir, "dead-letters replay --store=b "+id)
	if _, err := os.Stat(mark); replayed.code != exitOK || !os.IsNotExist(err) || !strings.Contains(replayed.stdout, "1 dead letter") {
		t.Errorf("replay: exit %d: %s%s %v", replayed.code, replayed.stdout, replayed.stderr, err)
	}
	again := report(t, []byte(start(t, dir, run+"--report=-").stdout))
	if again.Counts["files_read"] != 1 || again.Counts["records_bad"] != 1 || again.Counts["domains_already_done"] != 3 || again.HTTP.Requests != 0 {
		t.Errorf("the run after the replay: %v, %d requests", again.Counts, again.HTTP.Requests)
	}
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
			if a.code != want || strings.Count(a.stderr, "\n") != 1 || !strings.Contains(a.stderr, "s3://bucket") || a.stdout != "" {
				t.Errorf("%sstatus %d: exit %d, want %d: %s%s", args, status, a.code, want, a.stdout, a.stderr)
			}
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
	if err := os.Chmod(filepath.Join(dir, "b"), 0o300); err != nil { // may be entered, not read
		t.Fatal(err)
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "b/datasets"), 0))
	t.Cleanup(func() { // else it cannot be removed
		_ = os.Chmod(filepath.Join(dir, "b"), 0o700)
		_ = os.Chmod(filepath.Join(dir, "b/datasets"), 0o700)
	})
	if os.Geteuid() != 0 {
		a := start(t, dir, "--store=b")
		unreadable(t, a)
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
	if a.code != exitUsage || strings.Count(a.stderr, "\n") != 1 || !strings.Contains(a.stderr, "permission denied") || !strings.Contains(a.stderr, "give this user the right") {
		t.Errorf("exit %d: %s", a.code, a.stderr)
	}
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
	if a.code != exitFailed || !strings.Contains(a.stdout, "bad_file") || !strings.Contains(a.stderr, "000.json") {
		t.Errorf("exit %d:\n%s%s", a.code, a.stdout, a.stderr)
	}
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
	got, want := stderr.String(), "pipeline: [3:1] unknown field 1 | store: x > 3 | stor: y\n"
	assert.Equal(t, want, got, "says %q, want %q", got, want)
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
		for _, r := range a.stdout + a.stderr {
			if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
				t.Errorf("%s writes %q:\n%q", line, r, a.stdout+a.stderr)
				break
			}
		}
		if strings.HasSuffix(line, "list") && strings.Count(a.stdout, "\n") != 2 {
			t.Errorf("%s: what a stranger wrote makes a line of its own:\n%s", line, a.stdout)
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
		if code := exit("pipeline", err, &stderr); code != exitStrict || stderr.String() != says {
			t.Errorf("exit code %d, %q; want %d, %q", code, stderr.String(), exitStrict, says)
		}
	}
}

func TestPurgeCommand(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	for id, age := range map[string]time.Duration{"old": 91 * 24 * time.Hour, "new": time.Hour} {
		at := time.Now().Add(-age)
		require.NoError(t, ledger.Start(t.Context(), s, ledger.Run{RunID: id, Job: "seed", StartedAt: at}))
		if _, err := ledger.Finish(t.Context(), s, id, ledger.Done, nil, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", " --older-than=ninety", " --older-than=-1h", " --older-than=0d", " --older-than=90d new", " --older-than=90d --job=sow"} {
		a := here(t, "runs purge --store="+dir+bad)
		assert.Equal(t, exitUsage, a.code, "runs purge%s: exit %d: %s%s", bad, a.code, a.stdout, a.stderr)
	}
	a := here(t, "runs list --older-than=1h --store="+dir)
	assert.Equal(t, exitUsage, a.code, "runs list --older-than: exit %d", a.code)
	for _, c := range [][2]string{{" --job=docs", "removed 0 runs and 0 dead letters"}, {"", "removed 1 runs and 0 dead letters"}} {
		if a := here(t, "runs purge --older-than=90d --store="+dir+c[0]); a.code != exitOK || !strings.Contains(a.stdout, c[1]) {
			t.Errorf("runs purge%s: exit %d: %s%s, want %q", c[0], a.code, a.stdout, a.stderr, c[1])
		}
	}
	if a := here(t, "runs list --store="+dir); strings.Contains(a.stdout, "old") || !strings.Contains(a.stdout, "new") {
		t.Errorf("what is left:\n%s", a.stdout)
	}
}
