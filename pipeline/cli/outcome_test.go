package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// Every write of a result fails: the run has failed, and says why; a run that
// could keep some of it is complete, with dead letters.
func TestRunThatKeepsNothingFailed(t *testing.T) {
	const args = "--runner=direct --web=demo --store=b --host-delay=0s --log-level=error --progress=off --report=r.json"
	dir := smallBucket(t, false)
	inTheWay := filepath.Join(dir, "b/processing")
	writeFile(t, inTheWay, "a file where the folder should be")
	a := start(t, dir, args)
	r := reportFile(t, dir)
	if a.code != exitFailed || r.State != ledger.Failed || !strings.Contains(a.stderr, "the store refused everything that the run collected") || !strings.Contains(r.Error, "processing/") {
		t.Fatalf("exit code %d, state %s, error %q, want a run that failed for its store:\n%s", a.code, r.State, r.Error, a.stderr)
	}
	if r.Counts["domains_failed"] != 3 || r.DeadLetters["store_failed"] != 3 {
		t.Errorf("counts %v, dead letters %v", r.Counts, r.DeadLetters)
	}
	require.NoError(t, os.Remove(inTheWay))
	writeFile(t, filepath.Join(inTheWay, "country=sg/category=news/date=2026-01-28/kind-urlset-1.com"), "one in the way")
	if a = start(t, dir, args); a.code != exitOK || reportFile(t, dir).State != ledger.Done {
		t.Errorf("exit code %d, want 0 where one of three could not be kept:\n%s", a.code, a.stderr)
	}
	// All that is left to do fails.
	a = start(t, dir, args)
	assert.Equal(t, exitFailed, a.code, "exit code %d, want 1 where the run kept nothing:\n%s", a.code, a.stderr)
	require.NoError(t, os.RemoveAll(inTheWay))
	if a = start(t, dir, args); a.code != exitOK || reportFile(t, dir).Counts["domains_collected"] != 3 {
		t.Errorf("exit code %d after the store was mended:\n%s", a.code, a.stderr)
	}
}

func reportFile(t *testing.T, dir string) ledger.Report {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "r.json"))
	require.NoError(t, err)
	return report(t, b)
}

// Who did not answer is counted, by reason, and counts that seem not to add up
// are explained.
func TestUnreachableIsCounted(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "b/datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"),
		`{"records":[{"raw_url":"https://kind-urlset-1.com/"},{"raw_url":"https://kind-no-such-host-1.com/"},{"raw_url":"https://kind-no-such-host-2.com/"},{"raw_url":"https://kind-tls-wrong-name-1.com/"},{"raw_url":"https://kind-robots403-1.com/"},{"raw_url":"https://kind-redirect-loop-1.com/"}]}`)
	writeFile(t, filepath.Join(dir, "b/datasets/country=kr/category=news/date=2026-01-28/raw_0001.json"), `{"records":[{"raw_url":"https://kind-urlset-1.com/"}]}`)
	a := start(t, dir, "--runner=direct --web=demo --hosts=strict --store=b --host-delay=0s --log-level=error --progress=off --report=r.json")
	c := reportFile(t, dir).Counts
	for name, want := range map[string]int64{"domains_unique": 7, "domains_collected": 7, "domains_failed": 0, "hosts_visited": 6, "metadata_written": 7,
		"hosts_unreachable": 3, "hosts_unreachable_dns": 2, "hosts_unreachable_tls": 1} {
		assert.Equal(t, want, c[name], name)
	}
	for _, words := range []string{"hosts_unreachable", "hosts_unreachable_dns", "did not answer", "one for each partition", "each host once"} {
		assert.Contains(t, a.stdout, words)
	}
}

