package provider_test

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/hankyung"
	"github.com/newsfork/seed-engine/transforms/news/mk"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/publishers"
)

// The publishers that ship have the addresses that other programs know, which are no copy of
// their files.
func TestShippedPublishers(t *testing.T) {
	t.Parallel()
	all, _, err := provider.ReadDeclarations(publishers.World())
	require.NoError(t, err)
	shipped := map[string]provider.Provider{}
	for _, p := range append(all, mk.Provider{}, hankyung.Provider{}) {
		shipped[p.ID()] = p
	}
	table, err := os.ReadFile("testdata/publishers.tsv")
	require.NoError(t, err)
	known := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		col := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, col, 4, line)
		p, address := shipped[col[0]], col[2]
		require.NotNil(t, p, line)
		known[p.ID()] = true
		switch col[1] {
		case "base":
			assert.Equal(t, address, p.BaseURL(), line)
		case "feed":
			assert.Contains(t, p.Policy().Feeds, address, line)
		case "sitemap":
			assert.Contains(t, p.SitemapHints(), address, line)
		case "article":
			u, err := url.Parse(address)
			require.NoError(t, err)
			assert.True(t, p.IsArticleURL(u), line)
		default:
			t.Errorf("unknown kind of fact: %s", line)
		}
	}
	for id, p := range shipped {
		assert.True(t, known[id], "%s has no row", id)
		for _, feed := range slices.Concat(p.Policy().Feeds, p.SitemapHints()) {
			assert.Contains(t, string(table), "\t"+feed+"\t", id)
		}
	}
}
