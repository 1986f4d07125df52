// Package providertest has the test that every provider of news passes. No promise: see docs/library.md.
package providertest

import (
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
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
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files, "make a snapshot by `pipeline init snapshot`")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) { snapshot(t, p, name) })
	}
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

// snapshot reads a saved page again.
func snapshot(t *testing.T, p provider.Provider, name string) {
	want, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("testdata", name+".html"))
	require.NoError(t, err)
	var before provider.Snapshot
	require.NoError(t, json.Unmarshal(want, &before))
	now, err := provider.Take(p, page, before.ContentType, before.URL)
	require.NoError(t, err)
	if *update {
		require.NoError(t, now.Write("testdata", name, page))
		return
	}
	got, err := now.JSON()
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}
