package article_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// sentences are n paragraphs of prose, each different.
func sentences(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, fmt.Sprintf("Paragraph %c of the report says what the harbour's council decided on its long evening, and why it took so many hours.", 'A'+i))
	}
	return b.String()
}

func paragraphs(n int) string { return sentences(n, "<p>%s</p>\n") }

const menu = `<ul class="menu"><li><a href="/a">Politics</a></li><li><a href="/b">Sports</a></li></ul>`

// Shapes of pages that are common, each with words that the text must have and words that it must not have.
func TestShapes(t *testing.T) {
	four := []string{"Paragraph A", "Paragraph B", "Paragraph C", "Paragraph D"}
	cards := func(tag, class string) string {
		var b strings.Builder
		for i := range 4 {
			fmt.Fprintf(&b, `<%s class="%s"><h3><a href="/x%d">Another headline number %d of the day</a></h3><p>A teaser says in some words what the other story number %d is about, and stops.</p></%s>`, tag, class, i, i, i, tag)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, body string
		must       []string
		not        []string
	}{
		// A name says what an element is only as a whole word, and only where it does not say how it is shown.
		{"a class that says that something can be shown", `<div class="page modal-enabled comments-enabled has-sidebar"><div>` + paragraphs(4) + `</div></div>`, four, nil},
		{"classes of a style framework", `<div class="print:hidden sidebar-open:w-64 lg:hidden"><div class="md:hidden print:w-full">` + paragraphs(4) + `</div></div>`, four, nil},
		{"a label that is hidden", `<div class="field field--label-hidden"><div class="field__item">` + paragraphs(4) + `</div></div>`, four, nil},
		{"a citation in the text", `<div id="text">` + paragraphs(2) + `<blockquote class="citation"><p>A quoted voice of the harbour speaks here at some length.</p></blockquote>` + paragraphs(4) + `</div>`, append(four, "A quoted voice"), nil},
		{"a topic is no share bar", `<div class="category-social tag-newsletter type-post">` + paragraphs(4) + `</div>`, four, nil},
		{"a lede named teaser", `<div class="content"><h1>T</h1><p class="teaser">The council of the harbour has decided what nobody had expected before the evening began.</p>` + paragraphs(4) + `</div>`, append(four, "nobody had expected"), nil},
		{"teasers of other stories", `<div class="content">` + paragraphs(4) + `<div class="teasers">` + cards("div", "teaser") + `</div></div>`, four, []string{"Another headline", "A teaser says"}},
		{"share buttons", `<div class="content">` + paragraphs(4) + `<div class="social-share"><a href="/f">Share on F</a> <a href="/t">Share on T</a></div></div>`, four, []string{"Share on"}},
		{"an article in a modal is none of a dialog", `<div class="modal-page"><article>` + paragraphs(4) + `</article></div>`, four, nil},
		{"a cookie notice", `<div class="cookie-banner"><p>We and our partners store cookies on your device to show what you may like, and you can refuse them at any time.</p></div><div>` + paragraphs(4) + `</div>`, four, []string{"store cookies"}},
		{"comments of readers", `<div class="story">` + paragraphs(4) + `</div><div id="comments" class="comments-area">` + sentences(9, `<div class="comment"><b>Somebody</b><p>I think that %s</p></div>`) + `</div>`, four, []string{"I think that"}},

		// Parts of an article in elements of their own.
		{"an article in the article", `<article><h1>T</h1>` + paragraphs(2) + `<article class="part"><h2>The second half</h2><p>This part is in an article element of its own, and belongs to the text as much as the rest.</p></article>` + paragraphs(4) + `</article>`, append(four, "as much as the rest"), nil},
		{"cards of other articles in the article", `<article><h1>T</h1>` + paragraphs(4) + cards("article", "card") + `</article>`, four, []string{"Another headline", "A teaser says"}},
		{"posts of a live blog", `<main><h1>T</h1><p>All news of the harbour in the live blog of this evening, as it comes in.</p>` + sentences(4, `<article class="post"><time>10:15</time><h3>Post</h3><p>%s</p></article>`) + `</main>`, four, nil},
		{"posts of a forum, the text of each in an article of its own", `<main><h1>T</h1>` + sentences(4, `<article class="message"><h4><a href="/u">Somebody</a></h4><ul><li><a href="/x">Joined in May</a></li><li><a href="/y">Messages 31</a></li></ul><article class="message-body">%s</article></article>`) + `</main>`, four, nil},
		{"a part of a live blog that is on more of the same", `<article><h1>T</h1><div class="lead">` + sentences(4, `<p>At first, %s</p>`) + `</div>` + sentences(2, `<div class="post"><h3>At the quay</h3><p>In the morning, %s</p></div>`) + `<div class="post"><h3>More on the quay</h3></div>` + sentences(4, `<div class="post"><h3>In the hall</h3><p>In the evening, %s</p></div>`) + `</article>`, []string{"At first, Paragraph D", "In the evening, Paragraph D"}, nil},
		{"parts that have the name of a text and others", `<article><h1>T</h1><div class="bodytext">` + paragraphs(4) + `</div><div>An advertisement</div><div class="last bodytext">` + sentences(1, `<p>At last, %s</p>`) + `</div></article>`, append(four, "At last, Paragraph A"), nil},
		{"text that opens by a click", `<article><h1>T</h1>` + paragraphs(4) + `<div class="panel-group" role="tablist"><div class="panel"><p>Folded is what a member said in the hall, which only some want to read.</p></div></div></article>`, append(four, "Folded is what"), nil},

		// Paragraphs that only line breaks separate.
		{"line breaks", `<div class="text">` + sentences(4, "%s<br><br>") + `</div>`, four, nil},
		{"line breaks and links", `<div class="text">` + sentences(2, "%s<br><br>") + `<a href="/1">A link to another long story of the same day</a><br><br>` + strings.Repeat(`<a href="/1">Link to a story</a> `, 40) + `<br><br>` + sentences(4, "%s<br><br>") + `</div>`, four, []string{"Link to a story"}},
		{"a short paragraph among links by line breaks", `<div class="text">` + sentences(4, "%s<br><br>") + `Nobody objected.<br><br><a href="/1">One more story of the harbour and its council</a><br><br></div>`, append(four, "Nobody objected."), []string{"One more story"}},

		// Tables.
		{"a table with links", `<article><h1>T</h1>` + paragraphs(3) + `<table><tr><th>Club</th><th>Points</th></tr><tr><td><a href="/1">Harbour Rovers</a></td><td>31</td></tr><tr><td><a href="/2">Castle Athletic</a></td><td>28</td></tr></table>` + paragraphs(4) + `</article>`, append(four, "Harbour Rovers 31", "Castle Athletic 28"), nil},
		{"a table of prose", `<table><tr><td>` + menu + `</td></tr>` + sentences(4, `<tr><td>%s</td></tr>`) + `</table>`, four, []string{"Politics"}},
		{"a table of links", `<article><h1>T</h1>` + paragraphs(4) + `<table><tr><td><a href="/1">One more story of the harbour</a></td></tr><tr><td><a href="/2">Yet one more story of it</a></td></tr></table></article>`, four, []string{"more story"}},
		{"a table of links with names for its columns", `<article><h1>T</h1>` + paragraphs(4) + `<table><tr><th>Quay</th><th>Map</th></tr><tr><td><a href="/1">North quay of the harbour</a></td><td><a href="/m"></a></td></tr><tr><td><a href="/2">South quay of the harbour</a></td><td><a href="/m"></a></td></tr></table></article>`, append(four, "North quay"), nil},

		// The first subheading and short last lines.
		{"the first subheading", `<article><h1>T</h1><h2>What was decided</h2>` + paragraphs(2) + `<h2>What comes next</h2>` + paragraphs(4) + `</article>`, append(four, "What was decided", "What comes next"), nil},
		{"the headline again is no subheading", `<title>The harbour decides</title><article><h2>The harbour decides</h2>` + paragraphs(4) + `</article>`, four, []string{"The harbour decides"}},
		{"what is said about a match", `<article><h1>T</h1>` + paragraphs(2) + `<div class="live-match-comment">In the last minute the quay's eleven shot the only goal of the long evening.</div>` + paragraphs(4) + `</article>`, append(four, "only goal"), nil},
		{"a linked list that a sentence introduces, at the end", `<article><h1>T</h1>` + paragraphs(4) + `<p>These are the books that the jury of the harbour has chosen:</p><ul><li><a href="/1">The long night of the crane</a></li><li><a href="/2">Salt and rope, a memoir</a></li></ul></article>`, append(four, "Salt and rope"), nil},
		{"a linked list below a heading, in an element of its own", `<article><h1>T</h1>` + paragraphs(2) + `<h2>The three best quays</h2><div><ol><li><a href="/1">The long quay of the crane</a></li><li><a href="/2">Salt quay and rope</a></li><li><a href="/3">All the quays of the north</a></li></ol></div><h2>What next</h2>` + paragraphs(4) + `</article>`, append(four, "Salt quay"), nil},
		{"lists of links to other stories", `<article><h1>T</h1>` + paragraphs(2) + `<p><strong>Read more:</strong></p><ul><li><a href="/a">Harbour votes on crane again</a></li><li><a href="/b">Council shuts the old quay</a></li><li><a href="/c">Storm takes a third ship</a></li></ul>` + paragraphs(4) + `<ul><li><a href="/d">A pilot remembers the storm</a></li><li><a href="/e">The crane by night and day</a></li><li><a href="/f">Six ships that came back</a></li></ul></article>`, four, []string{"third ship", "came back"}},
		{"headings that are links", `<article><h1>T</h1>` + paragraphs(1) + `<h2><a href="https://shop.example/1">1. The long night</a></h2>` + sentences(1, "<p>One, %s</p>") + `<h2 id="b"><a href="#b">Salt and rope</a></h2>` + paragraphs(4) + `<div><h3><a href="/1">Harbour votes on crane</a></h3><p>A teaser says in some words what the other story is about, and it stops there.</p></div></article>`, append(four, "1. The long night", "Salt and rope"), []string{"votes on crane"}},
		{"a sentence between paragraphs that is a link, and a headline", `<article><h1>T</h1>` + paragraphs(1) + `<p><a href="/y">A fourth man will answer in May.</a></p>` + sentences(1, "<p>One, %s</p>") + `<p><a href="/x">Storm takes a third ship of the north</a></p>` + paragraphs(4) + `</article>`, append(four, "A fourth man"), []string{"third ship"}},
		{"corrections below the text", `<article><h1>T</h1><div class="article-body">` + paragraphs(4) + `</div><footer><p class="article-correction"><em>This article was amended on 3 May: the quay was built later.</em></p><p class="corrections-link">Seen an error? <a href="/c">Submit a correction to us.</a></p></footer></article>`, append(four, "was amended on 3 May"), []string{"Submit"}},
		{"the only subheading, before the text", `<article><h1>T</h1><div>By Ada North</div><h2>What was decided</h2>` + paragraphs(4) + `</article>`, append(four, "What was decided"), []string{"Ada North"}},
		{"a second line below the headline", `<title>The harbour decides</title><article><header><h1>The harbour decides</h1><p class="dek">Most members agree on a third quay</p><p>By Ada North and Bo South of the Post</p></header><div class="article-body">` + paragraphs(4) + `</div></article>`, append(four, "Most members agree"), []string{"Ada North"}},
		{"points below the headline", `<title>The harbour decides</title><main><h1>The harbour decides</h1><ul><li>Members agree on a third quay for the town</li><li>The crane stays where it was before the storm</li></ul><div class="article-body">` + paragraphs(4) + `</div></main>`, append(four, "Members agree", "crane stays"), nil},
		{"a recipe whose ingredients are links in part", `<title>Quay soup</title><article><h1>Quay soup</h1><p>This soup warms those who work at the quay in winter, and needs no more than an hour.</p><h2>Ingredients</h2><ul><li>2 onions</li><li>1 l water</li><li><a href="/salt">salt</a></li><li><a href="/fish">cod</a></li></ul><table><tr><td>200 g</td><td><a href="/s">sugar</a></td></tr><tr><td>2 l</td><td><a href="/m">milk</a></td></tr></table><ol><li>Chop the onions and fry them in butter until soft.</li></ol></article>`, []string{"2 onions", "salt", "cod", "200 g sugar", "2 l milk", "Chop the onions"}, nil},
		{"a short quotation at the end", `<article><h1>T</h1>` + paragraphs(4) + `<blockquote><p>We never lost the quay</p></blockquote></article>`, append(four, "never lost the quay"), nil},
		{"a short last line", `<article><h1>T</h1>` + sentences(4, "<div>%s</div>") + `<div>Watch this space</div></article>`, append(four, "Watch this space"), nil},
		{"updates that only JSON-LD has", `<script type="application/ld+json">{"@type":"LiveBlogPosting","headline":"T","liveBlogUpdate":[{"@type":"BlogPosting","headline":"At the quay","articleBody":"` + strings.ReplaceAll(sentences(4, "%s "), "\n", "") + `"},{"@type":"BlogPosting","articleBody":"<p>At last it was over.</p>"}]}</script><div id="app"></div>`, append(four, "At the quay", "At last it was over."), nil},
		{"a preview before a wall", `<article><h1>T</h1><div class="freemium__preview">` + paragraphs(4) + `</div><div class="freemium__paywall paywall"><p>Subscribe to read on, and get all that we have.</p></div></article>`, four, []string{"Subscribe to read"}},
		{"a correction", `<article><h1>T</h1>` + paragraphs(4) + `<p class="correction">Correction: the quay was built in the year after the storm, not in the year before it.</p></article>`, append(four, "Correction:"), nil},
		{"a list of links that the text names", `<article><h1>T</h1>` + paragraphs(2) + `<ul><li><a href="/1">The north quay by night</a></li><li><a href="/2">The south quay by day</a></li><li><a href="/3">The third quay in fog</a></li></ul>` + paragraphs(4) + `</article>`, append(four, "north quay by night"), nil},
		{"a list of links at the end", `<article><h1>T</h1>` + paragraphs(4) + `<ul><li><a href="/1">The north quay by night</a></li><li><a href="/2">The south quay by day</a></li><li><a href="/3">The third quay in fog</a></li></ul></article>`, four, []string{"by night"}},
		{"a short last line", `<article><h1>T</h1>` + paragraphs(4) + `<p>And so it ended</p></article>`, append(four, "And so it ended"), nil},
		{"a heading that is a sentence at the end", `<article><h1>T</h1>` + paragraphs(4) + `<h4>Somebody wrote all of it down. Nobody in the hall had believed in the third quay before that evening.</h4></article>`, append(four, "Nobody in the hall"), nil},
		{"an address at the end", `<div class="entry-content">` + paragraphs(4) + `<p><a href="https://quay.example/plan">https://quay.example/plan</a></p></div>`, append(four, "quay.example/plan"), nil},
		{"a paragraph that is a link", `<article><h1>T</h1>` + paragraphs(2) + `<p><a href="/1">The plan of the third quay was drawn by an engineer, who has built quays for thirty years and in five harbours.</a></p>` + paragraphs(4) + `</article>`, append(four, "plan of the third quay"), nil},
		{"many short last lines", `<div><h1>T</h1>` + paragraphs(4) + strings.Repeat(`<p>A quay in the fog</p><p>And one without</p>`, 3) + `<p>And so it ended</p><div>Newest pictures</div></div>`, append(four, "And so it ended"), []string{"Newest pictures"}},
		{"labels after the text", `<article><h1>T</h1><div>` + paragraphs(4) + `</div><div>Tags</div><h3>More from the harbour</h3><div><a href="/x">A story</a></div></article>`, four, []string{"Tags", "More from"}},

		// An introduction before the text.
		{"an introduction before the element of the text", `<title>The harbour decides</title><div><h1>The harbour decides</h1><div class="date">3 May 2024</div><p class="kicker">By Somebody</p><div class="teaser-text"><p>What nobody had expected before the long evening has happened: the council has agreed.</p></div><div class="articlebody">` + paragraphs(4) + `</div></div>`, append(four, "What nobody had expected"), []string{"By Somebody", "3 May"}},
		{"a summary before the element of the text", `<title>The harbour decides</title><div><h1>The harbour decides</h1><div>` + sentences(3, `<p>In short, said the machine, %s</p>`) + `</div><div class="articlebody">` + paragraphs(4) + `</div></div>`, four, []string{"said the machine"}},
		{"a quotation before the element of the text", `<title>The harbour decides</title><div><h1>The harbour decides</h1><div><p>Nobody had expected what the council of the harbour decided then.</p></div><div class="articlebody">` + paragraphs(4) + `<p>And more. Nobody had expected what the council of the harbour decided then.</p></div></div>`, append(four, "And more. Nobody"), []string{"decided then.\nParagraph A"}},
		{"a heading that is a sentence", `<article><h1>T</h1><h2>What nobody had expected before the long evening has happened: the council has agreed on a plan.</h2><p>Somebody, 3 May</p>` + paragraphs(4) + `</article>`, append(four, "What nobody had expected"), []string{"Somebody, 3 May"}},

		// What is around the text, or in it, without being of it.
		{"the text in a grid named after its sidebar", `<article><h1>T</h1>` + sentences(4, `<div class="sidebar-grid is-narrow"><div class="sidebar-grid__content article__content"><p>%[1]s</p><p>%[1]s And that is that.</p></div><div class="sidebar-grid__side">An advertisement may be here</div></div>`) + `</article>`, four, []string{"may be here"}},
		{"rows named after a player", `<div class="articlebody">` + paragraphs(2) + `<table><tr><th>Name</th><th>Points</th></tr><tr class="odd player-7"><td>Somebody Junior</td><td>31</td></tr><tr class="even player-8"><td>Nobody Senior</td><td>28</td></tr></table>` + paragraphs(4) + `</div>`, append(four, "Somebody Junior 31", "Nobody Senior 28"), nil},
		{"what a name shows under the pointer", `<article><h1>T</h1><p>The member <span class="rollover"><a href="/m">Somebody Junior</a><span class="rollover-block"><a href="/1">Another story on him</a> and on others</span></span> spoke first and for long, as members do.</p>` + paragraphs(4) + `</article>`, four, []string{"and on others"}},
		{"a picture as text", `<article><h1>T</h1>` + paragraphs(4) + `<div>` + strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 400) + `</div></article>`, four, []string{"iVBOR"}},
		{"more text of other stories than of this one", `<main><div class="a"><h1>T</h1>` + paragraphs(4) + `</div><div class="b"><h3>Recommended for you</h3>` + sentences(9, `<div><p>Elsewhere it was heard: %s</p></div>`) + `</div></main>`, four, []string{"Elsewhere", "Recommended"}},
		{"a box in the text", `<article><h1>T</h1>` + sentences(3, `<p>At first, %s</p>`) + `<h3>Related</h3><div><a href="/1">Another story of the harbour</a></div>` + paragraphs(4) + `<p>After the box the text continues, and says what the council will do in the next year.</p></article>`, append(four, "After the box"), nil},
		{"an announcement at the end", `<article><h1>T</h1>` + paragraphs(4) + `<h3>This may also be of interest:</h3><ul><li><a href="/1">Another story of the harbour</a></li></ul></article>`, four, []string{"of interest", "Another story"}},
		{"announcements between paragraphs", `<article><h1>T</h1><p>At first there was nothing in the hall of the harbour's council but chairs.</p><p>Weitere Hafennachrichten</p><p>Schlagwörter:</p><p>Notícias relacionadas</p>` + paragraphs(4) + `</article>`, append(four, "At first there"), []string{"Weitere", "Schlag", "Not"}},
		{"about the author", `<article><h1>T</h1>` + sentences(3, `<p>At first, %s</p>`) + paragraphs(4) + `<h4>Über den Autor</h4><p>Somebody writes about harbours and has done so for very many years.</p></article>`, four, []string{"Über den Autor", "writes about harbours"}},

		// What names say of introductions, notes and parts.
		{"an introduction named a teaser in an element of its own", `<title>The harbour decides</title><article><div class="intro"><div class="teaser-text"><p>What nobody had expected before the long evening has happened: the council has agreed.</p></div></div><div>` + paragraphs(4) + `</div></article>`, append(four, "What nobody had expected"), nil},
		{"an introduction marked as the description", `<div itemscope itemtype="http://schema.org/Article"><div itemprop="description"><ul><li>What nobody had expected before the long evening has happened</li></ul></div><div itemprop="articleBody">` + paragraphs(4) + `</div></div>`, append(four, "What nobody had expected"), nil},
		{"the description of something else", `<header itemscope itemtype="https://schema.org/WPHeader"><p itemprop="description">All news of the harbour and of its three quays, every day and for free</p></header><div itemscope itemtype="http://schema.org/Article"><div itemprop="articleBody">` + paragraphs(4) + `</div></div>`, four, []string{"every day and for free"}},
		{"a heading that says more than the headline", `<title>The harbour decides</title><main><h1>The harbour decides</h1><h2>After many hours, most members agree on a third quay</h2><div>3 May, 10:15</div>` + paragraphs(4) + `</main>`, append(four, "After many hours"), []string{"10:15"}},
		{"the headline in other words is none", `<title>The harbour decides after many hours on a third quay</title><main><h2>After many hours the harbour has decided on a third quay</h2><div>3 May</div>` + paragraphs(4) + `</main>`, four, []string{"has decided on"}},
		{"what is said about a post", `<div class="entry-content">` + paragraphs(4) + `<span class="post-ratings">(No votes yet, please be the first.)</span><p class="postmetadata">This was written by Somebody at the harbour, in the year after that.</p></div>`, four, []string{"No votes", "in the year after"}},
		{"a call for letters", `<article><h1>T</h1>` + paragraphs(4) + `<section class="c-letters-cta"><p>We want to hear what you think, and so does the harbour's whole council.</p></section></article>`, four, []string{"We want to hear"}},
		{"a part that is not printed", `<article><h1>T</h1><section class="top noprint"><p>On screens only: the council has a map of its three quays.</p></section>` + paragraphs(4) + `</article>`, append(four, "On screens only"), nil},
		{"numbered parts", `<article><h1>T</h1><div class="story-body story-body-1">` + sentences(3, `<p>At first, %s</p>`) + `</div><div>An advertisement</div><div class="story-body story-body-2">` + paragraphs(4) + `</div></article>`, append(four, "At first, Paragraph A"), nil},
		{"a table in a figure", `<article><h1>T</h1>` + paragraphs(4) + `<figure class="table"><table><tr><th>Quay</th><th>Ships</th></tr><tr><td>North</td><td>31</td></tr></table></figure>` + sentences(1, "<p>Last, %s</p>") + `</article>`, append(four, "North 31"), nil},

		{"a story in one link", `<article><h1>T</h1>` + sentences(2, `<p>At first, %s</p>`) + `<div><a href="/x"><span>Opinion</span><h3>The sea always wins</h3><p>The town should give up the quay, says our writer, and think of the future.</p></a></div>` + paragraphs(4) + `</article>`, append(four, "At first"), []string{"Opinion", "always wins", "think of the future"}},
		{"a link that was never closed", `<article><h1>T</h1><p>At first there was nothing in the hall but chairs.</p><div><a href="/x"><div>` + sentences(7, `<div>%s</div>`) + `</div></div></article>`, four, nil},
		{"a text in a link within the page", `<article><h1>T</h1>` + sentences(2, `<p>At first, %s</p>`) + `<a href="#map"><div><p>Folded is what a member said in the hall, which only some want to read.</p></div></a>` + paragraphs(4) + `</article>`, append(four, "Folded is"), nil},
		{"a page builder's blocks", `<div class="elementor-section"><div class="elementor-element elementor-widget elementor-widget-theme-post-title"><div class="elementor-widget-container"><h1>T</h1></div></div><div class="elementor-element elementor-widget elementor-widget-text-editor"><div class="elementor-widget-container">` + sentences(2, `<p>At first, %s</p>`) + `</div></div><div class="elementor-element elementor-widget elementor-widget-share-buttons"><div class="elementor-widget-container">Share this with all your friends now</div></div><div class="elementor-element elementor-widget elementor-widget-text-editor"><div class="elementor-widget-container">` + paragraphs(4) + `</div></div></div>`, append(four, "At first"), []string{"Share this"}},
		{"elements of the site's own", `<article><h1>T</h1>` + sentences(2, `<p>At first, %s</p>`) + `<app-newsletter><p>All news of the harbour, each Friday morning, written by our team.</p></app-newsletter><app-text>` + paragraphs(4) + `</app-text></article>`, append(four, "At first"), []string{"each Friday"}},
		{"names for tests and components", `<div class="css-1"><div class="css-2" data-testid="article-body">` + paragraphs(4) + `<div class="css-3" data-component="RelatedTeaser"><p>What the storm did to the town, the crane and its ships, and who is to pay.</p></div></div><div class="css-4" data-testid="comments"><p>I think that the quay should never have been let to fall.</p></div></div>`, four, []string{"storm did", "never have been let"}},
		{"names of words in a sentence", `<article><h1>T</h1><p>The <a class="hashtag" href="/t/quay">old quay</a> of <span class="keywords">Demo town</span> was shut for 15<span class="sr-only">unseen words</span> days, as <a class="author" href="/u">the member</a> says.</p>` + paragraphs(4) + `</article>`, append(four, "The old quay of Demo town was shut for 15 days, as the member says."), []string{"unseen"}},
		{"a name at the end of a sentence", `<article><h1>T</h1>` + sentences(4, `<p>%s <span class="credits">Somebody of the Agency</span></p>`) + `</article>`, four, []string{"of the Agency"}},
		{"how characters are read", `<article><h1>T</h1><p><ruby>法律<rp>(</rp><rt>ほうりつ</rt><rp>)</rp></ruby>では<ruby>親<rt>おや</rt></ruby>に権利があると決めています。</p>` + paragraphs(4) + `</article>`, append(four, "法律では親に権利がある"), nil},
		{"paragraphs that are folded", `<article><h1>T</h1><p>At first there was nothing in the hall but chairs.</p>` + sentences(4, `<p class="js-readmore">%s</p>`) + sentences(4, `<p>Then, %s</p>`) + `</article>`, four, nil},
		{"questions that open their answers", `<article><h1>T</h1><button>Print this</button>` + sentences(4, `<h2 class="accordion-header"><button aria-expanded="false" class="collapsed">What was decided then?</button></h2><div class="collapse"><p>%s</p></div>`) + `<div><button>Show more of it</button></div></article>`, append(four, "What was decided then?\nParagraph B"), []string{"Print this", "Show more"}},
		{"what is before the headline", `<title>The harbour decides</title><main><p>Harbour Post, the paper of the three quays since the year of the storm.</p><ul><li>Somebody</li><li>4 minutes</li></ul><h1>The harbour decides</h1>` + paragraphs(4) + `</main>`, four, []string{"Harbour Post", "Somebody", "4 minutes"}},
		{"a text before the headline", `<title>The harbour decides</title><main>` + paragraphs(4) + `<h1>The harbour decides</h1><p>And this is what came after it, as the paper of the harbour has it.</p></main>`, four, nil},
		{"a poem", `<title>The sea</title><main><h1>The sea</h1><p>The sea<br>the stone<br>the quay alone</p><p>The wind<br>the rain<br>the ship again</p></main>`, []string{"The sea the stone the quay alone\nThe wind the rain the ship again"}, nil},

		// Which element has the text.
		{"the article with the headline, before a longer list of others", `<title>The harbour decides</title><article class="a"><h1>The harbour decides</h1>` + sentences(7, `<p>%s</p>`) + `</article><article class="b">` + sentences(20, `<p>Elsewhere it was heard: %s</p>`) + `</article>`, four, []string{"Elsewhere"}},
		{"an article before many opinions of readers", `<article><h1>T</h1>` + sentences(14, `<p>%s</p>`) + `</article><div class="b">` + sentences(26, `<div><p>It seems to me: %s</p></div>`) + `</div>`, four, []string{"It seems to me"}},
		{"a page in a form, its text in something named comment", `<form><main>` + strings.Repeat(`<div class="XyComment">`, 7) + paragraphs(4) + strings.Repeat(`</div>`, 7) + `</main></form>`, four, nil},
		{"a gallery whose texts are named comments", `<main><h1>T</h1><p>These are the quays that our readers liked best in this year, in the order of their votes.</p><div class="gallery">` + sentences(6, `<div class="item"><h3>A quay</h3><div class="item__comment">%s</div></div>`) + `</div></main>`, append(four, "readers liked best"), nil},
		{"slides that are hidden by their name, in something named after advertisements", `<div id="theme-taboola"><h1>T</h1><p>These are the quays that our readers liked best in this year, in the order of their votes, as ever.</p><p>And this is a second paragraph, which has as much to say as the first one had, or more.</p>` + sentences(9, `<div class="slide ssr-hide"><div>%s</div></div>`) + `</div>`, four, nil},
		{"more text next to the element with headline and text", `<title>The harbour decides</title><div class="page"><div class="left"><h1>The harbour decides</h1>` + sentences(6, `<p>%s</p>`) + `</div><div class="right">` + sentences(2, `<div><p>Elsewhere it was heard: %s</p></div>`) + `</div></div>`, four, []string{"Elsewhere"}},
		{"a related list longer than the text", `<div class="entry">` + paragraphs(2) + `<ul class="related_post">` + sentences(6, `<li><a href="/x">A story</a><br><small>Elsewhere it was heard: %s</small></li>`) + `</ul></div>`, four[:2], []string{"Elsewhere"}},
		{"a list of short items as the text", `<div class="a"><ul>` + strings.Repeat(`<li>Two spoons of sugar and one of salt, stirred</li>`, 8) + `</ul></div><div class="b">` + paragraphs(1) + `</div>`, []string{"Two spoons"}, nil},

		// Lines that are no text, and short ones that are.
		{"many short lines first", `<div class="entry-content"><div>Two spoons of sugar</div><div>One of salt</div><div>Four onions</div><div>Some butter</div><div>Half a pound of flour</div><div>Milk</div><div>An egg</div><div>Two apples</div>` + paragraphs(4) + `</div>`, append(four, "Two spoons", "Four onions"), nil},
		{"short paragraphs at both ends", `<div class="entry-content"><p>Crisp outside, soft inside</p>` + paragraphs(4) + `<p>Good luck!</p><p>Yours, Somebody</p></div>`, append(four, "Crisp outside", "Good luck!", "Yours, Somebody"), nil},
		{"credits of pictures", `<div class="entry-content">` + paragraphs(2) + `<p>The quay in the morning. | © Somebody/Agency</p><p>(Foto: Somebody)</p><p>Image: the quay by night, by Somebody</p>` + paragraphs(4) + `<p>A photo: nothing says more. It hangs in the hall.</p></div>`, append(four, "nothing says more"), []string{"Agency", "Foto", "by night"}},
		{"requests to readers at the end", `<div class="entry-content">` + paragraphs(4) + `<p>Get our magazine every month. Click here for more.</p><p>All news in your inbox: sign up for our newsletter, which comes on Fridays.</p></div>`, four, []string{"magazine", "inbox"}},
		{"a request to log in", `<div class="entry-content">` + paragraphs(4) + `<h4>Discuss</h4><p>Please log in, and you can say here what you think of it.</p></div>`, four, []string{"Discuss", "log in"}},
		{"lines that are a time", `<div class="entry-content">` + paragraphs(2) + `<div>3 May 2024, 10:15</div>` + paragraphs(4) + `</div>`, four, []string{"10:15"}},
		{"questions to readers", `<div class="entry-content">` + paragraphs(4) + `<p>Schon gelesen?</p><h4>Weitere Mitteilungen dieses Verbands</h4></div>`, four, []string{"gelesen", "Weitere"}},

		{"a script's end tag with a comment in it", `<script src="/a.js"></script <!-- a plugin --><article>` + paragraphs(4) + `</article><script src="/b.js"></script>`, four, []string{"plugin"}},

		// Text that is shown only by scripts, or only without.
		{"noscript", `<div id="app"></div><noscript><article>` + paragraphs(4) + `</article></noscript>`, four, nil},
		{"noscript of a page with text", `<article>` + paragraphs(4) + `<noscript><p>Please turn on scripts in your browser, because without them this page cannot show you what it has.</p></noscript></article>`, four, []string{"turn on scripts"}},
		{"template", `<x-app><template shadowrootmode="open"><main>` + paragraphs(4) + `</main></template></x-app>`, four, nil},
		{"JSON of an application", `<div id="__next"></div><script id="__NEXT_DATA__" type="application/json">{"props":{"pageProps":{"article":{"title":"T","body":[` + strings.TrimSuffix(sentences(4, `{"type":"text","content":"<p>%s</p>"},`), ",") + `]},"related":[{"title":"x","description":"Another story is told here in some words, and says what it is about."}]}}}</script>`, four, []string{"Another story"}},
		{"a script's state", `<div id="root"></div><script>window.__STATE__ = {"story":{"html":"` + strings.ReplaceAll(strings.ReplaceAll(paragraphs(4), "\n", ""), "<", `\u003c`) + `"}};</script>`, four, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, "<html><body>"+c.body+"</body></html>", article.Rules{}).Body
			for _, w := range c.must {
				assert.Contains(t, got, w)
			}
			for _, w := range c.not {
				assert.NotContains(t, got, w)
			}
		})
	}
}
