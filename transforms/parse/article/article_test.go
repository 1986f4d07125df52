package article_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

var seoul = time.FixedZone("KST", 9*3600)

const prose = `<p>The first paragraph of the demo article is long enough to count as prose, and ends as sentences do.</p>
<p>A second paragraph of the demo article follows it, which has as much to say as the first one had.</p>`

func read(t *testing.T, page string, r article.Rules) article.Article {
	t.Helper()
	a, err := article.Extract([]byte(page), "text/html; charset=utf-8", r)
	require.NoError(t, err)
	return a
}

// og:title, then the title element without the site's name, then h1.
func TestTitleOrder(t *testing.T) {
	for _, c := range cases.Table[[]struct {
		Name, Head, Body, Want string
		Rules                  article.Rules
	}](t, "title-order.yaml") {
		got := read(t, "<html><head>"+c.Head+"</head><body>"+c.Body+prose+"</body></html>", c.Rules)
		assert.Equal(t, c.Want, got.Title, c.Name)
	}
}

// What readers see counts where another source repeats it; sites' names go, whatever separates them.
func TestTitleAgreement(t *testing.T) {
	for _, c := range cases.Table[[]struct{ Name, Page, Want string }](t, "titles.yaml") {
		assert.Equal(t, c.Want, read(t, c.Page+prose, article.Rules{}).Title, c.Name)
	}
}

// article:published_time, then time elements, then JSON-LD, then visible text.
func TestPublishedOrder(t *testing.T) {
	for _, c := range cases.Table[[]struct {
		Name, Head, Body, Want string
		Seoul                  bool
		Selector               string
	}](t, "published.yaml") {
		rules := article.Rules{Published: c.Selector}
		if c.Seoul {
			rules.Zone = seoul
		}
		got := read(t, "<html><head>"+c.Head+"</head><body>"+c.Body+prose+"</body></html>", rules)
		assert.Equal(t, c.Want, got.Published.UTC().Format(time.RFC3339), c.Name)
	}
}

// A time in UTC has the offset of the same time elsewhere on the page, because the day is the readers'.
func TestPublishedDay(t *testing.T) {
	const meta = `<meta property="article:published_time" content="2024-05-04T01:49:09+00:00">`
	const ld = `<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"%s"}</script>`
	for _, c := range []struct{ name, page, want string }{
		{"an offset", fmt.Sprintf(ld, "2024-05-03T17:49:09-08:00"), "2024-05-03T17:49:09-08:00"},
		{"local time", fmt.Sprintf(ld, "2024-05-03 17:49:09"), "2024-05-03T17:49:09-08:00"},
		{"local time in a time element", fmt.Sprintf(ld, "2024-05-04T01:49:09Z") + `<time datetime="2024-05-03 17:49:09">x</time>`, "2024-05-03T17:49:09-08:00"},
		{"another time", fmt.Sprintf(ld, "2024-05-03 17:49:10"), "2024-05-04T01:49:09Z"},
		{"a day alone", fmt.Sprintf(ld, "2024-05-03"), "2024-05-04T01:49:09Z"},
		{"the address", `<link rel="canonical" href="/2024/05/03/a-headline">`, "2024-05-03T23:49:09-02:00"},
		{"an address of a day that no zone has", `<link rel="canonical" href="/2024/05/02/a-headline">`, "2024-05-04T01:49:09Z"},
	} {
		assert.Equal(t, c.want, read(t, meta+c.page+prose, article.Rules{}).Published.Format(time.RFC3339), c.name)
	}
}

func TestParseTime(t *testing.T) {
	for in, want := range cases.Table[map[string]string](t, "times.yaml") {
		got, ok := article.ParseTime(in, seoul)
		assert.Equal(t, want != "", ok, in)
		if want != "" {
			assert.Equal(t, want, got.UTC().Format(time.RFC3339), in)
		}
	}
}

