//go:build unix

package engine_test

import (
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/news/engine"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/publishers"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// Every publisher that ships with the program reads a site of its shape: of its host,
// its feed or sitemap, its addresses, its language and its time zone.
func TestWorld(t *testing.T) {
	shapes := cases.Table[map[string]struct{ Path, Language, Form, Other, Fed string }](t, "publishers.yaml")
	files, err := fs.Glob(publishers.World(), "*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 30)
	all, _, err := provider.ReadDeclarations(publishers.World())
	require.NoError(t, err, "one id each")
	require.Len(t, all, len(shapes))
	w := once(t)
	w.cfg.MaxArticlesPerProvider = 3
	languages, zones := map[string]bool{}, map[string]bool{}
	for _, p := range all {
		id := p.ID()
		assert.Contains(t, files, id+".yaml", "a file has the publisher's id as its name")
		shape, policy := shapes[id], p.Policy()
		base, err := url.Parse(p.BaseURL())
		require.NoError(t, err)
		press := outlet{Host: base.Host, Path: shape.Path, Language: shape.Language, Zone: policy.Zone, Sources: map[string]string{}}
		for _, address := range slices.Concat(policy.Feeds, p.SitemapHints()) {
			u, err := url.Parse(address)
			require.NoError(t, err)
			form := shape.Form
			if form == "news" && slices.Contains(policy.Feeds, address) {
				form = "rss"
			}
			press.Sources[u.RequestURI()] = form
			if u.Host != base.Host && !slices.Contains(press.Others, u.Host) {
				press.Others = append(press.Others, u.Host)
			}
		}
		site := w.add(press)
		r := w.run(p)
		assert.Equal(t, engine.Ran, r.State, "%s: %s", id, r.Reason)
		assert.Equal(t, counts{Found: 12, Fetched: 3, Inserted: 3}, countsOf(r), id)
		assert.Empty(t, slices.Concat(r.Alerts, r.Limits), id)
		var title, text, language, by, address string
		var published int64
		require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT title, raw_text, language, press, url, published_at FROM news_articles WHERE source = $1 ORDER BY published_at DESC LIMIT 1`, id).
			Scan(&title, &text, &language, &by, &address, &published), id)
		assert.Equal(t, []string{press.title(12), press.text(12), shape.Language, p.BaseURL() + site.path(12)}, []string{title, text, language, address}, id)
		midnight := begin.In(policy.Zone)
		midnight = time.Date(midnight.Year(), midnight.Month(), midnight.Day(), 0, 0, 0, 0, policy.Zone)
		assert.Equal(t, midnight.Add(-time.Hour).UTC(), db.Time(published).UTC(), id)
		other, err := base.Parse(shape.Other)
		require.NoError(t, err)
		assert.False(t, p.IsArticleURL(other), "%s: %s", id, other)
		fed, err := base.Parse(shape.Fed)
		require.NoError(t, err)
		assert.Equal(t, shape.Fed != "", p.IsArticleURL(fed), "%s: %s", id, fed)
		assert.NotEmpty(t, by, id)
		languages[shape.Language] = true
		zones[strings.Split(policy.Zone.String(), "/")[0]] = true
	}
	assert.GreaterOrEqual(t, len(languages), 15)
	assert.GreaterOrEqual(t, len(zones), 6, "continents")
}
