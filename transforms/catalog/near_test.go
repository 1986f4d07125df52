package catalog

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSimilar(t *testing.T) {
	f := func(selector, page string, want ...string) {
		t.Helper()
		p, err := parsePage(page)
		require.NoError(t, err)
		assert.Equal(t, want, p.similar(selector), "%s in %s:\ngot", selector, page)
	}
	f(".price", "<p class=cost>1</p>")
	f(".price", "<p class='Price x'>1</p><b class=price_tag>", ".price is not in the page, but .Price is (1 element)", ".price is not in the page, but .price_tag is (1 element)")
	f("#sku", "<p class=sku>1<p class=sku>2", "#sku is not in the page, but .sku is (2 elements)")
	f(".prcie, .titel", "<p class=price><p class=title>")
	f(".pric", "<p class=price>", ".pric is not in the page, but .price is (1 element)")
	f("main > ul li.a a[href='x y']", "<ul><li class=a><a href='x y'>", "ul li.a a[href='x y'] matches 1 element")
	f("main li:contains(\"a b\") a", "<p><a>", "a matches 1 element")
	f("main, .b a", "<a>")
}

// Near misses of any selector of a file can be looked for in any page.
func FuzzSimilar(f *testing.F) {
	f.Add("main > ul li.a", "<ul class=a id=b><li>")
	f.Add(`a:contains("x >") ~ b,c`, "<b class='.#'>")
	f.Fuzz(func(t *testing.T, selector, page string) {
		if _, err := (Select{Selector: selector}).compile("x", formatHTML); err != nil {
			return
		}
		p, err := parsePage(page)
		if err != nil {
			return
		}
		got := p.similar(selector)
		assert.LessOrEqual(t, len(got), maxNear)
	})
}