// A feed names the zone of its times: it is the publisher's own where that has such a name.
func TestZoneNames(t *testing.T) {
	london, err := time.LoadLocation("Europe/London")
	require.NoError(t, err)
	for in, want := range map[string]string{
		"Mon, 23 Nov 2026 10:00:00 EST":     "2026-11-23T15:00:00Z",
		"Thu, 23 Jul 2026 10:00:00 PDT":     "2026-07-23T17:00:00Z",
		"Mon, 23 Nov 2026 10:00:00 CET":     "2026-11-23T09:00:00Z",
		"Mon, 23 Nov 2026 10:00:00 GMT":     "2026-11-23T10:00:00Z",
		"Thu, 23 Jul 2026 10:00:00 GMT":     "2026-07-23T10:00:00Z",
		"Thu, 23 Jul 2026 10:00:00 UTC":     "2026-07-23T10:00:00Z",
		"Thu, 23 Jul 2026 10:00:00 +0000":   "2026-07-23T10:00:00Z",
		"Thu, 23 Jul 2026 10:00:00 BST":     "2026-07-23T09:00:00Z",
		"Thursday, 23-Jul-26 10:00:00 CEST": "2026-07-23T08:00:00Z",
		"Fri May 03 14:24:00 EDT 2024":      "2024-05-03T18:24:00Z",
		"Mon, 23 Nov 2026 10:00:00 XYZ":     "2026-11-23T10:00:00Z",
	} {
		got, ok := article.ParseTime(in, london)
		assert.True(t, ok, in)
		assert.Equal(t, want, got.UTC().Format(time.RFC3339), in)
	}
}

// Days with the month's name, as sites of many languages write them.
func TestMonthNames(t *testing.T) {
	for in, want := range cases.Table[map[string]string](t, "months.yaml") {
		at, ok := article.ParseTime(in, time.UTC)
		if assert.Equal(t, want != "", ok, in) && ok {
			assert.Equal(t, want, at.Format(time.DateOnly), in)
		}
	}
}

// What a time is the time of is said in many languages.
func TestLabelsOfTimes(t *testing.T) {
	for _, pair := range [][2]string{
		{"Bijgewerkt", "Geplaatst"}, {"Uppdaterad", "Publicerad"}, {"Oppdatert", "Publisert"}, {"Päivitetty", "Julkaistu"}, {"Aktualizacja", "Data publikacji"}, {"Aktualizováno", "Publikováno"},
		{"Обновлено", "Опубликовано"}, {"Оновлено", "Опубліковано"}, {"Frissítve", "Megjelent"}, {"Τελευταία ενημέρωση", "Δημοσίευση"}, {"Güncelleme", "Yayınlanma"}, {"Cập nhật", "Ngày đăng"},
		{"עודכן", "פורסם"}, {"آخر تحديث", "نشر في"}, {"Diperbarui", "Diterbitkan"}, {"Última actualización", "Publicado"}, {"Ultimo aggiornamento", "Pubblicato"}, {"Dernière mise à jour", "Publié le"}, {"Zuletzt überarbeitet", "Erstellt am"},
	} {
		for _, shape := range []string{`<p>%s: 2026-11-22 14:00 | %s: 2026-11-20 09:15</p>`, `<div><span>%s</span> <b>2026-11-22</b></div><div><span>%s</span> <b>2026-11-20</b></div>`} {
			got := read(t, fmt.Sprintf("<html><body>"+shape+prose+"</body></html>", pair[0], pair[1]), article.Rules{})
			assert.Equal(t, "2026-11-20", got.Published.Format(time.DateOnly), pair)
		}
	}
}

// Outside East Asia a date of three short numbers does not begin with the year.
func TestShortYear(t *testing.T) {
	at, ok := article.ParseTime("26.11.22 13:05", time.UTC)
	assert.False(t, ok, "%v", at)
	for in, want := range map[string]string{"31.10.23": "2023-10-31", "Klaus Demo, 8.5.12": "2012-05-08", "1.2.34.5": "", "v8.5.12": "", "24 أغسطس 2020": "2020-08-24", "5 września 2021": "2021-09-05", "3. syyskuuta 2022": "2022-09-03", "12 Ağustos 2023": "2023-08-12", "4 Ιουλίου 2022": "2022-07-04"} {
		at, ok := article.ParseTime(in, time.UTC)
		assert.Equal(t, want != "", ok, in)
		if ok {
			assert.Equal(t, want, at.Format(time.DateOnly), in)
		}
	}
	at, ok = article.ParseTime("입력 26.11.22 13:05", time.UTC)
	assert.True(t, ok)
	assert.Equal(t, "2026-11-22T13:05:00Z", at.Format(time.RFC3339))
}

