// Package providertest has the test that every provider of news passes. No promise: see docs/library.md.
package providertest

import (
	"flag"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

var update = flag.Bool("update", false, "write what is read now into the snapshots")

// Run checks a provider. The snapshots in testdata must still be read as they were:
// a difference means that a parser changed a field. articles has the external ids
// of addresses; "" marks an address that is no article.
func Run(t *testing.T, p provider.Provider, articles map[string]string) {
	require.NoError(t, provider.Check([]provider.Provider{p}))
	t.Run("snapshots", func(t *testing.T) {
		differences, err := provider.Verify(p, "testdata", *update)
		require.NoError(t, err)
		for name, fields := range differences {
			for _, d := range fields {
				t.Errorf("%s: %s", name, d)
			}
		}
	})
	t.Run("addresses", func(t *testing.T) {
		for address, id := range articles {
			u, err := url.Parse(address)
			require.NoError(t, err)
			assert.Equal(t, id != "", p.IsArticleURL(u), address)
			if id == "" {
				continue
			}
			a, err := p.ParseArticle([]byte("<title>A headline</title>"), "text/html; charset=utf-8", u)
			require.NoError(t, err)
			assert.Equal(t, id, a.ExternalID, address)
		}
	})
}
