package provider

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

var (
	// dated is a day or a month in a path, with something after it.
	dated = regexp.MustCompile(`/(?:19|20)\d\d[/-]?(?:0?[1-9]|1[0-2]|[a-z]{3})(?:[/-]?\d{1,2})?[/-][^/]`)
	// numbered is a number that only an article has; a page of a list has a shorter one.
	numbered = regexp.MustCompile(`\d{5}`)
	// numberedQuery is an article's number in a query.
	numberedQuery = regexp.MustCompile(`(?i)(?:^|&)(?:no|id|idx|idxno|aid|gid|seq|sn|code|(?:news|article|arti)_?(?:id|no|seq|num|code))=[a-z]{0,3}\d{3}`)
	// word is a part of a title in an address.
	word = regexp.MustCompile(`[\pL\pN]+`)
)

// lists are parts of the paths of pages that list articles.
var lists = []string{"tag", "tags", "category", "categories", "author", "authors", "search", "topic", "topics", "page", "archive", "archives",
	"login", "account", "newsletter", "newsletters", "podcast", "podcasts", "gallery", "video", "videos", "about", "help", "legal", "feed", "rss"}

// files are the endings of addresses that are no pages.
var files = []string{".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".css", ".js", ".json", ".xml", ".rss", ".gz", ".zip", ".pdf", ".mp3", ".mp4", ".m3u8", ".ico", ".txt"}

// looksLikeArticle reports whether an address has the form that articles of most
// publishers have: a date, a long number, or a title of four words or more.
func looksLikeArticle(u *url.URL) bool {
	if isList(u) {
		return false
	}
	at := strings.ToLower(u.Path)
	if numberedQuery.MatchString(u.RawQuery) || dated.MatchString(at) {
		return true
	}
	parts := strings.FieldsFunc(at, isSlash)
	if len(parts) == 0 {
		return false
	}
	last := parts[len(parts)-1]
	title := strings.TrimSuffix(last, path.Ext(last))
	if numbered.MatchString(strings.Join(parts[max(0, len(parts)-2):], "/")) {
		return true
	}
	foreign := strings.IndexFunc(title, func(c rune) bool { return c > unicode.MaxLatin1 }) >= 0
	return len(word.FindAllString(title, 4)) == 4 && len(title) >= 20 || foreign && utf8.RuneCountInString(title) >= 12
}

func isSlash(c rune) bool { return c == '/' }

// isList reports whether an address is that of a list of articles, or of a file that is no page.
func isList(u *url.URL) bool {
	at := strings.ToLower(u.Path)
	return slices.ContainsFunc(strings.FieldsFunc(at, isSlash), func(p string) bool { return slices.Contains(lists, p) }) || slices.Contains(files, path.Ext(at))
}

// Links returns the addresses of web pages to which the page at an address links, each once, in its order.
func Links(page []byte, at *url.URL) (out []*url.URL) {
	seen := map[string]bool{}
	for l := range dom.Links(page, at, "a") {
		u, err := canonical.Address(l.Base, l.Href, []string{"*"})
		if err != nil || seen[u.String()] {
			continue
		}
		seen[u.String()] = true
		if out = append(out, u); len(out) == maxLinks {
			break
		}
	}
	return out
}

// maxLinks is how many links of a page are read.
const maxLinks = 2000

// Sections returns the pages among others that are probably sections: a path of one or two short parts, of no help page,
// account or file. The first have most of the articles below them.
func Sections(others, articles []*url.URL, most int) (out []*url.URL) {
	below := map[string]int{}
	for _, u := range articles {
		parts := strings.Split(strings.Trim(strings.ToLower(u.Path), "/"), "/")
		for i := 1; i < len(parts) && i < 3; i++ {
			below[strings.Join(parts[:i], "/")]++
		}
	}
	seen := map[string]bool{}
	for _, u := range others {
		at := strings.Trim(strings.ToLower(u.Path), "/")
		parts := strings.Split(at, "/")
		grouped := len(parts) == 2 && slices.Contains([]string{"category", "section", "topic"}, parts[0])
		listed := slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(lists, p) || slices.Contains(services, p) })
		if at == "" || seen[at] || len(parts) > 2 || u.RawQuery != "" || listed && !grouped || path.Ext(at) != "" || utf8.RuneCountInString(at) > 40 {
			continue
		}
		seen[at] = true
		out = append(out, u)
	}
	slices.SortStableFunc(out, func(a, b *url.URL) int {
		return below[strings.Trim(strings.ToLower(b.Path), "/")] - below[strings.Trim(strings.ToLower(a.Path), "/")]
	})
	return out[:min(len(out), most)]
}

// services are parts of the paths of pages that are for readers, and list no articles.
var services = []string{"contact", "contacts", "privacy", "terms", "imprint", "impressum", "datenschutz", "agb", "cookies", "advertise", "advertising", "subscribe", "subscription", "subscriptions",
	"signup", "sign-up", "signin", "sign-in", "register", "user", "users", "profile", "shop", "store", "jobs", "careers", "faq", "sitemap", "weather", "games", "apps", "app", "my"}

// zones are the time zones of countries that have only one, by their domains.
var zones = map[string]string{
	"ae": "Asia/Dubai", "at": "Europe/Vienna", "bd": "Asia/Dhaka", "be": "Europe/Brussels", "bg": "Europe/Sofia", "ch": "Europe/Zurich",
	"cn": "Asia/Shanghai", "cz": "Europe/Prague", "de": "Europe/Berlin", "dk": "Europe/Copenhagen", "ee": "Europe/Tallinn",
	"eg": "Africa/Cairo", "fi": "Europe/Helsinki", "fr": "Europe/Paris", "gr": "Europe/Athens", "hk": "Asia/Hong_Kong", "hr": "Europe/Zagreb",
	"hu": "Europe/Budapest", "ie": "Europe/Dublin", "il": "Asia/Jerusalem", "in": "Asia/Kolkata", "is": "Atlantic/Reykjavik", "it": "Europe/Rome",
	"jp": "Asia/Tokyo", "ke": "Africa/Nairobi", "kr": "Asia/Seoul", "lt": "Europe/Vilnius", "lv": "Europe/Riga", "my": "Asia/Kuala_Lumpur",
	"ng": "Africa/Lagos", "nl": "Europe/Amsterdam", "no": "Europe/Oslo", "np": "Asia/Kathmandu", "pe": "America/Lima", "ph": "Asia/Manila",
	"pk": "Asia/Karachi", "pl": "Europe/Warsaw", "ro": "Europe/Bucharest", "rs": "Europe/Belgrade", "sa": "Asia/Riyadh", "se": "Europe/Stockholm",
	"sg": "Asia/Singapore", "si": "Europe/Ljubljana", "sk": "Europe/Bratislava", "th": "Asia/Bangkok", "tr": "Europe/Istanbul", "tw": "Asia/Taipei",
	"ua": "Europe/Kyiv", "uk": "Europe/London", "uy": "America/Montevideo", "vn": "Asia/Ho_Chi_Minh", "za": "Africa/Johannesburg",
}

// zoneOf returns the time zone of the country whose domain a host is in; "" if that is
// no country's, or one with several zones.
func zoneOf(host string) string { return zones[host[strings.LastIndexByte(host, '.')+1:]] }

// idOf makes a provider's id of its host.
func idOf(host string) string {
	id := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' {
			return c
		}
		return '-'
	}, strings.ToLower(host))
	return strings.Trim(id[:min(len(id), 64)], "-_")
}