// Of several visible times the publication's counts, in any order and with any
// markup.
func TestVisibleTimes(t *testing.T) {
	for _, body := range []string{
		`<p>수정 2026.11.22 14:00 입력 2026.11.22 09:15</p>`,
		`<p>입력 2026.11.22 09:15 | 수정 2026.11.22 14:00</p>`,
		`<p>입력 2026-11-22 오전 9:15 수정 2026-11-22 오후 2:00</p>`,
		`<p>2026.11.22 14:00 수정 | 2026.11.22 09:15 입력</p>`,
		`<span>최종수정 2026.11.22 14:00</span><span>기사입력 2026.11.22 09:15</span>`,
		`<dl><dt>수정</dt><dd>2026.11.22. 14:00</dd><dt>입력</dt><dd>2026.11.22. 09:15</dd></dl>`,
		`<ul><li><em>업데이트</em> 2026.11.22 14:00</li><li>2026.11.22 09:15</li></ul>`,
		`<p>Updated: 2026-11-22 14:00</p><p>Published: 2026-11-22 09:15</p>`,
		`<article><p>수정 <time datetime="2026-11-22T14:00:00+09:00">2시간 전</time></p><p>입력 <time datetime="2026-11-22T09:15:00+09:00">오늘</time></p></article>`,
		`<article><time class="date-modified">2026-11-22 14:00</time><time>2026-11-22 09:15</time></article>`,
		`<p>2026년 11월 22일 오전 9시 15분</p>`,
	} {
		got := read(t, "<html><body>"+body+prose+"</body></html>", article.Rules{Zone: seoul})
		assert.Equal(t, "2026-11-22T09:15:00+09:00", got.Published.In(seoul).Format(time.RFC3339), body)
	}
	got := read(t, `<body><p>수정 2026.11.22 14:00</p>`+prose+prose+prose+prose+prose+prose+prose+`<p>입력 2020.01.02 03:04</p></body>`, article.Rules{Zone: seoul})
	assert.Equal(t, "2026-11-22T14:00:00+09:00", got.Published.In(seoul).Format(time.RFC3339), "a modification's, rather than what stands far from it")
	got = read(t, `<div class=d>수정 2026.11.22 14:00 / 입력 2026.11.22 09:15</div>`+prose, article.Rules{Zone: seoul, Published: ".d"})
	assert.Equal(t, "2026-11-22T09:15:00+09:00", got.Published.In(seoul).Format(time.RFC3339), "a publisher's selector")
}

// Lines of advertisements, reporters and copyright are removed; sentences about them
// are kept.
func TestCleaning(t *testing.T) {
	lines := cases.Table[[]struct {
		Text string
		Kept bool
	}](t, "cleaning.yaml")
	var page, want []string
	for _, l := range lines {
		page = append(page, "<p>"+l.Text+"</p>")
		if l.Kept {
			want = append(want, l.Text)
		}
	}
	got := read(t, `<html><body><article>`+strings.Join(page, "\n")+`</article></body></html>`, article.Rules{})
	assert.Equal(t, want, strings.Split(got.Body, "\n"))

	got = read(t, `<html><body><article><p>한국은행은 3일 기준금리를 동결했다고 밝혔다. 시장은 이를 예상하고 있었다. 홍길동 기자 gildong@mk.example</p></article></body></html>`, article.Rules{})
	assert.Equal(t, "한국은행은 3일 기준금리를 동결했다고 밝혔다. 시장은 이를 예상하고 있었다.", got.Body, "an address at a paragraph's end")
}

