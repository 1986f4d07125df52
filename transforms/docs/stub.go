package docs

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// maxStub is the maximum size in bytes of the Markdown of a page that only says that it
// redirects, maxScriptStub that of a page that a script redirects, in HTML.
const (
	maxStub       = 400
	maxScriptStub = 4 << 10
)

// maxNotFound is how many letters a page may have that says that it was not found. A page
// about such pages has more.
const maxNotFound = 600

// stub returns why a page of HTML is none although its server says 200, "" if it is one,
// and the address to which its script leads.
func stub(pg content.Page, page []byte) (why, to string) {
	letters := 0
	for _, r := range pg.Markdown {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	if len(page) <= maxScriptStub && len(pg.Markdown) <= maxStub {
		if m := moves.FindSubmatch(page); m != nil {
			to = string(m[1]) + string(m[2])
		}
	}
	heading, _, _ := strings.Cut(pg.Markdown, "\n")
	switch {
	case strings.HasPrefix(strings.ToLower(pg.Title), "redirecting") && len(pg.Markdown) <= maxStub:
		return "says only that it redirects", to
	case to != "":
		return fmt.Sprintf("redirects to %.500s by a script", to), to
	case letters <= maxNotFound && !strings.Contains(pg.Markdown, "```") && (notFound.MatchString(pg.Title) || notFound.MatchString(strings.TrimLeft(heading, "# "))):
		return "it says that it was not found (a soft 404)", ""
	}
	return "", ""
}

// moves finds a script that leads the browser to another page.
var moves = regexp.MustCompile(`(?:^|[\s;{(>])(?:window\.|document\.|self\.|top\.)*location(?:\.href)?\s*=\s*["']([^"'\s]+)["']|(?:^|[\s;{(>])(?:window\.|document\.|self\.|top\.)*location\.(?:replace|assign)\(\s*["']([^"'\s]+)["']`)

// notFound matches the titles of pages that were not found.
var notFound = regexp.MustCompile(`(?i)^(?:(?:error|http)\s*)?404\b(?:\W*(?:error|not found|page not found|file not found))?\W*(?:$|[|·–—-])|^(?:oops\W*)?(?:the |this |your )?(?:requested )?(?:page|document|file|url) (?:(?:was|could|can)\s*(?:not|n['’]t|no longer) (?:be )?found|cannot be found|can['’]t be found|not found|does(?: not|n['’]t) exist)|^not found\W*(?:$|[|·–—-])|^(?:요청하신 )?(?:페이지를|문서를) 찾을 수 (?:없|가 없)|^존재하지 않는 (?:페이지|문서)`)
