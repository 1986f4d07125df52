package cli

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
)

// A provider is removed at once, with a receipt. A request that a server recorded is done by `removals do` or by the next docs run,
// which does not crawl the provider any more.
func TestRemovals(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	at := " --store=" + dir
	ok := func(line string) string {
		t.Helper()
		got := here(t, line+at)
		require.Equal(t, exitOK, got.code, got.stderr)
		return got.stdout
	}
	entry := func(id string) (e removal.Entry) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(ok("removals show "+id)), &e))
		return e
	}
	request := func(provider string) string {
		t.Helper()
		s, err := store.Open(t.Context(), dir)
		require.NoError(t, err)
		r, err := removal.Record(t.Context(), s, removal.Request{Job: "docs", Provider: provider, From: "legal@aws.example"}, time.Now())
		require.NoError(t, err)
		require.NoError(t, s.Close())
		return r.ID
	}
	const run = "--job=docs --web=demo --log-level=error"
	got := here(t, "rm provider aws-ses --db=sqlite:///nowhere/x.db"+at)
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "no run has used")
	ok(run)
	first := request("aws-ses")
	assert.Regexp(t, first+` +docs +aws-ses .* open +legal@aws.example`, ok("removals list"))
	assert.Nil(t, entry(first).Receipt)
	ok(run)
	done := entry(first)
	require.NotNil(t, done.Receipt)
	assert.Contains(t, done.Receipt.By, "run ")
	assert.Positive(t, done.Receipt.Tries[0].Rows["docs_pages"])

	said := ok("rm provider toss-payments --note=ticket")
	assert.Regexp(t, `^toss-payments: removed [1-9][0-9]* rows, .* [1-9][0-9]* chunks \(to be deleted from the embeddings too: \S+\); .*--enable-provider=toss-payments is given\n$`, said)
	second := entry(regexp.MustCompile(`[0-9TZ]+-[a-z0-9]{6}`).FindString(said))
	assert.Equal(t, "ticket", second.Note)
	assert.Positive(t, second.Receipt.Tries[0].Chunks)
	assert.Contains(t, ok("removals do"), "no request is open")
	third := request("toss-payments")
	assert.Contains(t, ok("removals do"), "toss-payments: removed 0 rows")
	assert.NotNil(t, entry(third).Receipt)
	var listed removal.Entry
	require.NoError(t, json.NewDecoder(strings.NewReader(ok("removals --json"))).Decode(&listed))
	assert.Equal(t, "docs", listed.Job)
	fourth := request("toss-payments")
	assert.Contains(t, ok(run+" --purge-provider=toss-payments"), "the request "+fourth+" is done")

	// A misspelt provider is refused; one without a policy is taken if it left something.
	policies := t.TempDir()
	writeFile(t, filepath.Join(policies, "a.yaml"), "provider_id: another\nseed_urls: [https://docs.example.org/]\nallowed_path_patterns: [/**]\n")
	ok("rm provider aws-ses --policies=" + policies)
	for line, says := range map[string]string{
		"rm provider toss-paymnets":                  "--provider=toss-paymnets: there is no such provider; known are ",
		"rm provider aws-sse --policies=" + policies: "did you mean aws-ses?",
		"rm provider":              "write pipeline rm provider NAME…",
		"rm news.example":          `rm "news.example" is no command; use `,
		"rm domain www.moh.gov.sg": "write moh.gov.sg instead of www.moh.gov.sg",
		"rm domain moh.gov.sg":     "nothing of it is kept",
		"removals forget":          `removals "forget" is no command; use ls, show or do`,
		"removals show":            "write pipeline removals show ID",
		"removals show nothing":    "there is no request nothing",
	} {
		got := here(t, line+at)
		assert.Equal(t, exitUsage, got.code, line)
		assert.Contains(t, got.stderr, says)
	}
}
