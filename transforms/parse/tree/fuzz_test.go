package tree

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// same checks a page whatever it is: a tree that was made here is that of html.Parse.
func same(t *testing.T, page string) (odd bool) {
	t.Helper()
	got := quick(page)
	if got == nil {
		return true
	}
	if d := difference(got, page); d != "" {
		t.Fatalf("%q: %s", page, d)
	}
	return false
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"<!doctype html><title>a</title><p class=x id='y' hidden>b &amp; c<b>d</p>e</b>",
		"<table><tr><td>a<td>b</table><ul><li>a<li>b</ul><svg viewbox=0><path d=x /></svg>",
		"<a href='?a=1&copy=2&lt'>x<a>y</a><select><option>a<option>b</select>",
		"<script><!--<script>x</script>--></script><!-- x --!><![CDATA[x]]><?x?></ x></>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, page string) { same(t, page) })
}

// Pages at random of all the tags that have rules, by one seed.
func TestRandomPages(t *testing.T) {
	var tags []string
	for name := range elementOf {
		if name != "frameset" && name != "plaintext" && name != "template" { // always odd
			tags = append(tags, name)
		}
	}
	tags = append(tags, "span", "x-y", "time", "ruby", "g", "clippath", "mi", "annotation", "b", "a", "p", "div", "table", "tr", "td", "svg")
	// Their order is that of a map: sort it.
	slices.Sort(tags)
	parts := []string{" ", "\n", "a", "b c", "&amp;", "&nbsp", "&notit;", "&#65", "<!--x-->", "<!x>", "</>", "<?x>", "<", "<![CDATA[x>y]]>", "<!doctype html>", "<!DOCTYPE HTML PUBLIC 'x'>", "\r\n", "\r"}
	attributes := []string{" class=a", " id='b'", ` A="&lt;"`, " hidden", " type=hidden", "/", " /", " x=y/", " = ", " a=1 a=2", " viewbox=0", " xlink:href='#a'", " color=red", ` href="?a&copy=1&amp&lt;"`}
	r := rand.New(rand.NewPCG(1, 2))
	odds := 0
	const n = 60_000
	for range n {
		var b strings.Builder
		for range 1 + r.IntN(14) {
			switch r.IntN(8) {
			case 0, 1:
				b.WriteString(parts[r.IntN(len(parts))])
			case 2, 3:
				b.WriteString("</" + tags[r.IntN(len(tags))] + ">")
			default:
				name := tags[r.IntN(len(tags))]
				if r.IntN(10) == 0 {
					name = strings.ToUpper(name)
				}
				b.WriteString("<" + name)
				for r.IntN(3) == 0 {
					b.WriteString(attributes[r.IntN(len(attributes))])
				}
				b.WriteString(">")
			}
		}
		if same(t, b.String()) {
			odds++
		}
	}
	t.Logf("%d of %d are odd", odds, n)
}
