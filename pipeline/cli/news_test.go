package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// pipeline init publisher writes a file that --publishers reads.
func TestNewsDiscover(t *testing.T) {
	emptyEnv(t)
	at := filepath.Join(t.TempDir(), "a.yaml")
	got := here(t, "init publisher --web=demo --contact=me@example.org https://economy.demo-press.example/x --to="+at)
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Empty(t, got.stdout)
	text, err := os.ReadFile(at)
	require.NoError(t, err)
	p, err := provider.Declared(text)
	require.NoError(t, err, string(text))
	assert.Equal(t, "https://economy.demo-press.example", p.BaseURL())
	assert.Equal(t, []string{"https://economy.demo-press.example/sitemap.xml"}, p.SitemapHints())
	assert.Contains(t, string(text), "#   title \"데모 기사 12: 지하철 12호선 연장 공사 끝나\", published ")

	got = here(t, "init publisher --web=demo https://www.mk.co.kr") // its sitemap names an article twice
	require.Equal(t, exitOK, got.code, got.stderr)
	tried := regexp.MustCompile(`(?m)^# tried: .*`).FindAllString(got.stdout, -1)
	assert.Len(t, slices.Compact(tried), 2, got.stdout)

	for args, want := range map[string]struct {
		code int
		says string
	}{
		"init publisher": {exitUsage, "write pipeline init publisher URL"},
		"init publisher economy.demo-press.example":                                        {exitUsage, "write the URL of a publisher's site"},
		"init publisher --contact=me https://a.example":                                    {exitUsage, "use a URL or a mail address"},
		"init publisher --web=demo https://economy.demo-press.example --to=" + at:          {exitUsage, "is there already"},
		"init publisher --web=demo https://economy.demo-press.example --to=no/such/x.yaml": {exitUsage, "there is no directory no; create it first"},
		"init publisher --turns=/ https://a.example":                                       {exitUsage, "name a file with --turns"},
		"init publisher --web=demo https://kind-robots-500-1.com":                          {exitFailed, "robots.txt cannot be fetched"},
		"init publisher --web=demo --news-config=/nowhere/x.yaml https://a.example":        {exitUsage, "--news-config"},
		"init publisher --web=demo --connect-to=127.0.0.1:1 https://a.example --to=/none":  {exitUsage, "give one"},
	} {
		got := here(t, args)
		assert.Equal(t, want.code, got.code, args)
		assert.Contains(t, got.stderr, want.says, args)
		assert.Empty(t, got.stdout, args)
	}
}

// Each file that docs/add-a-publisher.md shows, and the one that its command writes, reads articles of the demo.
func TestPublishersOfThePage(t *testing.T) {
	emptyEnv(t)
	page, err := os.ReadFile("../../docs/add-a-publisher.md")
	require.NoError(t, err)
	texts := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```yaml\n# publishers/([a-z-]+)\\.yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		texts[m[1]] = m[2]
	}
	require.Len(t, texts, 2)
	command := regexp.MustCompile("`go run ./cmd/pipeline (init publisher .*) --to=publishers/.*`").FindStringSubmatch(string(page))
	require.NotNil(t, command)
	written := here(t, command[1])
	require.Equal(t, exitOK, written.code, written.stderr)
	texts["written"] = written.stdout
	for name, text := range texts {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, name+".yaml"), text)
		got := here(t, "--job=news --web=demo --log-level=error --report=- --store="+t.TempDir()+" --publishers="+dir+" --db=sqlite://"+filepath.Join(t.TempDir(), "db"))
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Positive(t, report(t, []byte(got.stdout)).Counts["articles_inserted"], "%s: %s", name, text)
	}
}

// What prints one page or one article, and reads nothing that is stored, leaves nothing behind.
func TestTrialsMakeNoStore(t *testing.T) {
	emptyEnv(t)
	t.Chdir(t.TempDir())
	for _, args := range []string{"catalog --web=demo --try=https://gadgets.example/shop/", "news --web=demo --url=https://economy.demo-press.example/articles/1"} {
		here(t, args)
		left, err := os.ReadDir(".")
		require.NoError(t, err)
		assert.Empty(t, left, args)
	}
}
