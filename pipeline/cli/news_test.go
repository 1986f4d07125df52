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

// pipeline news discover writes a file that --publishers reads.
func TestNewsDiscover(t *testing.T) {
	emptyEnv(t)
	at := filepath.Join(t.TempDir(), "a.yaml")
	got := here(t, "news discover --web=demo --contact=me@example.org https://economy.demo-press.example/x --to="+at)
	require.Equal(t, ExitOK, got.code, got.stderr)
	assert.Empty(t, got.stdout)
	text, err := os.ReadFile(at)
	require.NoError(t, err)
	p, err := provider.Declared(text)
	require.NoError(t, err, string(text))
	assert.Equal(t, "https://economy.demo-press.example", p.BaseURL())
	assert.Equal(t, []string{"https://economy.demo-press.example/sitemap.xml"}, p.SitemapHints())
	assert.Contains(t, string(text), "#   title \"데모 기사 12: 지하철 12호선 연장 공사 끝나\", published ")

	got = here(t, "news discover --web=demo https://www.mk.co.kr") // its sitemap names an article twice
	require.Equal(t, ExitOK, got.code, got.stderr)
	tried := regexp.MustCompile(`(?m)^# tried: .*`).FindAllString(got.stdout, -1)
	assert.Len(t, slices.Compact(tried), 2, got.stdout)

	for args, want := range map[string]struct {
		code int
		says string
	}{
		"news": {ExitUsage, "news takes discover and one URL"},
		"news discover economy.demo-press.example":                                        {ExitUsage, "write the URL of a publisher's site"},
		"news discover --contact=me https://a.example":                                    {ExitUsage, "use a URL or a mail address"},
		"news discover --web=demo https://economy.demo-press.example --to=" + at:          {ExitUsage, "is there already"},
		"news discover --web=demo https://economy.demo-press.example --to=no/such/x.yaml": {ExitUsage, "there is no directory no/such; create it first"},
		"news discover --turns=/ https://a.example":                                       {ExitUsage, "name a file with --turns"},
		"news discover --web=demo https://kind-robots-500-1.com":                          {ExitFailed, "robots.txt cannot be fetched"},
		"news discover --web=demo --news-config=/nowhere/x.yaml https://a.example":        {ExitUsage, "--news-config"},
		"news discover --web=demo --connect-to=127.0.0.1:1 https://a.example --to=/none":  {ExitUsage, "give one"},
	} {
		got := here(t, args)
		assert.Equal(t, want.code, got.code, args)
		assert.Contains(t, got.stderr, want.says, args)
		assert.Empty(t, got.stdout, args)
	}
}
