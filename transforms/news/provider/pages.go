package provider

import (
	"bytes"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// MaxPages is how many pages of one article are joined at most.
const MaxPages = 10

const maxBase = 2000 // bytes

var (
	// pageInPath is the number of a page at the end of an article's path.
	pageInPath = regexp.MustCompile(`(?i)(?:/(?:page|seite|pagina)[/-]?|/|[-_,](?:page|seite|p)?-?)(\d{1,2})(\.[a-z]{3,5})?/?$`)
	// pageKeys are the parameters with it.
	pageKeys = []string{"page", "p", "pg", "seite", "pagina"}
)

// NextPage returns the address of the next page of the article at u, "" if the page
// names none: a link to the same address with the next number. A link with a number in
// the query has to say rel=next, because comments have such numbers too.
func NextPage(page []byte, u *url.URL) string {
	whole, number := pageOf(u)
	first := u.EscapedPath()
	first = strings.TrimSuffix(first, "/") + "?" + u.Query().Encode()
	for l := range links(page, u) {
		next, err := l.base.Parse(l.href)
		if err != nil || next.Scheme != u.Scheme || next.Host != u.Host {
			continue
		}
		next.Fragment = ""
		of, n := pageOf(next)
		if n > MaxPages || (of != whole || n != number+1) && (of != first || n != 2) {
			continue
		}
		if slices.Contains(strings.Fields(l.rel), "next") || next.RawQuery == u.RawQuery {
			return next.String()
		}
	}
	return ""
}

// link is a link of a page: of an a or a link element.
type link struct {
	base               *url.URL // to which href is relative
	element, href, rel string
}

// links yields the links of the page at an address, in its order.
func links(page []byte, at *url.URL) iter.Seq[link] {
	return func(yield func(link) bool) {
		z := html.NewTokenizer(bytes.NewReader(page))
		z.SetMaxBuf(1 << 20)
		base, based := at, false
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
				continue
			}
			name, more := z.TagName()
			l := link{base: base, element: string(name)}
			if l.element != "a" && l.element != "link" && l.element != "base" {
				continue
			}
			for more {
				var key, value []byte
				key, value, more = z.TagAttr()
				switch string(key) {
				case "href":
					l.href = strings.TrimSpace(string(value))
				case "rel":
					l.rel = strings.ToLower(string(value))
				}
			}
			switch {
			case l.href == "":
			case l.element == "base":
				if !based {
					base, based = Base(at, l.href), true
				}
			case !yield(l):
				return
			}
		}
	}
}

// Base returns the address to which those in the page at u are relative, if its first base
// element says href (HTML, 4.2.3). One that is no web page's does not count, nor one that is
// longer than an address that is stored.
func Base(u *url.URL, href string) *url.URL {
	base, err := canonical.Address(u, href, []string{"*"})
	if err != nil || len(href) > maxBase {
		return u
	}
	return base
}

// pageOf returns an article's address without the number of a page, and that number:
// 1 for an address without one.
func pageOf(u *url.URL) (whole string, number int) {
	number = 1
	at := strings.TrimSuffix(u.EscapedPath(), "/")
	query := u.Query()
	for _, key := range pageKeys {
		if n, err := strconv.Atoi(query.Get(key)); err == nil && n > 0 && n < 100 {
			number = n
			query.Del(key)
			return at + "?" + query.Encode(), number
		}
	}
	if m := pageInPath.FindStringSubmatchIndex(at); m != nil {
		if n, err := strconv.Atoi(at[m[2]:m[3]]); err == nil && n > 0 && m[0] > 0 {
			ending := ""
			if m[4] >= 0 {
				ending = at[m[4]:m[5]]
			}
			return at[:m[0]] + ending + "?" + query.Encode(), n
		}
	}
	return at + "?" + query.Encode(), number
}

// Join adds the text of an article's next page. Lines that both have are not repeated. Of an
// article that is free on its first pages alone, those are the part for everybody.
func (a *Article) Join(next Article) {
	if next.Paywalled {
		a.Metered = !a.Paywalled
		return
	}
	lines := strings.Split(a.Body, "\n")
	for line := range strings.SplitSeq(next.Body, "\n") {
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
			a.Body += "\n" + line
		}
	}
	for _, address := range next.Images {
		if !slices.Contains(a.Images, address) {
			a.Images = append(a.Images, address)
		}
	}
}
