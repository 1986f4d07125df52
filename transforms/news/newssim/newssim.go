// Package newssim adds simulated news publishers to the simulated web, for tests and for the news job's --web=demo. All of it is
// invented. Two have the addresses and the page layout of real publishers. No promise: see docs/library.md.
package newssim

import (
	_ "embed" // for stories.tsv
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/encoding/korean"
)

// The simulated hosts.
const (
	MK       = "www.mk.co.kr"               // EUC-KR; robots.txt names a sitemap
	Hankyung = "www.hankyung.com"           // a sitemap index with news sitemaps
	Economy  = "economy.demo-press.example" // declarative; JSON-LD; its sitemap is a hint
	Local    = "local.demo-press.example"   // declarative; only blocks of text and a visible date
	Articles = 12                           // of each publisher, by default
	kst      = "+09:00"
)

var seoul = time.FixedZone("KST", 9*60*60)

// Install adds the four publishers. Their newest articles are from the day of now,
// so that all runs of one day find the same articles.
func Install(handle func(host string, h http.Handler), now time.Time) map[string]*Site {
	day := now.In(seoul)
	day = time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, seoul)
	sites := map[string]*Site{}
	for host, s := range map[string]style{
		MK:       {robots: "User-agent: *\nDisallow: /search\nSitemap: https://www.mk.co.kr/sitemap/latest-articles/\n", euckr: true, path: "/news/economy/%s", page: mkPage, sitemaps: mkSitemaps},
		Hankyung: {robots: "User-agent: *\nAllow: /\nDisallow: /premium/\nSitemap: https://www.hankyung.com/sitemap/index.xml\n", path: "/article/%s", page: hankyungPage, sitemaps: hankyungSitemaps},
		Economy:  {robots: "User-agent: *\nDisallow: /private/\n", path: "/articles/%s", page: economyPage, sitemaps: plainSitemap},
		Local:    {path: "/news/view.php?no=%s", page: localPage, sitemaps: plainSitemap},
	} {
		site := &Site{host: host, style: s, day: day, articles: Articles, edits: map[int]int{}, answers: map[string]int{}, robots: s.robots}
		sites[host] = site
		handle(host, site)
	}
	return sites
}

// style is the shape of a publisher's site.
type style struct {
	robots   string // "" for a 404
	euckr    bool
	path     string // of an article, with %s for its number
	page     func(*Site, int) string
	sitemaps func(*Site) map[string]string
}

// Site is a simulated publisher. Its methods may be called while it answers.
type Site struct {
	host string
	style
	day time.Time

	mu       sync.Mutex
	articles int
	edits    map[int]int    // by article: how often it was edited
	answers  map[string]int // by path with query: a status in place of the page; -1 hangs
	robots   string
	broken   bool
}

// Publish adds newer articles.
func (s *Site) Publish(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.articles += n
}

// Edit changes the title of article n, counted from 1, and the date of its sitemap entry.
func (s *Site) Edit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edits[n]++
}

// Answer sets the status of a path with its query; "*" is every article; 0 restores the page.
func (s *Site) Answer(path string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = status
}

// Robots replaces robots.txt; "" is a 404.
func (s *Site) Robots(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.robots = text
}

