package pipeline

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news"
)

// enabled are the providers that the options crawl.
func enabled(t *testing.T, n newsOptions) (ids []string) {
	t.Helper()
	require.NoError(t, n.load(false, nil))
	all, err := news.Config{Publishers: n.texts}.Providers()
	require.NoError(t, err)
	for _, p := range all {
		if n.loaded.Enabled(p.ID()) {
			ids = append(ids, p.ID())
		}
	}
	return ids
}

// With a --publishers directory, the publishers shipped with the program are
// crawled only when the settings enable them by name.
func TestPublishersOfADirectory(t *testing.T) {
	dir := t.TempDir()
	for name, id := range map[string]string{"a.yaml": "a", "b.yml": "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("id: "+id+"\npress: P\nbaseUrl: https://a.example/kr\narticleUrl: x\n"), 0o600))
	}
	assert.Equal(t, []string{"mk", "hankyung"}, enabled(t, newsOptions{}))
	assert.Equal(t, []string{"a", "b"}, enabled(t, newsOptions{Publishers: dir}))

	settings := filepath.Join(dir, "news.conf")
	require.NoError(t, os.WriteFile(settings, []byte("providers: {hankyung: {enabled: true}, b: {enabled: false}, mk: {sitemapHints: [https://www.mk.co.kr/s.xml]}}\n"), 0o600))
	assert.Equal(t, []string{"hankyung", "a"}, enabled(t, newsOptions{Publishers: dir, Settings: settings}))
	t.Setenv("NEWS_PROVIDERS_MK_ENABLED", "true")
	assert.Equal(t, []string{"mk", "a", "b"}, enabled(t, newsOptions{Publishers: dir}))

	n := newsOptions{Publishers: t.TempDir()}
	assert.ErrorContains(t, n.load(false, nil), "has no YAML file (*.yaml, *.yml)")
}

// The publishers of the world that ship with the program are crawled by name only; a
// file in --publishers with the id of one takes its place.
func TestPublishersOfTheWorld(t *testing.T) {
	n := newsOptions{Publisher: "lemonde,mk"}
	assert.Equal(t, []string{"mk", "lemonde"}, enabled(t, n))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nrk.yaml"), []byte("id: nrk\npress: Mine\nbaseUrl: https://a.example\n"), 0o600))
	assert.Equal(t, []string{"nrk"}, enabled(t, newsOptions{Publishers: dir}))
	assert.Equal(t, []string{"nrk", "bbc"}, enabled(t, newsOptions{Publishers: dir, Publisher: "bbc,nrk"}))
	settings := filepath.Join(dir, "news.conf")
	require.NoError(t, os.WriteFile(settings, []byte("providers: {bbc: {enabled: true}, dw: {enabled: false}}\n"), 0o600))
	assert.Equal(t, []string{"mk", "hankyung", "bbc"}, enabled(t, newsOptions{Settings: settings}))
	n = newsOptions{Settings: settings, Publisher: "dw"}
	assert.ErrorContains(t, n.load(false, nil), "dw", "switched off by name")
	n = newsOptions{}
	require.NoError(t, n.load(false, nil))
	assert.Empty(t, n.texts, "workers get only what is crawled")
}

// A page of publishers shows the names of those that are Go code too.
func TestPublishersHaveNames(t *testing.T) {
	files, err := (&newsOptions{}).files(false)
	require.NoError(t, err)
	names := map[string]string{}
	for _, p := range files {
		shown, err := showPublisher(p, time.Time{})
		require.NoError(t, err)
		names[p.ID()] = shown.Name
	}
	require.Subset(t, names, map[string]string{"mk": "매일경제", "hankyung": "한국경제", "bbc": "BBC"})
	require.NotContains(t, slices.Collect(maps.Values(names)), "")
}
