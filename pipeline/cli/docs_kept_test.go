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
	keepIn(t, dir, policy.Kind(nil).Kept(), id, after, c)
}

func keepIn(t *testing.T, dir, prefix, id string, after int, c policyfile.Change) {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	body, err := json.Marshal(c)
	require.NoError(t, err)
	_, err = kept.On(s, prefix).Add(t.Context(), id, after, kept.Version{At: time.Now(), Who: "test", Action: "provider_edit", Body: body})
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

// The same of the sites and the publishers that people keep: a new one, a changed one, a disabled one, and one that cannot be read.
func TestSitesAndPublishersInTheStore(t *testing.T) {
	emptyEnv(t)
	for name, k := range map[string]struct {
		prefix, args, shipped, other string
		text                         func(id string) string // such a policy
		rows                         string
	}{
		"catalog": {"providers/catalog/", "--job=catalog --web=demo --site=", "gadgets", "matter", func(id string) string {
			return "name: " + id + "\nlist:\n  url: https://gadgets.example/shop/\n  product_link: {selector: \"ol.goods > li > h3 > a\"}\n  next_link: {selector: \"ul.pager li.next a\"}\n" +
				"key: sku\nfields:\n  sku: {selector: \"[itemprop=sku]\", attribute: content}\n  title: {selector: \"#product h2\"}\n"
		}, "products"},
		"news": {"providers/news/", "--job=news --web=demo --publisher=", "demo-economy", "demo-local", func(id string) string {
			return "id: " + id + "\npress: Kept\nbaseUrl: https://economy.demo-press.example\nsitemapHints: [https://economy.demo-press.example/sitemap.xml]\n"
		}, "articles"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := "sqlite://" + filepath.Join(t.TempDir(), "db")
			run := func(id string) answer {
				t.Helper()
				return here(t, k.args+id+" --log-level=error --store="+dir+" --db="+db)
			}
			found := func(id string) string {
				t.Helper()
				got := here(t, "export "+k.rows+" - --db="+db+" --store="+dir)
				require.Equal(t, exitOK, got.code, got.stderr)
				return got.stdout
			}
			got := run("more")
			require.Equal(t, exitUsage, got.code, got.stderr)
			assert.Contains(t, got.stderr, "more: there is no such")

			keepIn(t, dir, k.prefix, "more", 0, policyfile.Change{Text: k.text("more")})
			got = run("more")
			require.Equal(t, exitOK, got.code, got.stderr)
			assert.Contains(t, found("more"), `"more"`)

			keepIn(t, dir, k.prefix, k.shipped, 0, policyfile.Change{Text: k.text(k.shipped)})
			got = run(k.shipped)
			require.Equal(t, exitOK, got.code, got.stderr)
			if name == "catalog" {
				assert.NotContains(t, found(k.shipped), `"in_stock"`, "the text in the store has no such field")
			} else {
				assert.Contains(t, found(k.shipped), `"press":"Kept"`)
			}

			keepIn(t, dir, k.prefix, k.other, 0, policyfile.Change{Disabled: true, Why: "they asked us to"})
			got = run(k.other)
			assert.Equal(t, exitUsage, got.code, got.stderr)
			assert.Contains(t, got.stderr, "it was disabled: they asked us to")

			keepIn(t, dir, k.prefix, "more", 1, policyfile.Change{Text: "name: [\n"})
			got = run("more")
			assert.NotEqual(t, exitOK, got.code)
			assert.Contains(t, got.stderr, "more")
		})
	}
}
