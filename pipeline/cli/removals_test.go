package cli

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/removal"
)

// A request is recorded, and done by `removals do` or by the next docs run, which does not
// crawl the provider any more.
func TestRemovals(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	at := " --store=" + dir
	ok := func(line string) string {
		t.Helper()
		got := here(t, line+at)
		require.Equal(t, ExitOK, got.code, got.stderr)
		return got.stdout
	}
	entry := func(id string) (e removal.Entry) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(ok("removals show "+id)), &e))
		return e
	}
	const run = "--job=docs --web=demo --log-level=error"
	ok(run)
	id := func(said string) string { return regexp.MustCompile(`^[0-9TZ]+-[a-z0-9]+`).FindString(said) }
	first := id(ok("removals request --provider=aws-ses --from=legal@aws.example"))
	assert.Regexp(t, first+` +docs +aws-ses .* open +legal@aws.example`, ok("removals list"))
	assert.Nil(t, entry(first).Receipt)
	ok(run)
	done := entry(first)
	require.NotNil(t, done.Receipt)
	assert.Contains(t, done.Receipt.By, "run ")
	assert.Positive(t, done.Receipt.Tries[0].Rows["docs_pages"])

	second := id(ok("removals request --provider=toss-payments"))
	assert.Contains(t, ok("removals do"), "toss-payments: removed ")
	assert.Positive(t, entry(second).Receipt.Tries[0].Chunks)
	assert.Contains(t, ok("removals do"), "no request is open")
	third := id(ok("removals request --provider=toss-payments"))
	assert.Contains(t, ok(run+" --purge-provider=toss-payments"), "the request "+third+" is done")
	got := here(t, "removals request --provider=toss-payments"+at)
	require.Equal(t, ExitOK, got.code)
	got = here(t, "removals do --db=sqlite:///nowhere/x.db"+at)
	assert.Equal(t, ExitUsage, got.code)
	assert.Contains(t, got.stderr, "no run has used")

	// A misspelt provider is refused; one without a policy is taken if it left something.
	got = here(t, "removals request --provider=toss-paymnets"+at)
	assert.Equal(t, ExitUsage, got.code)
	assert.Contains(t, got.stderr, "--provider=toss-paymnets: there is no such provider; known are ")
	policies := t.TempDir()
	writeFile(t, filepath.Join(policies, "a.yaml"), "provider_id: another\nseed_urls: [https://docs.example.org/]\nallowed_path_patterns: [/**]\n")
	ok("removals request --provider=aws-ses --policies=" + policies)
	got = here(t, "removals request --db=sqlite:///nowhere/x.db --provider=aws-ses --policies="+policies+at)
	assert.Equal(t, ExitUsage, got.code)
	assert.Contains(t, got.stderr, "known are another")
	for line, says := range map[string]string{
		"removals request":                             "name the source, by one of --domain, --provider, --site or --publisher",
		"removals forget":                              "write removals list",
		"removals show":                                "name one request",
		"removals show nothing":                        "there is no request nothing",
		"removals do --provider=a":                     "are for removals request",
		"removals request --provider=aws-ses --site=x": "name the source",
		"removals list x":                              "write removals list",
	} {
		got := here(t, line+at)
		assert.Equal(t, ExitUsage, got.code, line)
		assert.Contains(t, got.stderr, says)
	}
}
