package engine_test

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// outlet is a publisher's site by the forms of its addresses and of what names its articles.
type outlet struct {
	Host     string
	Path     string            // of an article, with %s for its number, {yyyy}, {mm}, {mon} and {dd} for its day
	Language string            // one of those of stories
	Zone     *time.Location    // nil: UTC
	Robots   string            // "" for a 404
	Sources  map[string]string // what is at a path with its query: rss, rdf, atom, urlset, news, index, home (a page that links to /feed)
	Others   []string          // more hosts that answer as this one does: of feeds
}

// outletSite is an outlet that answers. Its methods may be called while it does.
type outletSite struct {
	outlet
	day      time.Time
	mu       sync.Mutex
	articles int
	edits    map[int]int    // by article: how often it was edited
	answers  map[string]int // by path: a status in place of the page; "*" is every article
}

// add adds a publisher. Its newest articles are from the day on which the tests begin.
func (w *world) add(o outlet) *outletSite {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	y, m, d := begin.In(o.Zone).Date()
	s := &outletSite{outlet: o, day: time.Date(y, m, d, 0, 0, 0, 0, o.Zone), articles: 12, edits: map[int]int{}, answers: map[string]int{}}
	for _, host := range append(o.Others, o.Host) {
		w.sim.Handle(host, s)
	}
	return s
}

// publish adds newer articles.
func (s *outletSite) publish(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.articles += n
}

// edit changes the date of article n, counted from 1, in what names it.
func (s *outletSite) edit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edits[n]++
}

// answer sets the status of a path with its query.
func (s *outletSite) answer(path string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = status
}

// ServeHTTP answers as the publisher does.
func (s *outletSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, article := r.URL.RequestURI(), 0
	for n := 1; n <= s.articles; n++ {
		if s.path(n) == at {
			article = n
		}
	}
	status := s.answers[at]
	if article > 0 && status == 0 {
		status = s.answers["*"]
	}
	body, kind := s.sources()[at], "application/xml"
	switch {
	case at == "/robots.txt":
		body, kind = s.Robots, "text/plain"
	case article > 0:
		body = s.page(article)
	}
	if strings.HasPrefix(body, "<!doctype html>") {
		kind = "text/html; charset=utf-8"
	}
	switch {
	case status != 0:
		http.Error(w, "demo", status)
	case body == "":
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(body))
	}
}

func (s *outletSite) path(n int) string {
	at := s.published(n)
	number := s.day.Format("20060102") + fmt.Sprintf("%04d", n)
	return strings.NewReplacer("%s", number, "{yyyy}", at.Format("2006"), "{mm}", at.Format("01"), "{dd}", at.Format("02"), "{mon}", strings.ToLower(at.Format("Jan"))).Replace(s.Path)
}

// published returns when article n was published: a higher number is later.
func (s *outletSite) published(n int) time.Time {
	return s.day.Add(-time.Hour).Add(time.Duration(n-12) * 37 * time.Minute)
}

func (s *outletSite) modified(n int) time.Time {
	return s.published(n).Add(time.Duration(s.edits[n]) * 20 * time.Minute)
}

// stories are a title and an article's text in a language.
var stories = sync.OnceValue(func() (all map[string][]string) {
	text, err := os.ReadFile("testdata/stories.yaml")
	if err := errors.Join(err, yamltext.Strict(text, &all)); err != nil {
		panic(err)
	}
	return all
})

// title returns the title of article n.
func (o outlet) title(n int) string { return fmt.Sprintf(stories()[o.Language][0], n) }

// text returns the text of article n, a paragraph a line.
func (o outlet) text(n int) string {
	story := stories()[o.Language]
	return fmt.Sprintf(story[1], n) + "\n" + story[2] + "\n" + story[3]
}

func (s *outletSite) page(n int) string {
	return `<!doctype html><html lang="` + s.Language + `"><head><meta charset="utf-8"><title>` + html.EscapeString(s.title(n)) + ` | Demo</title>
<meta property="og:site_name" content="Demo"><meta property="og:title" content="` + html.EscapeString(s.title(n)) + `">
<meta property="article:published_time" content="` + s.published(n).Format(time.RFC3339) + `"></head><body><nav><a href="/">Demo</a></nav>
<main><article><h1>` + html.EscapeString(s.title(n)) + `</h1><p>` + strings.ReplaceAll(html.EscapeString(s.text(n)), "\n", "</p>\n<p>") + `</p></article></main><footer>Demo</footer></body></html>`
}

// sources returns what names the articles.
func (s *outletSite) sources() map[string]string {
	out := map[string]string{}
	for at, kind := range s.Sources {
		switch kind {
		case "urlset":
			out[at] = s.urlset(func(int) string { return "" })
		case "news":
			out[at] = s.urlset(func(n int) string {
				return fmt.Sprintf(`<news:news><news:publication><news:name>Demo</news:name><news:language>%s</news:language></news:publication><news:publication_date>%s</news:publication_date><news:title>%s</news:title></news:news>`,
					s.Language, s.published(n).Format(time.RFC3339), html.EscapeString(s.title(n)))
			})
		case "index":
			parts := at + ".part"
			out[at] = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>https://` + s.Host + html.EscapeString(parts) + `</loc><lastmod>` + s.modified(s.articles).Format(time.RFC3339) + `</lastmod></sitemap></sitemapindex>`
			out[parts] = s.urlset(func(int) string { return "" })
		case "home":
			out[at] = `<!doctype html><html lang="` + s.Language + `"><head><meta charset="utf-8"><title>Demo</title><meta property="og:site_name" content="Demo"><link rel="alternate" type="application/rss+xml" href="/feed"></head><body>Demo</body></html>`
		default:
			out[at] = s.feed(kind)
		}
	}
	return out
}

// feed returns a feed of the newest articles, and of a page that is no article.
func (s *outletSite) feed(kind string) string {
	var b strings.Builder
	head, item, end := "<rss version=\"2.0\"><channel><title>Demo</title>", "<item><title>%[1]s</title><link>%[2]s</link><pubDate>%[3]s</pubDate></item>\n", "</channel></rss>"
	form := time.RFC1123Z
	switch kind {
	case "rdf":
		head = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns="http://purl.org/rss/1.0/"><channel><title>Demo</title></channel>`
		item, end, form = "<item rdf:about=\"%[2]s\"><title>%[1]s</title><link>%[2]s</link><dc:date>%[3]s</dc:date></item>\n", "</rdf:RDF>", time.RFC3339
	case "atom":
		head, end, form = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Demo</title>`, "</feed>", time.RFC3339
		item = "<entry><title>%[1]s</title><link href=\"%[2]s\"/><updated>%[3]s</updated></entry>\n"
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + head)
	for n := s.articles; n > 0; n-- {
		fmt.Fprintf(&b, item, html.EscapeString(s.title(n)), html.EscapeString("https://"+s.Host+s.path(n)), s.modified(n).Format(form))
	}
	fmt.Fprintf(&b, item, "Demo", "https://"+s.Host+"/", s.published(1).Format(form))
	return b.String() + end
}

func (s *outletSite) urlset(more func(n int) string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">`)
	for n := range s.articles {
		fmt.Fprintf(&b, "<url><loc>https://%s%s</loc><lastmod>%s</lastmod>%s</url>\n", s.Host, html.EscapeString(s.path(n+1)), s.modified(n+1).Format(time.RFC3339), more(n+1))
	}
	return b.String() + `</urlset>`
}
