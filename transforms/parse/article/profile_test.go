package article_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// The type of a page is told by its structure; each type has a main part of its own.
func TestTypes(t *testing.T) {
	times := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(strings.ReplaceAll(format, "$n", fmt.Sprint(i+1)), "$s", fmt.Sprintf("Somebody numbered %d says what the quay was like before the great storm, and asks who remembers it.", i+1)))
		}
		return b.String()
	}
	const header, footer = `<header><nav><ul><li><a href="/a">Politics</a></li></ul></nav><a href="/">Harbour Post</a></header>`, `<footer><p>Harbour Post Ltd, quay 3, all rights are ours, whatever the sea may say about it.</p></footer>`
	for _, c := range []struct {
		name, body string
		want       article.Type
		must, not  []string
	}{
		{"an article with readers' comments", `<article><h1>T</h1><p>By <a rel="author" href="/ada">Ada North</a> <time>3 May 2024</time></p>` + paragraphs(8) + `</article><section><h2>Comments</h2>` +
			times(4, `<div class="c"><a href="/users/u$n">u$n</a> <time>4 May</time><p>$s</p></div>`) + `</section>`, "", []string{"Paragraph H"}, nil},
		{"posts with authors and times", `<h1>The old quay</h1>` + times(5, `<div class="post" id="p$n"><div class="author"><a href="/members/u$n">u$n</a> <span>Posts: 31</span></div><div class="when"><time datetime="2024-05-0$n">May $n</time></div><div class="content">$s</div></div>`),
			article.Forum, []string{"numbered 1 says", "numbered 5 says"}, []string{"Ltd", "Politics"}},
		{"posts in rows of a table", `<h1>The old quay</h1><table>` + times(4, `<tr class="row"><td><a href="memberlist.php/user/u$n">u$n</a></td><td><span class="post-date">0$n May 2024</span><div>$s</div></td></tr>`) + `</table>`,
			article.Forum, []string{"numbered 1 says", "numbered 4 says"}, []string{"Ltd"}},
		{"posts that are named comments", `<h1>The old quay</h1><p>Who remembers the quay before the storm? I was a child then, and have only one picture of it, in a drawer.</p>` + times(6, `<li class="comment"><span class="username">u$n</span> <a href="/u/u$n">u$n</a> <time>May $n</time><div>$s $s</div></li>`),
			article.Forum, []string{"I was a child then", "numbered 1 says", "numbered 6 says"}, []string{"Ltd"}},
		{"a question and one answer", `<script type="application/ld+json">{"@type":"QAPage","mainEntity":{"@type":"Question","name":"The old quay"}}</script><h1>The old quay</h1><div class="question"><p>Who remembers the quay before the storm? I was a child then, and have only one picture.</p></div><div>` +
			times(2, `<div class="answer"><div>$s</div><a href="/users/u$n">u$n</a> <time>May $n</time></div>`) + `</div>`, article.Forum, []string{"I was a child then", "numbered 2 says"}, []string{"Ltd"}},
		{"links with teasers", `<h1>Town</h1><div class="river">` + times(8, `<article class="card"><h2><a href="/s/$n">Storm takes ship number $n of the north</a></h2><p>What story $n is about is told here in a few words.</p></article>`) + `</div>`,
			article.List, []string{"Storm takes ship number 1", "story 8 is about"}, []string{"Ltd", "Politics"}},
		{"cards that are links", `<h1>Quays</h1><ul>` + times(6, `<li><a href="/q/$n"><h3>North quay number $n</h3></a><span>Depth $n m, two cranes, open all year round</span></li>`) + `</ul>`, article.List, []string{"North quay number 6", "Depth 6 m"}, nil},
		{"an article with a list of others below", `<article><h1>T</h1>` + paragraphs(8) + `</article><div>` + times(6, `<div class="card"><h3><a href="/s/$n">Storm takes ship number $n of the north</a></h3><p>Teaser $n stands here.</p></div>`) + `</div>`, "", []string{"Paragraph H"}, []string{"Teaser 2"}},
		{"a product by its data", `<script type="application/ld+json">{"@type":"Product","name":"Rope","offers":{"@type":"Offer","price":"12.50","priceCurrency":"EUR"}}</script><main><h1>Rope of the north</h1><div>€ 12.50</div><ul><li>Length: 20 m</li><li>Load: 300 kg</li></ul><p>Three strands, made of hemp.</p></main>`,
			article.Product, []string{"€ 12.50", "Length: 20 m", "Three strands"}, []string{"Ltd"}},
		{"a product by price and basket, and others", `<main><h1>Rope of the north</h1><span>$12.50</span><form action="/cart/add"><input name="n"></form><div><p>Three strands, made of hemp, for ships of all sizes, that nobody will regret.</p><p>Load: 300 kg</p></div><div>` +
			times(4, `<div class="other"><a href="/p/$n">Anchor of the sort $n</a><span>A heavy thing it is</span></div>`) + `</div></main>`, article.Product, []string{"$12.50", "Three strands", "Load: 300 kg"}, []string{"Anchor of"}},
		{"code and parameters", `<main><h1>tie()</h1><p>Ties a rope to the quay, and returns how long it holds in the worst of storms.</p><pre>tie(rope, quay)</pre><h2><a href="/ref/params">Parameters</a></h2><dl><dt><code>rope</code></dt><dd>The rope.</dd></dl><pre>tie(r, q)</pre><h2>See too</h2><pre>untie(r)</pre></main>`,
			article.Documentation, []string{"tie(rope, quay)", "Parameters", "The rope.", "untie(r)"}, []string{"Ltd"}},
		{"sections of a service", `<script type="application/ld+json">{"@type":"LocalBusiness","name":"Harbour tours"}</script><main><h1>Harbour tours</h1><section><h2>By boat</h2><p>See the quay from the sea.</p></section><section><h2>On foot</h2><p>Three hours of stone</p></section><section><h2>Prices</h2><p>12 euros, children 6</p></section></main>`,
			article.Service, []string{"By boat", "Three hours of stone", "children 6"}, []string{"Ltd"}},
	} {
		got := read(t, "<html><head><title>Page of the Harbour Post</title></head><body>"+header+c.body+footer+"</body></html>", article.Rules{})
		assert.Equal(t, c.want, got.Type, c.name)
		for _, w := range c.must {
			assert.Contains(t, got.Body, w, c.name)
		}
		for _, w := range c.not {
			assert.NotContains(t, got.Body, w, c.name)
		}
	}
}
