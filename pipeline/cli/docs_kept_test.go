package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// keep writes a change of a provider into the store.
func keep(t *testing.T, dir, id string, after int, c policyfile.Change) {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	body, err := json.Marshal(c)
	require.NoError(t, err)
	_, err = kept.On(s, policy.Kind(nil).Kept()).Add(t.Context(), id, after, kept.Version{At: time.Now(), Who: "test", Action: "provider_edit", Body: body})
	require.NoError(t, err)
}

// A run crawls the providers that people keep in the store, by their policies there, and
// none that they disabled. Files that --policies names win.
func TestProvidersInTheStore(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	crawled := func(flags string) (out []string) {
		t.Helper()
		got := here(t, "--job=docs --web=demo --log-level=error --report=- --store="+dir+" "+flags)
		require.Equal(t, exitOK, got.code, got.stderr)
		b, err := json.Marshal(report(t, []byte(got.stdout)).Providers)
		require.NoError(t, err)
		var rows []struct{ Provider string }
		require.NoError(t, json.Unmarshal(b, &rows))
		for _, r := range rows {
			out = append(out, r.Provider)
		}
		slices.Sort(out)
		return out
	}
	const more = "provider_id: more\nseed_urls: [https://kind-urlset-1.com/]\nallowed_path_patterns: [/**]\nmax_depth: 1\n"
	files := t.TempDir()
	writeFile(t, filepath.Join(files, "a.yaml"), "provider_id: toss-payments\nseed_urls: [https://kind-urlset-1.com/]\nallowed_path_patterns: [/**]\nmax_depth: 1\n")

	unknown := here(t, "--job=docs --web=demo --log-level=error --provider=more --store="+dir)
	assert.Equal(t, exitUsage, unknown.code)
	assert.Contains(t, unknown.stderr, "--provider=more: there is no such provider")
	keep(t, dir, "more", 0, policyfile.Change{Text: more})
	keep(t, dir, "aws-ses", 0, policyfile.Change{Disabled: true, Why: "they asked us to"})
	assert.Equal(t, []string{"more"}, crawled("--provider=more"))
	assert.Equal(t, []string{"anthropic", "auth0", "clerk", "firebase-auth", "google-gemini", "more", "openai", "paypal", "pinecone", "qdrant",
		"sendgrid", "stripe", "toss-payments", "twilio", "weaviate"}, crawled(""), "all that ship and the one in the store, without the disabled one")
	assert.Equal(t, []string{"toss-payments"}, crawled("--policies="+files))
	for flags, says := range map[string]string{
		"--provider=aws-ses":                              "it was disabled: they asked us to",
		"--url=https://docs.aws.amazon.com/ses/latest/dg": "it was disabled: they asked us to",
	} {
		got := here(t, "--job=docs --web=demo --log-level=error --store="+dir+" "+flags)
		assert.Equal(t, exitUsage, got.code, got.stderr)
		assert.Contains(t, got.stderr, says)
	}
	why := here(t, "--job=docs --web=demo --log-level=error --store="+dir+" --explain=https://docs.aws.amazon.com/ses/latest/dg")
	require.Equal(t, exitOK, why.code, why.stderr)
	assert.Contains(t, why.stdout, "it was disabled: they asked us to")

	// Whether pages are shown whole is also decided by the policy in the store.
	whole := func() bool {
		to := t.TempDir()
		got := here(t, "--job=docs --web=demo --log-level=error --provider=more --store="+dir+" --markdown="+to)
		require.Equal(t, exitOK, got.code, got.stderr)
		b, err := os.ReadFile(filepath.Join(to, "kind-urlset-1.com", "articles", "9.html.md"))
		require.NoError(t, err)
		return strings.Contains(string(b), "\nwhole: true\n")
	}
	assert.False(t, whole())
	keep(t, dir, "more", 1, policyfile.Change{Text: more + "tos: allowed\ntos_checked: 2026-01-05\n"})
	assert.True(t, whole())

	keep(t, dir, "toss-payments", 0, policyfile.Change{Disabled: true})
	got := here(t, "--job=docs --web=demo --log-level=error --provider=toss-payments --policies="+files+" --store="+dir)
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "it was disabled: no reason was given")
}