func TestBody(t *testing.T) {
	for _, c := range cases.Table[[]struct {
		Name, Page, Want string
		Rules            article.Rules
	}](t, "bodies.yaml") {
		got := read(t, "<html><body>"+c.Page+"</body></html>", c.Rules)
		assert.Equal(t, c.Want, got.Body, c.Name)
	}
}

// Space that only tags separate is one node of the tree, and still separates words.
func TestSpaceBetweenTags(t *testing.T) {
	p, err := article.Parse([]byte("<body> <div>\n <div>\n\t<b>one</b> <i> <u>two</u></i> <!-- x --> <svg> </svg>\n</div>\n</div>\n<p>three <em> </em> four</p> five <script></script>six</body>"), "")
	require.NoError(t, err)
	var texts []string
	for n := range p.Root.Descendants() {
		if n.Type == html.TextNode {
			texts = append(texts, n.Data)
		}
	}
	assert.Equal(t, []string{" ", "one", " ", "two", " ", "three ", " four", " five six"}, texts)
	assert.Equal(t, "one two three four five six", article.Text(p.Root))
}

func TestMetadata(t *testing.T) {
	got := read(t, `<html lang="ko"><head><link rel=stylesheet href=/a.css><LINK REL="CANONICAL" HREF="https://demo.example/a/1"><meta property="article:section" content="경제">
		<script type="application/ld+json">{"@type":"NewsArticle","author":[{"@type":"Person","name":"홍길동"},{"name":"홍길동"},{"name":"임꺽정"}],"dateModified":"2024-05-03T15:00:00+09:00"}</script></head><body></body></html>`, article.Rules{})
	assert.Equal(t, "ko", got.Language)
	assert.Equal(t, "https://demo.example/a/1", got.Canonical)
	assert.Equal(t, "경제", got.Section)
	assert.Equal(t, []string{"홍길동", "임꺽정"}, got.Authors)
	assert.Equal(t, "2024-05-03T06:00:00Z", got.Modified.UTC().Format(time.RFC3339))
}

// Paywalled comes from the page's markup; a note that asks to subscribe is not an
// article.
func TestPaywalled(t *testing.T) {
	for said, want := range map[string]bool{
		`{"@type":"NewsArticle","isAccessibleForFree":false}`:                                                                 true,
		`{"@type":"NewsArticle","isAccessibleForFree":"False"}`:                                                               true,
		`{"@type":"NewsArticle","isAccessibleForFree":"http://schema.org/False"}`:                                             true,
		`{"@type":"WebPage","isAccessibleForFree":false}`:                                                                     true,
		`[{"@type":"WebPage","isAccessibleForFree":false},{"@type":"NewsArticle","isAccessibleForFree":"true"}]`:              false,
		`{"@type":"NewsArticle","isAccessibleForFree":true,"hasPart":{"@type":"WebPageElement","isAccessibleForFree":false}}`: false,
		`{"@type":"NewsArticle","isAccessibleForFree":"sometimes"}`:                                                           false,
		`{"@type":"NewsArticle"}`:                       false,
		`{"@type":"Event","isAccessibleForFree":false}`: false,
	} {
		got := read(t, `<script type="application/ld+json">`+said+`</script><article>`+prose+`</article>`, article.Rules{})
		assert.Equal(t, want, got.Paywalled, said)
	}
	assert.True(t, read(t, `<meta property="article:content_tier" content="locked">`+prose, article.Rules{}).Paywalled)
	assert.False(t, read(t, `<meta property="article:content_tier" content="metered">`+prose, article.Rules{}).Paywalled)
}

func TestRulesAreChecked(t *testing.T) {
	for _, r := range []article.Rules{{Title: "h1["}, {Body: ">>"}, {Published: "a:nope"}, {Remove: []string{"p)"}}, {Drop: []string{"("}}} {
		_, err := r.Compile()
		assert.Error(t, err, "%+v", r)
	}
}

