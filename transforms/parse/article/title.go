package article

import (
	"cmp"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
)

// titleBy is the headline: by the publisher's selector, else the h1 that another source
// repeats, because that is what readers see, else what machines are told.
func (p *Page) titleBy(c *Compiled) string {
	if c.title != nil {
		if found := p.Select(c.title); len(found) > 0 {
			return found[0]
		}
		if n := cascadia.Query(p.Root, c.title); n != nil {
			if t := collapse(attr(n, "content")); t != "" {
				return t
			}
		}
	}
	sites := p.sites(c.site)
	if t := p.shown(sites); t != "" {
		return t
	}
	shared, title := collapse(p.meta["og:title"]), withoutSite(p.title, sites, true)
	switch {
	case shared != "" && (title == "" || fold(title) != fold(withoutSite(p.ld.Headline, sites, false))):
		return withoutSite(shared, sites, false)
	case title != "": // also where JSON-LD agrees with it: og:title may be a version for social networks
		return title
	}
	for _, h := range p.headings {
		if t := line(h); t != "" {
			return t
		}
	}
	return p.ld.Headline
}

// shown is the h1 that most other sources repeat, as a whole or with something before or
// after it; "" where none does.
func (p *Page) shown(sites []string) (best string) {
	const long = 200 // characters of a headline
	most := 0
	others := []string{fold(p.meta["og:title"]), fold(p.title), fold(p.ld.Headline), fold(p.meta["twitter:title"])}
	for _, h := range p.headings[:min(len(p.headings), 20)] {
		t := line(h)
		f := fold(t)
		if f == "" || utf8.RuneCountInString(t) > 2*long || isSite(t, sites) {
			continue
		}
		votes := 0
		for _, o := range others {
			switch {
			case o == f:
				votes += 2
			case 2*len(f) >= len(o) && (strings.HasPrefix(o, f) || strings.HasSuffix(o, f)):
				votes++
			}
		}
		if votes > most {
			best, most = t, votes
		}
	}
	return best
}

// marks separate a headline from a site's name. Some are also marks of headlines: of those
// only a known name is cut off.
var (
	marks    = []string{" | ", " - ", " – ", " — ", " :: ", " : ", "｜", "_", " * ", " -- ", "ㅣ", " · ", " • ", " » ", " « ", " < ", " > ", "|", " ‹ ", " › ", "：", ": "}
	sureMark = map[string]bool{" | ": true, " - ": true, " – ": true, " — ": true, " :: ": true, " : ": true, "｜": true, "_": true, " -- ": true}
)

// sites are the names that the page's site may have in its titles.
func (p *Page) sites(own string) []string {
	var out []string
	for _, s := range []string{own, p.meta["og:site_name"], p.meta["application-name"], p.meta["twitter:site"], p.meta["al:ios:app_name"]} {
		if s = fold(s); s != "" {
			out = append(out, s)
		}
	}
	if u, err := url.Parse(cmp.Or(p.links["canonical"], p.meta["og:url"])); err == nil && u.Host != "" {
		host := strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
		out = append(out, fold(host))
		for label := range strings.SplitSeq(host, ".") {
			if len(label) >= 4 {
				out = append(out, fold(label))
			}
		}
	}
	return out
}

func isSite(s string, sites []string) bool {
	f := fold(s)
	for _, name := range sites {
		if f == name {
			return true
		}
	}
	return false
}

// withoutSite cuts the site's name off a title's end or beginning; where guess is set, also a
// short last part whose name is not known.
func withoutSite(t string, sites []string, guess bool) string {
	for range 3 { // a title may end in the names of a section and of the site
		cut := t
		for _, m := range marks {
			if head, tail, ok := cutLast(t, m); ok && isSite(tail, sites) {
				cut = head
				break
			}
			if head, tail, ok := cutFirst(t, m); ok && isSite(head, sites) {
				cut = tail
				break
			}
		}
		if cut == t {
			break
		}
		t, guess = cut, false
	}
	if !guess {
		return t
	}
	for _, m := range marks {
		head, tail, ok := cutLast(t, m)
		if !ok || !sureMark[m] || utf8.RuneCountInString(tail) > 30 || utf8.RuneCountInString(head) <= utf8.RuneCountInString(tail) {
			continue
		}
		if m == "_" { // of Chinese titles: headline_section_site
			return withoutSite(head, sites, true)
		}
		return head
	}
	return t
}

func cutLast(t, mark string) (head, tail string, ok bool) {
	i := strings.LastIndex(t, mark)
	if i <= 0 {
		return t, "", false
	}
	head, tail = strings.TrimSpace(t[:i]), strings.TrimSpace(t[i+len(mark):])
	return head, tail, head != "" && tail != ""
}

func cutFirst(t, mark string) (head, tail string, ok bool) {
	i := strings.Index(t, mark)
	if i <= 0 {
		return t, "", false
	}
	head, tail = strings.TrimSpace(t[:i]), strings.TrimSpace(t[i+len(mark):])
	return head, tail, head != "" && tail != ""
}
