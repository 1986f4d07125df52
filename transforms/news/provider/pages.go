package provider

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// MaxPages is how many pages of one article are joined at most.
const MaxPages = 10

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
	for l := range dom.Links(page, u, "a", "link") {
		next, err := l.Base.Parse(l.Href)
		if err != nil || next.Scheme != u.Scheme || next.Host != u.Host {
			continue
		}
		next.Fragment = ""
		of, n := pageOf(next)
		if n > MaxPages || (of != whole || n != number+1) && (of != first || n != 2) {
			continue
		}
		if slices.Contains(strings.Fields(strings.ToLower(l.Attr["rel"])), "next") || next.RawQuery == u.RawQuery {
			return next.String()
		}
	}
	return ""
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
