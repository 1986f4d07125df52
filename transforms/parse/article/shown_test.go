package article_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// What readers see next to the headline is the article's day; other days of the page are not.
func TestDayNextToTheHeadline(t *testing.T) {
	const (
		utc    = `<meta property="article:published_time" content="2024-05-04T01:49:09Z">`
		clock  = `<div>Tuesday, 8 December 2020</div>` + menu + menu + menu + menu + menu
		h1     = `<h1>A rare fish was found</h1>`
		shared = `<meta property="og:title" content="A rare fish was found">`
	)
	for _, c := range []struct{ name, page, want string }{
		{"today's day above", clock + h1 + `<p>13 October 2020 18:29</p>`, "2020-10-13T18:29:00Z"},
		{"a day in the navigation", menu + `<a href="/x">Grants (until 31.12.2018)</a>` + h1 + `<p>27.01.2022</p>`, "2022-01-27T00:00:00Z"},
		{"before the headline", clock + `<p>27.01.2022</p><p>Nature</p>` + h1, "2022-01-27T00:00:00Z"},
		{"in the headline's element", shared + clock + `<h1><b>27.01.2022</b> A rare fish was found</h1>`, "2022-01-27T00:00:00Z"},
		{"a day that the headline names", `<h1>A rare fish of 11 July 2020</h1><p>12 July 2020</p>`, "2020-07-12T00:00:00Z"},
		{"a headline that is no h1", shared + clock + `<h2>A rare fish was found</h2><p>Published 13 October 2020</p>`, "2020-10-13T00:00:00Z"},
		{"another article's time element", h1 + `<p>27 June 2019</p>` + prose + `<article><time datetime="2019-07-30">30 July</time></article>`, "2019-06-27T00:00:00Z"},
		{"in a comment", clock + h1 + `<div class="comment"><p>9 May 2024</p></div><p>3 May 2024</p>`, "2024-05-03T00:00:00Z"},
		{"after a paragraph", h1 + `<p>` + strings.Repeat("Some words of the text. ", 20) + `</p><p>9 May 2024</p><p>Posted 3 May 2024</p>`, "2024-05-09T00:00:00Z"},
		{"a change", clock + h1 + `<p>Published 3 May 2024</p><p>Akt.: 9 May 2024</p>`, "2024-05-03T00:00:00Z"},
		{"a change before the headline", clock + `<p>3 May 2024</p><p>Akt.: 9 May 2024</p>` + h1, "2024-05-03T00:00:00Z"},
		{"a change some hours ago", clock + h1 + `<p>January 19, 2020 / 12:25 PM / Updated 8 hours ago</p>`, "2020-01-19T12:25:00Z"},

		{"UTC, the evening before", utc + h1 + `<p>3 May 2024</p>`, "2024-05-03T23:49:09-02:00"},
		{"UTC, the morning after", `<meta property="article:published_time" content="2024-05-03T23:00:00Z">` + h1 + `<p>4 May 2024</p>`, "2024-05-04T00:00:00+01:00"},
		{"UTC, a day that no zone has", utc + h1 + `<p>2 May 2024</p>`, "2024-05-04T01:49:09Z"},
		{"an offset", `<meta property="article:published_time" content="2024-05-04T01:49:09+02:00">` + h1 + `<p>3 May 2024</p>`, "2024-05-04T01:49:09+02:00"},

		{"two times for machines", `<meta property="article:published_time" content="2024-05-09T01:49:09Z"><script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2024-05-03T10:00:00Z"}</script>` + h1 + `<p>3 May 2024</p>`, "2024-05-03T10:00:00Z"},
		{"two times for machines, and none of them shown", `<meta property="article:published_time" content="2024-05-09T11:49:09Z"><script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2024-05-03T10:00:00Z"}</script>` + h1 + `<p>1 May 2024</p>`, "2024-05-09T11:49:09Z"},
		{"the page's day is the one shown", `<meta property="article:published_time" content="2024-05-01T11:49:09+02:00"><meta name="date" content="2024-05-03T08:00:00+02:00">` + h1 + `<p>3 May 2024</p>`, "2024-05-03T08:00:00+02:00"},
		{"a page's day", `<meta name="date" content="2021-12-20T11:02:44+01:00">` + h1 + `<p>27.01.2022</p>`, "2022-01-27T00:00:00Z"},

		{"a time element with the time of a change", h1 + `<time datetime="2019-07-03T10:18:46Z">Published 29 June 2019</time>`, "2019-06-29T00:00:00Z"},
		{"a time element whose attribute has the time of a change", `<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2019-06-29T22:00:40Z"}</script>` + h1 + `<time itemprop="datePublished" content="2019-07-03T12:43:39Z">29 June 2019, 22:00</time>`, "2019-06-29T22:00:40Z"},
		{"a time element in UTC", h1 + `<time datetime="2024-05-04T01:18:46Z">3 May 2024</time>`, "2024-05-03T23:18:46-02:00"},
		{"a time element with the month first", h1 + `<time datetime="2024-05-03T01:18:46+02:00">Published 05/03/2024</time>`, "2024-05-03T01:18:46+02:00"},

		{"a short year and a time", `<html lang="de">` + h1 + `<p>Do 25.04.24 | 14:07 Uhr</p>`, "2024-04-25T00:00:00Z"},
		{"a short year and a time, in a time element", `<html lang="de">` + h1 + `<time>25.04.24, 14:07 Uhr</time>`, "2024-04-25T00:00:00Z"},
		{"a time that is both", h1 + `<time class="entry-date updated" datetime="2024-05-03T08:00:00Z">3 May 2024</time>` + menu + `<time class="entry-date published" datetime="2024-05-09T08:00:00Z">9 May 2024</time>`, "2024-05-03T08:00:00Z"},
		{"a space that does not break", h1 + `<p>11.&nbsp;November&nbsp;2021</p>`, "2021-11-11T00:00:00Z"},
		{"the toolbar of a web archive", `<div id="wm-ipp-base"><div>10 Nov 2013</div></div>` + h1 + prose + `<p>4 April 2013</p>`, "2013-04-04T00:00:00Z"},
		{"an archive's address", `<link rel="canonical" href="https://archive.example/web/20140109030403/http://example.org/2013/12/09/fish/">` + h1, "2013-12-09T00:00:00Z"},
	} {
		got := read(t, c.page+prose, article.Rules{}).Published
		assert.Equal(t, c.want, got.Format(time.RFC3339), c.name)
	}
}
