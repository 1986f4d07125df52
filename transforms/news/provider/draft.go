package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Draft is what a publisher's site shows of itself, to make its file of.
type Draft struct {
	Base        *url.URL
	Press, Lang string // by its front page; "": it does not say
	Sources     []Source
	Now         time.Time
}

// Source is a sitemap or a feed that was read.
type Source struct {
	URL  string
	Kind string // news sitemap, sitemap, RSS feed, Atom feed, or frontPage
	// By says how it was found; Named that robots.txt names it or an index of it.
	By      string
	Named   bool
	Feed    bool
	Entries []Entry
}

// frontPage is the kind of a source that is the site's front page, with its links that look like articles.
const frontPage = "front page"

// minAlike is how many links that differ in their numbers alone are articles, if no link has an article's usual form.
const minAlike = 5

// digits are a number in an address.
var digits = regexp.MustCompile(`\d+`)

// Front returns a front page as a source. If no link has an article's usual form, it has the most links that differ in their numbers alone.
func Front(page []byte, at *url.URL) Source {
	s := Source{URL: at.String(), Kind: frontPage, By: "its links that have an article's usual form"}
	alike := map[string][]Entry{}
	var most []Entry
	for _, u := range Links(page, at) {
		switch form := digits.ReplaceAllString(u.Path, "0"); {
		case !Hosts(at.String(), u) || isList(u):
		case looksLikeArticle(u):
			s.Entries = append(s.Entries, Entry{URL: u})
		case digits.MatchString(u.Path):
			alike[form] = append(alike[form], Entry{URL: u})
			if len(alike[form]) > len(most) {
				most = alike[form]
			}
		}
	}
	if len(s.Entries) == 0 && len(most) >= minAlike {
		s.By, s.Entries = "its links that differ in a number", most
	}
	return s
}

// Entry is an address in a source.
type Entry struct {
	URL *url.URL
	At  string // its date as written; "": none
}

// recent is how old the newest article of a source is at most that is good alone.
const recent = 7 * 24 * time.Hour

// errNoSource says that a site names no articles.
var errNoSource = errors.New("no sitemap and no feed of the site names an address on its host, and its front page has no links that look like articles: give the host that has the articles, or write the file by hand (docs/add-a-publisher.md)")

// own returns the addresses of a source that are on the publisher's host, without its front page.
func (d Draft) own(s Source) (out []*url.URL) {
	for _, e := range s.Entries {
		if Hosts(d.Base.String(), e.URL) && strings.Trim(e.URL.Path, "/") != "" {
			out = append(out, e.URL)
		}
	}
	return out
}

// articles returns the addresses of a source that are probably articles: all of a feed and of a
// news sitemap, of others those with an article's usual form.
func (d Draft) articles(s Source) []*url.URL {
	own := d.own(s)
	if s.Feed || s.Kind == "news sitemap" {
		return own
	}
	usual := slices.DeleteFunc(slices.Clone(own), func(u *url.URL) bool { return !looksLikeArticle(u) })
	if len(usual) == 0 {
		return own
	}
	return usual
}

// newest returns the time of a source's newest address.
func (d Draft) newest(s Source, zone *time.Location) (at time.Time) {
	for _, e := range s.Entries {
		if t, ok := article.ParseTime(e.At, zone); ok && t.After(at) && t.Before(d.Now.Add(24*time.Hour)) {
			at = t
		}
	}
	return at
}

