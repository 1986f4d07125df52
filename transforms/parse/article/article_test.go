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

const proseText = "The first paragraph of the demo article is long enough to count as prose, and ends as sentences do.\n" +
	"A second paragraph of the demo article follows it, which has as much to say as the first one had."

func read(t *testing.T, page string, r article.Rules) article.Article {
	t.Helper()
	a, err := article.Extract([]byte(page), "text/html; charset=utf-8", r)
	require.NoError(t, err)
	return a
}

// og:title, then the title element without the site's name, then h1.
func TestTitleOrder(t *testing.T) {
	for _, c := range []struct {
		name, head, body, want string
		rules                  article.Rules
	}{
		{"og:title is first", `<meta property="og:title" content="From OG"><title>From title | Demo Daily</title>`, `<h1>From h1</h1>`, "From OG", article.Rules{}},
		{"og:title loses the site's name too", `<meta property="og:title" content="A headline - 매일경제"><meta property="og:site_name" content="매일경제">`, ``, "A headline", article.Rules{}},
		{"title without the site's name", `<title>A headline of the day | Demo Daily</title>`, `<h1>Other words</h1>`, "A headline of the day", article.Rules{}},
		{"the publisher's name", `<title>Up - down - Demo Daily of Some Long Named Place</title>`, ``, "Up - down", article.Rules{Site: "Demo Daily of Some Long Named Place"}},
		{"a dash of the headline's own stays", `<title>Up - and a rather long way down again - Demo</title>`, `<h1>Up - and a rather long way down again</h1>`, "Up - and a rather long way down again", article.Rules{}},
		{"h1", ``, `<h1> From <b>h1</b></h1>`, "From h1", article.Rules{}},
		{"the publisher's selector", `<meta property="og:title" content="From OG">`, `<h2 class="t">Own</h2>`, "Own", article.Rules{Title: "h2.t"}},
	} {
		got := read(t, "<html><head>"+c.head+"</head><body>"+c.body+prose+"</body></html>", c.rules)
		assert.Equal(t, c.want, got.Title, c.name)
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
	const ld = `<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2024-05-03T03:00:00+09:00"}</script>`
	for _, c := range []struct {
		name, head, body, want string
		rules                  article.Rules
	}{
		{"meta is first", `<meta property="article:published_time" content="2024-05-01T10:00:00+09:00">` + ld, `<article><time datetime="2024-05-02T10:00:00Z">x</time></article>`, "2024-05-01T01:00:00Z", article.Rules{}},
		{"a time element that says it is the publication's", ld, `<time itemprop="datePublished" datetime="2024-05-02T10:00:00Z">x</time>`, "2024-05-02T10:00:00Z", article.Rules{}},
		{"JSON-LD, where the time element may be another's", ld, `<article><time datetime="2020-05-02T10:00:00Z">x</time></article>`, "2024-05-02T18:00:00Z", article.Rules{}},
		{"a time element in the article", ``, `<article><time datetime="2024-05-02 10:00">x</time></article>`, "2024-05-02T01:00:00Z", article.Rules{Zone: seoul}},
		{"visible text, in the publisher's zone", ``, `<div class="info">입력 : 2024.05.03 오후 2:24</div>`, "2024-05-03T05:24:00Z", article.Rules{Zone: seoul}},
		{"an embedded post's time is not the article's", ``, `<article><blockquote>A post of <time datetime="2020-05-02T10:00:00Z">May</time></blockquote></article><p>3 May 2024</p>`, "2024-05-03T00:00:00Z", article.Rules{}},
		{"a reader's time is not the article's", ``, `<main><div class="comment-list"><time datetime="2024-06-02T10:00:00Z">x</time></div></main><p>3 May 2024</p>`, "2024-05-03T00:00:00Z", article.Rules{}},
		{"a script's data", ``, `<script>window.page = {"id": 7, "published_at":"2024-05-03T10:00:00Z", "text": "` + strings.Repeat("x", 300) + `"}</script>`, "2024-05-03T10:00:00Z", article.Rules{}},
		{"a comment's mark", `<meta name="date" content="2024-05-03T10:00:00Z">`, `<div itemscope itemtype="https://schema.org/Comment"><b itemprop="datePublished" content="2024-06-02T10:00:00Z">x</b></div>`, "2024-05-03T10:00:00Z", article.Rules{}},
		{"a reader's day is not the article's", ``, `<div class="comments"><p>2 June 2024</p></div><p>3 May 2024</p>`, "2024-05-03T00:00:00Z", article.Rules{}},
		{"a picture's day is not the article's", ``, `<figure><figcaption>The harbour, 2 June 2014</figcaption></figure><p>3 May 2024</p>`, "2024-05-03T00:00:00Z", article.Rules{}},
		{"a day that the headline names", `<title>The fish of 2 June 2024</title>`, `<h3>The fish of 2 June 2024</h3><p>3 May 2024</p>`, "2024-05-03T00:00:00Z", article.Rules{}},
		{"a headline that is a day", `<title>The fish of 2 June 2024</title>`, `<h3>The fish of 2 June 2024</h3><p>2 June 2024</p><p>3 June 2024</p>`, "2024-06-02T00:00:00Z", article.Rules{}},
		{"a reader's day, where there is no other", ``, `<div class="comments"><p>2 June 2024</p></div>`, "2024-06-02T00:00:00Z", article.Rules{}},
		{"a time that readers see when they point at it", ``, `<div class="post"><span class="updated" title="2024-05-03T10:00:00+00:00"></span></div>`, "2024-05-03T10:00:00Z", article.Rules{}},
		{"none", ``, ``, "0001-01-01T00:00:00Z", article.Rules{}},
		{"the publisher's selector", `<meta property="article:published_time" content="2024-05-01T10:00:00Z">`, `<b class="d">2024-06-07 08:09:10</b>`, "2024-06-06T23:09:10Z", article.Rules{Published: "b.d", Zone: seoul}},
	} {
		got := read(t, "<html><head>"+c.head+"</head><body>"+c.body+prose+"</body></html>", c.rules)
		assert.Equal(t, c.want, got.Published.UTC().Format(time.RFC3339), c.name)
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
	for in, want := range map[string]string{
		"1er mai 2024": "2024-05-01", "1° maggio 2024": "2024-05-01", "1η Μαΐου 2024": "2024-05-01", "9:e maj 2024": "2024-05-09",
		"12th of May 2024": "2024-05-12", "12-May-2024 10:30": "2024-05-12", "9 d’abril de 2024": "2024-04-09", "5 de mayo del 2024": "2024-05-05",
		"úterý 9. ledna 2024": "2024-01-09", "3. června 2024": "2024-06-03", "3. července 2024": "2024-07-03", "12. listopadu 2024": "2024-11-12",
		"28. lipnja 2024.": "2024-06-28", "4. srpnja 2024.": "2024-07-04", "12. listopada 2024.": "2024-10-12", "12 listopada 2024": "2024-11-12",
		"14. фебруар 2024.": "2024-02-14", "19. avgust 2024": "2024-08-19", "9 студзеня 2024 г.": "2024-01-09", "17. maí 2024": "2024-05-17", "28. juuni 2024": "2024-06-28",
		"2024. január 9., kedd": "2024-01-09", "2024. máj. 9. 10:30": "2024-05-09", "2024. gada 9. janvāris": "2024-01-09", "2024 m. sausio 9 d., antradienis": "2024-01-09",
		"9 қаңтар 2024": "2024-01-09", "2024 ж. 9 қаңтар": "2024-01-09", "9-yanvar, 2024": "2024-01-09", "9 yanvar 2024": "2024-01-09", "09 հունվարի, 2024 թ.": "2024-01-09", "9 იანვარი, 2024": "2024-01-09",
		"יום שלישי, 9 בינואר 2024": "2024-01-09", "٩ يناير ٢٠٢٤": "2024-01-09", "9 كانون الثاني 2024": "2024-01-09", "09\u200f/01\u200f/2024": "2024-01-09", "9 ژانویه 2024": "2024-01-09", "9 جنوری، 2024": "2024-01-09",
		"9 जनवरी 2024": "2024-01-09", "১২ মে, ২০২৪": "2024-05-12", "9 ஜனவரி, 2024": "2024-01-09", "ಜನವರಿ 9, 2024": "2024-01-09", "9 జనవరి, 2024": "2024-01-09",
		"9 มกราคม 2567": "2024-01-09", "9 ม.ค. 2567": "2024-01-09", "25 มี.ค. ค.ศ. 2024": "2024-03-25", "9 January 2567": "",
		"Thứ Ba, 9 tháng 1, 2024": "2024-01-09", "ngày 9 tháng 12 năm 2024": "2024-12-09", "Pebrero 14, 2024": "2024-02-14", "２０２４年５月３日": "2024-05-03",
		"Nr. 10 students 2024, 3 May 2024": "2024-05-03", "10 projects 2024": "", "10 students 2024": "", "2024 by 10 May 12": "",
	} {
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
	lines := []struct {
		text string
		kept bool
	}{
		{"한국은행은 3일 기준금리를 동결했다고 밝혔다. 시장은 이를 예상하고 있었다는 반응이다.", true},
		{"광고", false},
		{"[광고]", false},
		{"ADVERTISEMENT", false},
		{"정부는 광고 시장을 키우는 대책을 내놓았다.", true},
		{"홍길동 기자 gildong@mk.example", false},
		{"[홍길동 기자]", false},
		{"/뉴욕=홍길동 특파원", false},
		{"(서울=연합뉴스) 홍길동 기자 = 한국은행이 3일 기준금리를 동결했다고 밝혔다.", true},
		{"gildong@mk.example", false},
		{"[ⓒ 매일경제 & mk.co.kr, 무단 전재, 재배포 및 AI학습 이용 금지]", false},
		{"저작권자 ⓒ 데모신문, 무단전재 및 재배포 금지", false},
		{"Copyright © 2024 Demo Daily. All rights reserved.", false},
		{"국회는 저작권법 개정안을 통과시켰다.", true},
		{"[사진=연합뉴스]", false},
		{"▶ 네이버에서 데모신문 구독하기", false},
		{"The bank said on Friday that it would keep its rate where it is for now.", true},
	}
	var page, want []string
	for _, l := range lines {
		page = append(page, "<p>"+l.text+"</p>")
		if l.kept {
			want = append(want, l.text)
		}
	}
	got := read(t, `<html><body><article>`+strings.Join(page, "\n")+`</article></body></html>`, article.Rules{})
	assert.Equal(t, want, strings.Split(got.Body, "\n"))

	got = read(t, `<html><body><article><p>한국은행은 3일 기준금리를 동결했다고 밝혔다. 시장은 이를 예상하고 있었다. 홍길동 기자 gildong@mk.example</p></article></body></html>`, article.Rules{})
	assert.Equal(t, "한국은행은 3일 기준금리를 동결했다고 밝혔다. 시장은 이를 예상하고 있었다.", got.Body, "an address at a paragraph's end")
}

func TestBody(t *testing.T) {
	for _, c := range []struct {
		name, page, want string
		rules            article.Rules
	}{
		{"article", `<nav><p>A menu that is long enough to count as prose if menus were ever prose at all.</p></nav><article><h1>T</h1>` + prose + `</article>`, proseText, article.Rules{}},
		{"the publisher's selector before all", `<article>` + prose + `</article><div id="own">한 줄<br><br>두 줄</div>`, "한 줄\n두 줄", article.Rules{Body: "#own"}},
		{"an empty selector falls back", `<article>` + prose + `</article>`, proseText, article.Rules{Body: "#gone"}},
		{"what is removed", `<div id="own"><p>한 줄</p><p class="x">버릴 줄</p></div>`, "한 줄", article.Rules{Body: "#own", Remove: []string{".x"}}},
		{"what a line's expression drops", `<div id="own"><p>한 줄</p><p>데모 특집 보기</p></div>`, "한 줄", article.Rules{Body: "#own", Drop: []string{"^데모 특집"}}},
		{"cards and comments are left out", `<div><h1>T</h1>` + prose + `<div class="related-news"><p>Another story altogether that has nothing to do with the one above, in a whole sentence.</p></div>
			<div id="comments"><p>I have read better articles than this one, says a reader who writes in sentences.</p></div></div>`, proseText, article.Rules{}},
		{"scripts are no text, though they hold tags", `<article>` + prose + `<script>document.write("<p>no</p>")</script><style>p{}</style><!-- <p>no</p> --></article>`, proseText, article.Rules{}},
		{"a picture's text with a > in it ends at its quotes", `<article><p>Before it <img src=a alt="if a > b, <b>then</b>" class="x">after it, in one sentence that is as long as prose has to be.</p></article>`,
			"Before it after it, in one sentence that is as long as prose has to be.", article.Rules{}},
		{"JSON-LD, where scripts fill the page", `<script type="application/ld+json">{"@graph":[{"@type":["NewsArticle"],"articleBody":"` + strings.ReplaceAll(proseText, "\n", `\n`) + `"}]}</script><div id="app"></div>`, proseText, article.Rules{}},
		{"JSON-LD with tags", `<script type="application/ld+json">{"@type":"NewsArticle","articleBody":"` + strings.ReplaceAll(prose, "\n", "") + `"}</script><div id="app"></div>`, proseText, article.Rules{}},
		{"a text for who has no scripts", `<div id="app"></div><noscript>` + prose + `<p>The third paragraph says, at some length, where the old report is to be found and who wrote it.</p></noscript>`,
			proseText + "\nThe third paragraph says, at some length, where the old report is to be found and who wrote it.", article.Rules{}},
		{"a link that holds a custom element", `<article>` + prose + `<p>The third says where <a href=x>the <x-y>old</x-y> report</a> is to be found, and who wrote it last year.</p></article>`,
			proseText + "\nThe third says where the old report is to be found, and who wrote it last year.", article.Rules{}},
		{"a line of links within a custom element", `<article>` + prose + `<p><a href=x><x-y>Another headline of another article</x-y> and its section</a></p></article>`, proseText, article.Rules{}},
		{"nothing", `<div></div>`, "", article.Rules{}},
	} {
		got := read(t, "<html><body>"+c.page+"</body></html>", c.rules)
		assert.Equal(t, c.want, got.Body, c.name)
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
