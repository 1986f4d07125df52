package catalog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// maxNear is the maximum number of near misses that are shown for a selector.
const maxNear = 5

// namedIn matches the classes and ids of a selector.
var namedIn = regexp.MustCompile(`[.#][A-Za-z_][A-Za-z0-9_-]*`)

// similar returns what a page has in place of a selector that matches nothing: the
// longest end of the selector that matches, and classes and ids with similar names.
func (p *page) similar(selector string) (near []string) {
	if end, n := p.longestEnd(selector); end != "" {
		near = append(near, fmt.Sprintf("%s matches %s", end, elements(n)))
	}
	names := p.names()
	for _, want := range namedIn.FindAllString(selector, -1) {
		if names[want] > 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if alike(want, name) && len(near) < maxNear {
				near = append(near, fmt.Sprintf("%s is not in the page, but %s is (%s)", want, untrusted.Line(name, 100), elements(names[name])))
			}
		}
	}
	return near
}

func elements(n int) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// names counts the page's classes (".name") and ids ("#name").
func (p *page) names() map[string]int {
	names := map[string]int{}
	for class, at := range p.byClass {
		names["."+class] = len(at)
	}
	for _, n := range p.nodes {
		for _, a := range n.Attr {
			if a.Key == "id" && n.Type == html.ElementNode && a.Val != "" {
				names["#"+a.Val]++
			}
		}
	}
	return names
}

// alike reports whether two names of a class or an id may be meant to be the same: they
// differ in case, signs or a class being an id, one begins with the other, or one
// character differs.
func alike(a, b string) bool {
	plain := func(s string) string { return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s[1:])) }
	x, y := plain(a), plain(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if x == "" {
		return false
	}
	if x == y || len(x) >= 3 && (strings.HasPrefix(y, x) || strings.HasSuffix(y, x)) {
		return true
	}
	return len(x) >= 4 && oneApart(x, y)
}

// oneApart reports whether y, which is not shorter than x, is x with one character
// inserted or replaced.
func oneApart(x, y string) bool {
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	return len(x) == len(y) && x[i+1:] == y[i+1:] || len(x)+1 == len(y) && x[i:] == y[i+1:]
}

// longestEnd returns the longest end of a selector without commas that matches
// elements of the page, and how many.
func (p *page) longestEnd(selector string) (end string, n int) {
	for _, at := range combinators(selector) {
		end := strings.TrimLeft(selector[at:], " >+~\t\n")
		group, err := cascadia.ParseGroup(end)
		if err != nil || end == "" {
			continue
		}
		if n := len((finder{group: group}).matches(p)); n > 0 {
			return end, n
		}
	}
	return "", 0
}

// combinators returns where the combinators of a selector begin, outside of brackets,
// parentheses and quotes; nil for a group of selectors.
func combinators(selector string) (at []int) {
	depth, quote, between := 0, rune(0), true
	for i, r := range selector {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '(':
			depth++
		case r == ']' || r == ')':
			depth--
		case depth > 0:
		case r == ',':
			return nil
		case strings.ContainsRune(" >+~\t\n", r):
			if !between {
				at = append(at, i)
			}
			between = true
			continue
		}
		between = false
	}
	return at
}