// use chooses the sources that the file names. Those of robots.txt are read in any case.
func (d Draft) use(zone *time.Location) (used []Source, why string) {
	var named, feeds, others []Source
	for _, s := range d.Sources {
		switch {
		case len(d.own(s)) == 0:
		case s.Named:
			named = append(named, s)
		case s.Feed:
			feeds = append(feeds, s)
		default:
			others = append(others, s)
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(named), func(s Source) bool { return d.newest(s, zone).Before(d.Now.Add(-recent)) })
	switch {
	case len(fresh) > 0:
		return fresh, "robots.txt names sitemaps with addresses of the last seven days, so that the file needs none"
	case len(feeds) > 0:
		why = "a feed"
		if len(named) > 0 {
			why = "a feed, because no sitemap in robots.txt has a date of the last seven days"
		}
		return feeds[:1], why
	case len(named) > 0:
		return named, "robots.txt names sitemaps, without dates of the last seven days; there is no feed"
	case len(others) > 0:
		return others[:1], "robots.txt names no sitemap, and there is no feed"
	}
	return nil, ""
}

// Write returns the YAML file, with the evidence for each line as comments.
func (d Draft) Write() (text string, err error) {
	host := canonical.Host(d.Base)
	zone, whyZone := d.zone(host)
	at, err := time.LoadLocation(zone)
	if err != nil {
		return "", fmt.Errorf("the time zone: %w", err)
	}
	used, why := d.use(at)
	if len(used) == 0 {
		return "", errNoSource
	}
	var l yamltext.Lines
	l.Say("Made from what %s showed on %s. Check each line before you use it.", d.Base, d.Now.UTC().Format(time.DateOnly))
	l.Put("id: %s", yamltext.Quote(idOf(host)))
	if d.Press != "" {
		l.Say("by the front page (og:site_name, or the end of its title)")
		l.Put("press: %s", yamltext.Quote(d.Press))
	} else {
		l.Say("the front page does not say its name: it is the host")
	}
	l.Put("baseUrl: %s", yamltext.Quote(d.Base.Scheme+"://"+d.Base.Host))
	for _, s := range d.Sources {
		l.Say("%s: %s, %s: %d addresses, %d of them on this host", s.URL, s.Kind, s.By, len(s.Entries), len(d.own(s)))
	}
	l.Say("chosen: %s", why)
	var articles []*url.URL
	for _, s := range used {
		articles = append(articles, d.articles(s)...)
		switch {
		case s.Named:
		case s.Kind == frontPage:
			l.Put("homepage: true")
		case s.Feed:
			l.Put("feeds:\n  - %s", yamltext.Quote(s.URL))
		default:
			l.Put("sitemapHints:\n  - %s", yamltext.Quote(s.URL))
		}
	}
	usual := 0
	for _, u := range articles {
		if looksLikeArticle(u) {
			usual++
		}
	}
	expression, matched := Pattern(articles)
	if expression == "" || matched*10 < usual*9 {
		l.Say("articleUrl is left out: %d of %d addresses have an article's usual form, such as %s", usual, len(articles), articles[0].RequestURI())
	} else {
		l.Say("%d of %d addresses match, such as %s", matched, len(articles), articles[0].RequestURI())
		l.Put("articleUrl: %s", yamltext.Quote(expression))
	}
	if d.Lang != "" {
		l.Say("language of the front page: %s", d.Lang)
	}
	l.Say("%s", whyZone)
	l.Put("zone: %s", yamltext.Quote(zone))
	return l.String(), nil
}

// homes are the countries, by their domains, of languages that are at home in one time zone.
var homes = map[string]string{"bg": "bg", "cs": "cz", "da": "dk", "de": "de", "el": "gr", "et": "ee", "fi": "fi", "he": "il", "hr": "hr", "hu": "hu", "is": "is", "it": "it",
	"ja": "jp", "ko": "kr", "lt": "lt", "lv": "lv", "nb": "no", "ne": "np", "nl": "nl", "nn": "no", "no": "no", "pl": "pl", "ro": "ro", "sk": "sk", "sl": "si", "sr": "rs", "sv": "se",
	"th": "th", "tr": "tr", "uk": "ua", "vi": "vn"}

// zone returns the time zone and what speaks for it.
func (d Draft) zone(host string) (zone, why string) {
	language, region, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(d.Lang, "_", "-")), "-")
	if region == "gb" {
		region = "uk"
	}
	switch {
	case zoneOf(host) != "":
		zone, why = zoneOf(host), "the country of the host's domain has one time zone"
	case zones[region] != "":
		zone, why = zones[region], "the front page's language names a country: "+d.Lang
	case zones[homes[language]] != "":
		zone, why = zones[homes[language]], "the front page's language is at home in one time zone: "+d.Lang
	}
	offset, written := d.offset()
	if written == "" {
		return cmp.Or(zone, "UTC"), cmp.Or(why, "NOT KNOWN: neither domain nor language nor dates say it; correct it if the pages have times without an offset")
	}
	if at, err := time.LoadLocation(zone); err == nil && zone != "" {
		t, _ := article.ParseTime(written, time.UTC)
		if _, there := t.In(at).Zone(); there == offset {
			return zone, why + "; dates in its sources agree, such as " + written
		}
		return zone, why + "; but dates in its sources have another offset, such as " + written
	}
	if offset%3600 != 0 {
		return "UTC", "NOT KNOWN: neither domain nor language say it; dates in its sources are such as " + written
	}
	return fmt.Sprintf("Etc/GMT%+d", -offset/3600), "neither domain nor language say it; by the offset of the dates in its sources, without summer time: " + written
}

// offset returns the offset from UTC, in seconds, of the newest date in the sources that has one other than 0.
func (d Draft) offset() (seconds int, written string) {
	var newest time.Time
	for _, s := range d.Sources {
		for _, e := range s.Entries {
			t, ok := article.ParseTime(e.At, time.UTC)
			if !ok {
				continue
			}
			if _, by := t.Zone(); by != 0 && t.After(newest) && len(e.At) < 60 {
				newest, seconds, written = t, by, e.At
			}
		}
	}
	return seconds, written
}

// Newest returns the addresses of articles in the sources that the file uses, newest first.
func (d Draft) Newest() (out []*url.URL) {
	used, _ := d.use(time.UTC)
	seen := map[string]bool{}
	for _, s := range used {
		at := map[*url.URL]time.Time{}
		for _, e := range s.Entries {
			at[e.URL], _ = article.ParseTime(e.At, time.UTC) // zero: the last
		}
		articles := slices.Clone(d.articles(s))
		slices.SortStableFunc(articles, func(a, b *url.URL) int { return at[b].Compare(at[a]) })
		for _, address := range articles {
			if !seen[address.String()] { // several sources name it
				seen[address.String()] = true
				out = append(out, address)
			}
		}
	}
	return out
}