// Unclosed or deeply nested elements and text that is not HTML are read quickly and
// without a panic.
func FuzzExtract(f *testing.F) {
	f.Add([]byte(`<script type="application/ld+json">{"@type":"NewsArticle"`))
	f.Add([]byte(`<article><p>` + prose + `<!-- <script></article>`))
	f.Add([]byte("\xff\xfe<\x00p\x00>\x00"))
	f.Add([]byte(`<meta charset=euc-kr><title>` + "\xb0\xa1" + `</title><time datetime="2024-05-03">`))
	f.Add([]byte(`<article><p>` + prose + `<a href=x>one <x-y>two</x-y> three</a><ul><li><a href=x>four<div>five</div></a></ul></article>`))
	f.Fuzz(extract)
}

// pieces are parts of pages: tags of every kind that the reader distinguishes, and
// text of several lengths.
var pieces = strings.Split(`<a href=x>|</a>|<x-y>|</x-y>|<p>|</p>|<div>|</div>|<span>|</span>|<br>|<li>|</li>|<ul>|</ul>|<table>|<tr>|<td>|</td>|</table>|<h2>|</h2>|<article>|</article>|<main>|`+
	`<section class="related-news">|</section>|<div class="article-body">|<div id="content" itemprop="articleBody">|<time datetime="2024-05-03">|</time>|<blockquote>|<address>|</address>|<details>|<center>|<dl>|<dt>|<dd>|`+
	`<svg>|<math>|<mi>|<foreignObject>|<template>|<select>|<form>|<button>|<script>|</script>|<!--|-->|<title>|</title>|<meta property="og:description" content="A word. ">|<plaintext>|<b>|<i>|</b>|<frameset>|`+
	`A word. | 금리 동결했다. |수정 |입력 |Updated: |2026.11.22 09:15|26.11.22 13:05 |2026년 11월 22일 오후 1시 5분|<dd class="date-modified">|The first paragraph of the demo article is long enough to count as prose, and ends as sentences do.|&nbsp;|`+"\v|\x00|\n", "|")

// Text has single spaces, however the space was written.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", " ", "a", "a b", "a  b", " a ", "a\tb", "a\u00a0b", "한글 한글", "한글  a", "a\u3000", "a\x1fb", "\xff \xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := &html.Node{Type: html.ElementNode, Data: "p"}
		n.AppendChild(&html.Node{Type: html.TextNode, Data: s})
		if got, want := article.Text(n), strings.Join(strings.Fields(s), " "); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	})
}

// Pages are made of pieces in any order, because mutated text alone hardly ever has
// a tag.
func FuzzPieces(f *testing.F) {
	f.Add([]byte("\x00\x02\x03\x01"))
	f.Add([]byte("\x16\x04\x39\x05\x04\x00\x38\x01\x39\x05\x17"))
	f.Add([]byte("\x1b\x39\x09\x0c\x00\x38\x0d\x07"))
	f.Fuzz(func(t *testing.T, order []byte) {
		var page strings.Builder
		for _, i := range order {
			page.WriteString(pieces[int(i)%len(pieces)])
		}
		extract(t, []byte(page.String()))
	})
}

// extract reads a page with the default rules and with a publisher's.
func extract(t *testing.T, page []byte) {
	for _, rules := range []article.Rules{{Zone: seoul}, {Zone: seoul, Body: "div, x-y", Title: "h2", Published: "time, li", Remove: []string{"td", "b"}}} {
		a, err := article.Extract(page, "", rules)
		if err != nil {
			return
		}
		for l := range strings.SplitSeq(a.Body, "\n") {
			if l != strings.TrimSpace(l) || l == "" && a.Body != "" {
				t.Fatalf("a line of %q is not trimmed", a.Body)
			}
		}
	}
}