// Break changes the layout: pages lose their dates and the name of the element with their text.
func (s *Site) Break(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// Path returns the path and query of article n.
func (s *Site) Path(n int) string {
	return strings.ReplaceAll(s.path, "%s", s.day.Format("20060102")+fmt.Sprintf("%04d", n)) // the day and a serial number
}

// published returns when article n was published: a higher number is later.
func (s *Site) published(n int) time.Time {
	return s.day.Add(-time.Hour).Add(time.Duration(n-Articles) * 37 * time.Minute)
}

func (s *Site) modified(n int) time.Time {
	return s.published(n).Add(time.Duration(s.edits[n]) * 20 * time.Minute)
}

func (s *Site) title(n int) string {
	t := fmt.Sprintf("데모 기사 %d: "+stories[s.story(n)%len(stories)][0], n)
	if s.edits[n] > 0 {
		t += fmt.Sprintf(" (수정 %d)", s.edits[n])
	}
	return t
}

// stories are what articles are about: on each line a title, a first sentence, a detail and a note. %[1]d is the number of an article.
//
//go:embed stories.tsv
var text string

var stories = func() (all [][]string) {
	for line := range strings.Lines(text) {
		all = append(all, strings.Split(strings.TrimSpace(line), "\t"))
	}
	return all
}()

// hosts are the simulated hosts; each begins with another story.
var hosts = []string{MK, Hankyung, Economy, Local}

// story returns the number of an article's story, below the number of pairs of a lead and a
// detail. Article 5 of the first host, whose text the tests have, is number 0.
func (s *Site) story(n int) int {
	pairs := len(stories) * len(stories)
	return (slices.Index(hosts, s.host)*Articles + n + pairs - 5) % pairs
}

// paragraphs returns an article's text. Of the first articles of all publishers no two
// share more than one sentence, so none is a copy of another.
func (s *Site) paragraphs(n int) []string {
	story := s.story(n)
	lead, detail := story%len(stories), story/len(stories)
	return []string{
		fmt.Sprintf(stories[lead][1], n, s.host),
		fmt.Sprintf(stories[detail][2], 2+n%2, n%10),
		stories[(lead+detail)%len(stories)][3],
	}
}

// ServeHTTP answers as the publisher does.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	at := r.URL.RequestURI()
	status := s.answers[at]
	n := s.article(at)
	if n > 0 && status == 0 {
		status = s.answers["*"]
	}
	var body, kind string
	switch {
	case status != 0:
	case at == "/robots.txt" && s.robots != "":
		body, kind = s.robots, "text/plain"
	case strings.HasPrefix(at, "/img/"): // of one pixel each, and no two the same
		body, kind = "GIF89a\x01\x00\x01\x00\x00\x00\x00;"+at, "image/gif"
	case n > 0:
		body, kind = s.page(s, n), "text/html; charset=utf-8"
	default:
		body, kind = s.sitemaps(s)[at], "application/xml"
	}
	s.mu.Unlock()
	switch {
	case status == -1:
		<-r.Context().Done()
		return
	case status != 0:
		http.Error(w, "demo", status)
		return
	case body == "":
		http.NotFound(w, r)
		return
	}
	out := []byte(body)
	if s.euckr && strings.HasPrefix(kind, "text/html") {
		kind = "text/html" // the page's own meta element says euc-kr
		if encoded, err := korean.EUCKR.NewEncoder().Bytes(out); err == nil {
			out = encoded
		}
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(out) // it fails only when the client has closed the connection
}

// article returns the number of the article at a path, 0 for none.
func (s *Site) article(at string) int {
	at, _, _ = strings.Cut(at, "&utm_")
	at, _, _ = strings.Cut(at, "?utm_")
	for n := 1; n <= s.articles; n++ {
		if s.Path(n) == at {
			return n
		}
	}
	return 0
}

func (s *Site) urlset(from, to int, more func(n int) string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">`)
	for n := from; n <= to; n++ {
		fmt.Fprintf(&b, "<url><loc>https://%s%s</loc><lastmod>%s</lastmod>%s</url>\n", s.host, s.Path(n), s.modified(n).Format(time.RFC3339), more(n))
	}
	b.WriteString(`</urlset>`)
	return b.String()
}

func nothing(int) string { return "" }

// mkSitemaps has the latest articles twice, once with a tracking parameter, and
// pages that are no articles.
func mkSitemaps(s *Site) map[string]string {
	all := s.urlset(1, s.articles, func(n int) string {
		return fmt.Sprintf("</url><url><loc>https://%s%s?utm_source=sitemap</loc><lastmod>%s</lastmod>", s.host, s.Path(n), s.modified(n).Format(time.RFC3339))
	})
	return map[string]string{"/sitemap/latest-articles/": strings.Replace(all, "<url>", "<url><loc>https://"+MK+"/economy/</loc></url><url>", 1)}
}

// hankyungSitemaps is an index whose newest part comes last and is a news sitemap.
func hankyungSitemaps(s *Site) map[string]string {
	half := s.articles / 2
	news := func(n int) string {
		return fmt.Sprintf(`<news:news><news:publication><news:name>한국경제</news:name><news:language>ko</news:language></news:publication><news:publication_date>%s</news:publication_date><news:title>%s</news:title></news:news>`,
			s.published(n).Format(time.RFC3339), s.title(n))
	}
	index := `<?xml version="1.0" encoding="UTF-8"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	for _, part := range []struct {
		name string
		at   time.Time
	}{{"old", s.day.AddDate(0, -2, 0)}, {"early", s.modified(half)}, {"latest", s.newest()}} {
		index += fmt.Sprintf("<sitemap><loc>https://%s/sitemap/%s.xml</loc><lastmod>%s</lastmod></sitemap>", s.host, part.name, part.at.Format(time.RFC3339))
	}
	return map[string]string{
		"/sitemap/index.xml":  index + `</sitemapindex>`,
		"/sitemap/old.xml":    `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://` + Hankyung + `/article/2020010112341</loc><lastmod>2020-01-01</lastmod></url></urlset>`,
		"/sitemap/early.xml":  s.urlset(1, half, news),
		"/sitemap/latest.xml": s.urlset(half+1, s.articles, news),
	}
}

func (s *Site) newest() time.Time {
	at := s.modified(s.articles)
	for n := range s.edits {
		if s.modified(n).After(at) {
			at = s.modified(n)
		}
	}
	return at
}

func plainSitemap(s *Site) map[string]string {
	return map[string]string{"/sitemap.xml": s.urlset(1, s.articles, nothing)}
}
