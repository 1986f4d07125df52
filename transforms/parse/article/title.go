package article

import (
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
)

// titleBy is og:title, else the title element without the site's name, else h1.
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
	site := c.site
	if site == "" {
		site = p.meta["og:site_name"]
	}
	if t := collapse(p.meta["og:title"]); t != "" {
		return p.withoutSite(t, site, false)
	}
	if p.title != "" {
		return p.withoutSite(p.title, site, true)
	}
	for _, h := range p.headings {
		if t := line(h); t != "" {
			return t
		}
	}
	return p.ld.Headline
}

// marks separate a headline from a site's name.
var marks = []string{" | ", " - ", " – ", " — ", " :: ", " : ", "ㅣ", " · ", " » ", " « ", " < ", " > ", "|", " ‹ ", " › "}

// withoutSite cuts the site's name off a title's end or beginning. Where the
// name is not known, the title's part that is an h1 or the JSON-LD's headline is
// taken; where guess is set, the longest part before the last mark.
func (p *Page) withoutSite(t, site string, guess bool) string {
	same := func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }
	known := []string{p.ld.Headline}
	for _, h := range p.headings {
		known = append(known, line(h))
	}
	for _, k := range known {
		if k != "" && same(k, t) {
			return t
		}
	}
	for _, m := range marks {
		if i := strings.LastIndex(t, m); i > 0 {
			head, tail := strings.TrimSpace(t[:i]), strings.TrimSpace(t[i+len(m):])
			if site != "" && same(tail, site) && head != "" {
				return p.withoutSite(head, site, false)
			}
		}
		if i := strings.Index(t, m); i > 0 {
			head, tail := strings.TrimSpace(t[:i]), strings.TrimSpace(t[i+len(m):])
			if site != "" && same(head, site) && tail != "" {
				return p.withoutSite(tail, site, false)
			}
		}
	}
	for _, m := range marks {
		for rest := t; ; {
			i := strings.LastIndex(rest, m)
			if i <= 0 {
				break
			}
			rest = strings.TrimSpace(rest[:i])
			for _, k := range known {
				if k != "" && same(k, rest) {
					return rest
				}
			}
		}
	}
	if !guess {
		return t
	}
	for _, m := range marks[:6] {
		if i := strings.LastIndex(t, m); i > 0 {
			head, tail := strings.TrimSpace(t[:i]), strings.TrimSpace(t[i+len(m):])
			if utf8.RuneCountInString(tail) <= 30 && utf8.RuneCountInString(head) > utf8.RuneCountInString(tail) {
				return head
			}
		}
	}
	return t
}
