package provider

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// maxTeaser is how many characters of an article a page shows at most in front of a
// wall. A longer text is kept: many free articles offer a subscription at their end.
const maxTeaser = 800

const maxSelectors = 10

// simpleSelectors are elements by name, class and id, and lists of such. Google's documentation
// asks publishers for classes; other selectors of a stranger can take hours.
var simpleSelectors = regexp.MustCompile(`^\s*[.#]?[\w-]+(?:[.#][\w-]+)*(?:\s*,\s*[.#]?[\w-]+(?:[.#][\w-]+)*){0,9}\s*$`)

// parts is what a page says about those of its elements that are not free.
type parts int

const (
	none    parts = iota
	removed       // they were in the page
	unknown       // they cannot be told from the others
)

// remove removes what a page says is not free.
func remove(root *html.Node, selectors []string) (found parts) {
	for i, text := range selectors {
		if i == maxSelectors || !simpleSelectors.MatchString(text) {
			return unknown
		}
		selector, err := cascadia.ParseGroup(text)
		if err != nil {
			return unknown
		}
		for _, n := range cascadia.QueryAll(root, selector) {
			found = removed
			for n.FirstChild != nil {
				n.RemoveChild(n.FirstChild)
			}
		}
	}
	return found
}

// tier is the meta element in which publishers say free, metered or locked.
const tier = "article:content_tier"

func locked(p *article.Page) bool { return strings.EqualFold(p.Meta(tier), "locked") }

// access decides how free the article is: Metered when the text that was read is for everybody
// although its publisher says that the article is not free, Paywalled when the page shows
// no more than a beginning. What a page that says no more holds may be hidden by its scripts
// from those who do not pay, so that it counts as Paywalled too.
func (a *Article) access(p *article.Page, paid parts) {
	short := utf8.RuneCountInString(a.Body) <= maxTeaser
	meter := strings.EqualFold(p.Meta(tier), "metered")
	switch {
	case a.Paywalled && paid == removed && !locked(p):
		a.Metered = !short
	case a.Paywalled && paid == none, !a.Paywalled:
		a.Metered = meter && (!walled(p.Root) || !short && !a.Paywalled)
		a.Paywalled = a.Paywalled || short && a.Body != "" && walled(p.Root)
	case paid == unknown:
		a.Body = ""
	}
	if a.Paywalled = a.Paywalled && !a.Metered; a.Paywalled && !short {
		a.Body = strings.TrimSpace(string([]rune(a.Body)[:min(maxTeaser, utf8.RuneCountInString(a.Body))]))
	}
}

// wallClasses are words in the class or id of what stands in place of the rest of an article.
var wallClasses = []string{"paywall", "pay-wall", "piano-offer", "article-wall", "premium-wall", "subscriber-only", "subscribers-only", "subscription-wall",
	"subscribe-wall", "regwall", "metered-wall", "locked-content", "content-locked", "premium-content-lock", "offer-wall"}

var wallElements = cascadia.MustCompile("[class], [id]")

// walled reports whether a page shows a wall: an element with a wall's name, or a
// publisher's words for it.
func walled(root *html.Node) bool {
	for _, n := range cascadia.QueryAll(root, wallElements) {
		if n.Data == "body" || n.Data == "html" || article.Text(n) == "" {
			continue
		}
		wall, hidden := false, false
		for _, a := range n.Attr {
			wall = wall || (a.Key == "class" || a.Key == "id") && named(a.Val)
			hidden = hidden || a.Key == "hidden" || a.Key == "aria-hidden" && a.Val == "true" || a.Key == "style" && strings.Contains(strings.ReplaceAll(a.Val, " ", ""), "display:none")
		}
		if wall && !hidden { // a hidden one waits on every page
			return true
		}
	}
	return answer.OffersSubscription(strings.ToLower(article.Text(root)))
}

// named reports whether one of the words of a class or id is a wall's.
func named(names string) bool {
	for name := range strings.FieldsSeq(strings.ReplaceAll(strings.ToLower(names), "_", "-")) {
		for _, wall := range wallClasses {
			if name == wall || strings.HasSuffix(name, "-"+wall) || strings.HasPrefix(name, wall+"-") && !strings.HasSuffix(name, "-free") {
				return true
			}
		}
	}
	return false
}
