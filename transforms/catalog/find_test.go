package catalog

import (
	"testing"

	"github.com/andybalholm/cascadia"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

func TestClassesOf(t *testing.T) {
	f := func(selector string, want ...string) {
		t.Helper()
		group, err := cascadia.ParseGroup(selector)
		require.NoError(t, err)
		assert.Equal(t, want, classesOf(selector, group), selector)
	}
	f(".price", "price")
	f("div.post-feed  li:contains(\"a, .b\")")
	f(`li:contains("Certificate ID") .value, p.entry-certificate-id`, "value", "entry-certificate-id")
	f(`.a.b_c > .d-1`, "d-1")
	f(`.a, b`)
	f(`.a, [x=","], .b`)
	f(`.a[x=".b"]`)
	f(`a\.b`)
	f(`.a:not(.b)`)
	f(`.a\ b.c`, "c")
}

// A page's elements are found by class as they are found one by one.
func FuzzCandidates(f *testing.F) {
	for _, selector := range []string{".a", "p.a, .b", ".a.b", "li:contains(\"x, .a\") .b", ".a > .b, i", `.a\.b`, `[class=".a"], .b`, ":not(.a)", ".a /* x */ .b", ".\\61 .b", ":is(.a, .b)", ".a:matches(x.b)",
		`li.b:contains("X") .b`, `:contains("x") .b`, `p :contains("y") .b`, `p > :contains("y") .b`, `p[class="a b"]:contains("y") .b, table:contains("1") .a`, `p\:contains("y") .b`, `i:not(:contains("y")):contains("Y") .b`} {
		f.Add(selector, `<base href=/x><p class="a b">x<i class=b>y</i></p><svg class=a><p class="b\u00a0a">z</svg><table><tr class="a&#10;b a"><td class=a.b>1`)
	}
	f.Fuzz(func(t *testing.T, selector, text string) {
		group, err := cascadia.ParseGroup(selector)
		if err != nil {
			return
		}
		p, err := parsePage(text)
		if err != nil {
			return
		}
		var all, found []*html.Node
		for _, n := range p.nodes {
			if group.Match(n) {
				all = append(all, n)
			}
		}
		classes := classesOf(selector, group)
		find := finder{group: group, classes: classes}
		for _, n := range p.candidates(find) {
			if group.Match(n) {
				found = append(found, n)
			}
		}
		require.Len(t, all, len(found), "%q by %q", selector, classes)
		for i := range all {
			require.True(t, all[i] == found[i], "%q by %q: element %d is another one", selector, classes, i)
		}
	})
}
