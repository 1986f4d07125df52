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
)

// shapes are the addresses of each publisher's articles, its language, the form of what
// names them, and an address that is none of its articles.
var shapes = map[string]struct{ path, language, form, other string }{
	"aljazeera":      {"/news/{yyyy}/{mm}/{dd}/demo-story-%s", "en", "rss", "/news/liveblog/"},
	"abc-au":         {"/news/{yyyy}-{mm}-{dd}/demo-story/%s", "en", "rss", "/news/justin"},
	"ansa":           {"/sito/notizie/economia/{yyyy}/{mm}/{dd}/demo_0123abcd-0000-4000-8000-%s.html", "it", "rss", "/sito/notizie/economia/economia.shtml"},
	"antara":         {"/berita/%s/artikel-demo", "id", "rss", "/ekonomi"},
	"asahi":          {"/articles/ASDEMO%s.html", "ja", "rdf", "/business/"},
	"bbc":            {"/news/articles/c%s", "en", "rss", "/news/business"},
	"cbc":            {"/news/business/demo-story-9.%s", "en", "rss", "/news/business"},
	"chosun":         {"/economy/money/{yyyy}/{mm}/{dd}/DEMOARTICLE000%s/", "ko", "rss", "/economy/"},
	"cna":            {"/business/demo-story-%s", "en", "rss", "/business"},
	"daily-maverick": {"/article/{yyyy}-{mm}-{dd}-demo-story-%s/", "en", "rss", "/section/business/"},
	"donga":          {"/news/Economy/article/all/{yyyy}{mm}{dd}/%s/1", "ko", "rss", "/news/Economy"},
	"dr":             {"/nyheder/penge/demo-nationalbanken-holder-renten-%s", "da", "rss", "/nyheder/penge"},
	"dw":             {"/en/demo-story/a-%s", "en", "rdf", "/en/business/s-1431"},
	"elpais":         {"/economia/{yyyy}-{mm}-{dd}/demo-%s.html", "es", "rss", "/economia/"},
	"etoday":         {"/news/view/%s", "ko", "rss", "/news/section/economy"},
	"france24":       {"/en/europe/{yyyy}{mm}{dd}-demo-story-%s", "en", "rss", "/en/europe/"},
	"g1":             {"/economia/noticia/{yyyy}/{mm}/{dd}/demo-%s.ghtml", "pt", "rss", "/economia/"},
	"guardian":       {"/business/{yyyy}/{mon}/{dd}/demo-story-%s", "en", "news", "/business/gallery/2026/mar/01/pictures"},
	"hani":           {"/arti/economy/finance/%s.html", "ko", "rss", "/arti/economy"},
	"khan":           {"/article/%s", "ko", "rss", "/economy"},
	"lanacion":       {"/economia/demo-nid%s/", "es", "rss", "/economia/"},
	"lemonde":        {"/economie/article/{yyyy}/{mm}/{dd}/demo_%s_3234.html", "fr", "news", "/economie/"},
	"mainichi":       {"/articles/{yyyy}{mm}{dd}/k00/00m/020/%sc", "ja", "rss", "/biz/"},
	"nos":            {"/artikel/%s-demo", "nl", "rss", "/nieuws/economie"},
	"npr":            {"/{yyyy}/{mm}/{dd}/nx-s1-%s/demo-story", "en", "rss", "/sections/business/"},
	"nrk":            {"/norge/demosak-1.%s", "no", "rss", "/norge/"},
	"pravda-ua":      {"/news/{yyyy}/{mm}/{dd}/%s/", "uk", "rss", "/news/"},
	"rnz":            {"/news/business/%s/demo-story", "en", "rss", "/news/business"},
	"scmp":           {"/economy/article/%s/demo-story", "en", "rss", "/economy"},
	"sedaily":        {"/article/%s", "ko", "rss", "/economy"},
	"spiegel":        {"/wirtschaft/demo-a-0123abcd-0000-4000-8000-%s", "de", "rss", "/wirtschaft/"},
	"tagesschau":     {"/wirtschaft/demo-%s.html", "de", "rss", "/multimedia/video-123.html"},
	"thehindu":       {"/news/national/demo-story/article%s.ece", "en", "rss", "/news/national/"},
	"tvn24":          {"/biznes/demo-st%s", "pl", "rss", "/biznes"},
	"vnexpress":      {"/bai-mau-%s.html", "vi", "rss", "/kinh-doanh"},
	"yle":            {"/a/74-%s", "fi", "rss", "/uutiset"},
	"yna":            {"/view/AKR%s00001", "ko", "rss", "/economy/all"},
}

// asFed are addresses of articles as these publishers' own feeds write them, if it is not
// as their sites do.
var asFed = map[string]string{
	"aljazeera": "/news/2026/11/3/demo-story?traffic_source=rss",
	"bbc":       "/news/articles/cdemo0123?at_medium=RSS&at_campaign=rss",
	"cbc":       "/news/business/demo-story-9.7270191?cmp=rss",
	"nos":       "/l/2512497",
	"scmp":      "/economy/article/3012345/demo-story?utm_source=rss_feed",
	"spiegel":   "/wirtschaft/demo-a-0123abcd-0000-4000-8000-0123456789ab#ref=rss",
	"yle":       "/a/74-20012345?origin=rss",
}

// Every publisher that ships with the program reads a site of its shape: of its host,
// its feed or sitemap, its addresses, its language and its time zone.
func TestWorld(t *testing.T) {
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
		press := outlet{Host: base.Host, Path: shape.path, Language: shape.language, Zone: policy.Zone, Sources: map[string]string{}}
		for _, address := range slices.Concat(policy.Feeds, p.SitemapHints()) {
			u, err := url.Parse(address)
			require.NoError(t, err)
			form := shape.form
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
		assert.Equal(t, []string{press.title(12), press.text(12), shape.language, p.BaseURL() + site.path(12)}, []string{title, text, language, address}, id)
		midnight := begin.In(policy.Zone)
		midnight = time.Date(midnight.Year(), midnight.Month(), midnight.Day(), 0, 0, 0, 0, policy.Zone)
		assert.Equal(t, midnight.Add(-time.Hour).UTC(), db.Time(published).UTC(), id)
		other, err := base.Parse(shape.other)
		require.NoError(t, err)
		assert.False(t, p.IsArticleURL(other), "%s: %s", id, other)
		fed, err := base.Parse(asFed[id])
		require.NoError(t, err)
		assert.Equal(t, asFed[id] != "", p.IsArticleURL(fed), "%s: %s", id, fed)
		assert.NotEmpty(t, by, id)
		languages[shape.language] = true
		zones[strings.Split(policy.Zone.String(), "/")[0]] = true
	}
	assert.GreaterOrEqual(t, len(languages), 15)
	assert.GreaterOrEqual(t, len(zones), 6, "continents")
}
