package newssim

import (
	"fmt"
	"strings"
	"time"
)

// mkPage has the shape of mk.co.kr: og:title, a time in a list, the text's parts
// between advertisements, a reporter's address and a copyright line at the end.
func mkPage(s *Site, n int) string {
	body, date := "news_cnt_detail_wrap", `<div class="time_area"><dl class="registration"><dt>입력 :</dt><dd>`+s.published(n).Format("2006-01-02 15:04:05")+`</dd></dl></div>`
	if s.broken {
		body, date = "v2", ""
	}
	return `<!doctype html><html lang="ko"><head><meta charset="euc-kr"><title>` + s.title(n) + ` - 매일경제</title>
<meta property="og:title" content="` + s.title(n) + ` - 매일경제"><meta property="og:site_name" content="매일경제">
<link rel="canonical" href="https://` + MK + s.Path(n) + `"></head><body>
<header><nav><a href="/">매일경제</a> <a href="/economy/">경제</a></nav></header>
<div class="contents"><h2 class="news_ttl">` + s.title(n) + `</h2>` + date + `
<div class="` + body + `" itemprop="articleBody"><div class="thumb_area"><img src="/a.jpg"><em>사진 설명</em></div>
<p>` + s.paragraphs(n)[0] + `</p><div class="ad_wrap">광고</div><p>` + s.paragraphs(n)[1] + `</p><p>[광고]</p><p>` + s.paragraphs(n)[2] + `</p>
<p>[홍길동 기자 demo@mk.example]</p><p>[ⓒ 매일경제 &amp; mk.co.kr, 무단 전재, 재배포 및 AI학습 이용 금지]</p></div>
<div class="relation_news"><h3>관련기사</h3><ul><li><a href="/news/economy/202001010001">다른 데모 기사</a></li></ul></div></div>
<footer>매일경제 데모 자료</footer></body></html>`
}

// hankyungPage has the shape of hankyung.com: text with line breaks in one
// element, the time in meta.
func hankyungPage(s *Site, n int) string {
	body, date := `id="articletxt" class="article-body"`, `<meta property="article:published_time" content="`+s.published(n).Format("2006-01-02T15:04:05")+kst+`">`
	if s.broken {
		body, date = `class="v2"`, ""
	}
	return `<!doctype html><html lang="ko"><head><meta charset="utf-8"><title>` + s.title(n) + ` | 한국경제</title><meta property="og:title" content="` + s.title(n) + `">` + date + `
<meta property="og:site_name" content="한국경제"></head><body><div id="header"><ul><li><a href="/economy">경제</a></li></ul></div>
<h1 class="headline">` + s.title(n) + `</h1><div ` + body + `><figure class="article-figure"><img src="/a.jpg"><figcaption>사진=데모</figcaption></figure>
` + strings.Join(s.paragraphs(n), "<br><br>\n") + `<br><br>임꺽정 기자 demo@hankyung.example</div>
<div class="copyright">ⓒ 한경닷컴, 무단전재 및 재배포 금지</div></body></html>`
}

// economyPage has all metadata in JSON-LD and Open Graph.
func economyPage(s *Site, n int) string {
	ld := fmt.Sprintf(`<script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":"WebPage","name":"x"},{"@type":"NewsArticle","headline":"%s","datePublished":"%s","dateModified":"%s","image":"/img/%d.gif","author":[{"@type":"Person","name":"홍길동"}]}]}</script>`,
		s.title(n), s.published(n).Format(time.RFC3339), s.modified(n).Format(time.RFC3339), n)
	if s.broken {
		ld = ""
	}
	return `<!doctype html><html lang="ko"><head><meta charset="utf-8"><meta property="og:title" content="` + s.title(n) + `">` + ld + `</head><body>
<nav><a href="/">데모 경제</a></nav><main><article><h1>` + s.title(n) + `</h1><p>` + strings.Join(s.paragraphs(n), "</p>\n<p>") + `</p><p>저작권자 ⓒ 데모 경제, 무단전재 및 재배포 금지</p></article></main></body></html>`
}

// localPage has no metadata: only the title element, a date that
// readers see, blocks of text.
func localPage(s *Site, n int) string {
	date := `<span>승인 ` + s.published(n).Format("2006.01.02 15:04") + `</span>`
	if s.broken {
		date = ""
	}
	return `<html><head><meta charset="utf-8"><title>` + s.title(n) + ` - 데모 지역신문</title></head><body><table width="100%"><tr><td><a href="/">처음으로</a> <a href="/list.php">목록</a></td></tr></table>
<div><b>` + s.title(n) + `</b></div><div>` + date + `</div><div class="user-content"><p>` + strings.Join(s.paragraphs(n), "</p><p>") + `</p><p>임꺽정 기자</p></div></body></html>`
}