// Dead letters are those of all jobs, unless one is named.
func TestDeadLettersOfAllJobs(t *testing.T) {
	dir := smallBucket(t, false)
	writeFile(t, filepath.Join(dir, "b.db"), "") // of the news runs
	s, err := store.Open(t.Context(), filepath.Join(dir, "b"))
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	raw := "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"
	ids := map[string]string{}
	for _, j := range []string{"seed", "migrate", "docs", "news"} {
		d := ledger.DeadLetter{Job: j, RunID: "r1", Stage: "x", Kind: "kind_of_" + j, Input: ledger.Input{File: raw, Source: j}, Error: "it would not"}
		require.NoError(t, ledger.Put(t.Context(), s, d))
		ids[j] = d.ID()
	}
	all, one := start(t, dir, "dead-letters --store=b"), start(t, dir, "dead-letters --store=b --job=news")
	for j, id := range ids {
		assert.Contains(t, all.stdout, id+"  "+j, "%s is not in the list:\n%s%s", j, all.stdout, all.stderr)
		assert.Equal(t, j == "news", strings.Contains(one.stdout, id), one.stdout)
		a := start(t, dir, "dead-letters show --store=b "+id)
		assert.True(t, a.code == exitOK && strings.Contains(a.stdout, "kind_of_"+j), "show: exit code %d\n%s%s", a.code, a.stdout, a.stderr)
	}
	if a := start(t, dir, "dead-letters show --store=b --job=news "+ids["docs"]); a.code != exitUsage || !strings.Contains(a.stderr, "of job news") {
		t.Errorf("exit code %d: %s", a.code, a.stderr)
	}
	a := start(t, dir, "dead-letters replay --store=b "+ids["news"]+" "+ids["seed"])
	if a.code != exitOK || strings.Count(a.stdout, "opened the inputs of 1 dead letters") != 2 || !strings.Contains(a.stdout, "--job=seed") || !strings.Contains(a.stdout, "--job=news") {
		t.Errorf("exit code %d\n%s%s", a.code, a.stdout, a.stderr)
	}
}

// A dismissed dead letter is neither listed nor replayed, until a person or a new failure
// opens it again.
func TestDismissedDeadLetters(t *testing.T) {
	dir := smallBucket(t, false)
	writeFile(t, filepath.Join(dir, "b.db"), "") // of the news runs
	s, err := store.Open(t.Context(), filepath.Join(dir, "b"))
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	d := ledger.DeadLetter{Job: "news", RunID: "r1", Stage: "x", Kind: "not_html", Input: ledger.Input{URL: "https://a.example/"}, Error: "it would not"}
	other := ledger.DeadLetter{Job: "seed", RunID: "r1", Stage: "x", Kind: "bad_file", Input: ledger.Input{File: "f"}, Error: "it would not"}
	for _, l := range []ledger.DeadLetter{d, other} {
		require.NoError(t, ledger.Put(t.Context(), s, l))
	}
	f := func(line string, code int, has, lacks string) {
		t.Helper()
		a := start(t, dir, "dead-letters "+line+" --store=b")
		if a.code != code || !strings.Contains(a.stdout+a.stderr, has) || lacks != "" && strings.Contains(a.stdout, lacks) {
			t.Errorf("dead-letters %s: exit code %d, want %d, with %q and without %q\n%s%s", line, a.code, code, has, lacks, a.stdout, a.stderr)
		}
	}
	f("dismiss "+d.ID(), exitUsage, "--note", "")
	f("dismiss --note=x", exitUsage, "dismiss ID…", "")
	f("dismiss "+d.ID()+" 000000000000 --note=x", exitUsage, "no dead letter 000000000000", "")
	f("list", exitOK, d.ID(), "dismissed")
	f("dismiss "+d.ID()+" --note=a-picture", exitOK, "dismissed 1 dead letters", "")
	kept, err := ledger.Get(t.Context(), s, "news", d.ID())
	if err != nil || kept.Open() || kept.Dismissed.Note != "a-picture" || kept.Dismissed.By == "" || kept.Dismissed.At.IsZero() {
		t.Errorf("kept %+v %v, %v", kept, kept.Dismissed, err)
	}
	f("list", exitOK, other.ID(), d.ID())
	f("list --state=all", exitOK, d.ID(), "")
	f("list --state=dismissed", exitOK, ": a-picture", other.ID())
	f("list --state=shut", exitUsage, "open, dismissed or all", "")
	f("show --state=all "+d.ID(), exitUsage, "--state: there is no such flag", "")
	f("replay", exitOK, "opened the inputs of 1 dead letters; the next run of --job=seed", "news")
	f("replay "+d.ID(), exitUsage, "was dismissed by", "")
	f("replay --run=r2 "+other.ID(), exitUsage, "of run r2", "")
	f("reopen "+d.ID(), exitOK, "opened 1 dead letters again", "")
	f("replay "+d.ID(), exitOK, "next run of --job=news", "")
}