// The time for extreme nesting is proportional to the length of the page.
func TestHostilePages(t *testing.T) {
	for name, page := range map[string]string{
		"spans in spans":  strings.Repeat(strings.Repeat("<span>", 400)+"x"+strings.Repeat("</span>", 400), 800),
		"lists in lists":  strings.Repeat(strings.Repeat("<ul><li>", 150)+"<a href=x>x</a>"+strings.Repeat("</ul>", 150), 600),
		"open scripts":    strings.Repeat("<script>", 100_000),
		"open comments":   strings.Repeat("<!--", 200_000),
		"line breaks":     strings.Repeat("<br> ", 200_000),
		"divs with names": strings.Repeat(`<div class="related-news share comments">x`, 450) + strings.Repeat("y ", 100_000),
	} {
		begin := time.Now()
		_, err := article.Extract([]byte(page), "text/html; charset=utf-8", article.Rules{})
		if err != nil {
			require.ErrorIs(t, err, article.ErrTooDeep, name)
		}
		t.Logf("%s: %d kB in %v", name, len(page)>>10, time.Since(begin))
		assert.Less(t, time.Since(begin), 30*time.Second, name)
	}
}

func FuzzParseTime(f *testing.F) {
	f.Add("2024-05-03T14:24:11+09:00")
	f.Add("입력 2024.5.3 오전 12:05")
	f.Add("30 février 2024 25:61")
	f.Fuzz(func(t *testing.T, s string) {
		if at, ok := article.ParseTime(s, seoul); ok && (at.Year() < 1979 || at.Year() > 2100) {
			t.Fatalf("%q is %v", s, at)
		}
	})
}

// A page that describes its article by microdata or with mistakes in its JSON-LD is read as one without mistakes.
func TestStructuredData(t *testing.T) {
	for name, head := range map[string]string{
		"comma too many":     `<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2026-11-22","author":[{"name":"A B",},],}</script>`,
		"quotes in a string": `<script type="application/ld+json">{"@type":"NewsArticle","headline":"The "best" of all","datePublished":"2026-11-22","author":"A B"}</script>`,
		"microdata":          `<body><div itemscope itemtype="https://schema.org/NewsArticle"><meta itemprop="datePublished" content="2026-11-22"><i itemprop="author" itemscope><b itemprop="name">A B</b></i></div>`,
	} {
		a := read(t, head+"<title>T</title>"+prose, article.Rules{})
		assert.Equal(t, "2026-11-22", a.Published.Format(time.DateOnly), name)
		assert.Equal(t, []string{"A B"}, a.Authors, name)
	}
}

// The language is what the page declares, else what its text is written in.
func TestLanguage(t *testing.T) {
	for page, want := range map[string]string{
		`<html lang="en-GB"><body>` + prose:      "en-GB",
		`<body>` + prose:                         "en",
		`<html lang="de"><body>` + prose + prose: "en",
		`<body><script type="application/ld+json">{"@type":"NewsArticle","inLanguage":"en-AU"}</script>` + prose: "en-AU",
		`<body><p>x</p>`: "",
	} {
		assert.Equal(t, want, read(t, page, article.Rules{}).Language, page)
	}
}

// A day in the page's address is the last resort, before a modification's time.
func TestDayInAddress(t *testing.T) {
	for path, want := range map[string]string{
		"/2024/05/03/a-headline": "2024-05-03", "/news/2024-5-3-headline": "2024-05-03", "/view/20240503/1": "2024-05-03", "/a_20240503_b.html": "2024-05-03", "/2024/5/3/a-headline": "2024-05-03", "/2024/5/3": "2024-05-03", "/2024/05/03-a-headline": "2024-05-03",
		"/2024/13/41/x": "", "/1202405031": "", "/id/20249999": "", "/2024/may/x": "", "/2024/05/3-questions": "",
	} {
		head := `<link rel="canonical" href="https://example.org` + path + `"><meta property="article:modified_time" content="2024-06-01T00:00:00Z">`
		got := read(t, head+prose, article.Rules{}).Published.Format(time.DateOnly)
		assert.Equal(t, cmp.Or(want, "2024-06-01"), got, path)
		got = read(t, head+`<p>2 May 2024</p>`+prose, article.Rules{}).Published.Format(time.DateOnly)
		assert.Equal(t, "2024-05-02", got, path)
	}
}
