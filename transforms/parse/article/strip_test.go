package article

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What strip leaves has the text of the page without scripts, styles, frames and comments, as
// the parser would find it: also where they end in ways that only HTML's tokenizer knows.
func TestStripIsFaithful(t *testing.T) {
	parts := []string{"<script>", "<script type='a>b'>", "<SCRIPT x=y>", "</script>", "</script >", "</script\n", "</script x='>'>", "</script/>", "</scripts>", "<script ",
		"<style>", "</style>", "</style ", "<iframe src=x>", "</iframe>", "</iframe\t>", "<!--", "-->", "--!>", "<!-->", "<!--->", "--", "<p>", "<b title=\"a>b\">", "</b>", ">", "<!", "'", "\""}
	random := rand.New(rand.NewPCG(1, 2))
	pages := []string{
		"<p>a</p><script></script\n<!-- x --><p>b</p><script></script>",
		"<p>a</p><script><!-- <script> </script> --></script><p>b</p><script></script>",
		"<p>a</p><script><!-- <script> </script> </script><p>b</p><!-- --><script></script>",
		"<p>a</p><!-- x --!><p>b</p><!-- -->",
	}
	for range 30000 {
		var b strings.Builder
		for i := range 3 + random.IntN(12) {
			b.WriteString(parts[random.IntN(len(parts))])
			b.WriteByte(byte('a' + i))
		}
		pages = append(pages, b.String())
	}
	for _, page := range pages {
		page = "<body>" + page
		kept, _ := strip([]byte(page))
		require.Equal(t, shown(t, page), shown(t, kept), "%q became %q", page, kept)
	}
}

// shown is the text of a page that is in no element that strip removes.
func shown(t *testing.T, page string) string {
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var b strings.Builder
	var add func(*html.Node)
	add = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch {
			case c.DataAtom == atom.Script || c.DataAtom == atom.Style || c.DataAtom == atom.Iframe:
			case c.Type == html.TextNode:
				b.WriteString(c.Data)
			default:
				add(c)
			}
		}
	}
	add(root)
	return strings.Join(strings.Fields(b.String()), "")
}
