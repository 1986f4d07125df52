package article_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// Bylines as themes, content systems and newspapers write them.
func TestBylines(t *testing.T) {
	ada, two := []string{"Ada North"}, []string{"Ada North", "Bob South"}
	ld := func(author string) string {
		return `<script type="application/ld+json">{"@type":"NewsArticle","headline":"The harbour decides","author":` + author + `,"publisher":{"@type":"Organization","name":"Harbour Post"}}</script>`
	}
	const cards = `<div class="related"><h3>Related</h3><div class="card"><h4><a href="/x">Another story</a></h4><span class="author">Dan East</span></div></div><ol class="comments"><li><span class="comment-author vcard"><cite class="fn">Eve Reader</cite></span><p>I agree.</p></li></ol>`
	for _, c := range []struct {
		name, before, after, end string
		want                     []string
	}{
		{"WordPress", "", `<ul class="post-meta"><li class="post-author meta-wrapper"><span class="screen-reader-text">Post author</span><span class="meta-text">By <a href="/author/ada/">Ada North</a></span></li><li class="post-date">3 May 2024</li></ul>`, "", ada},
		{"WordPress, an account", "", `<span class="byline"> by <span class="author vcard"><a class="url fn n" href="/author/admin/">admin</a></span></span>`, "", nil},
		{"WordPress, comments and cards only", "", "", "", nil},
		{"WordPress blocks", "", `<div class="wp-block-post-author"><div class="wp-block-post-author__avatar"></div><div class="wp-block-post-author__content"><p class="wp-block-post-author__name">Ada North</p><p class="wp-block-post-author__bio">Ada North writes on the sea.</p></div></div>`, "", ada},
		{"co-authors", "", `<p class="byline">By <a href="/author/ada/" rel="author">Ada North</a> and <a href="/author/bob/" rel="author">Bob South</a></p>`, "", two},
		{"Ghost", "", `<section class="article-byline-content"><div class="article-byline-meta"><h4 class="author-name"><a href="/author/ada/">Ada North</a>, <a href="/author/bob/">Bob South</a></h4><div class="byline-meta-content"><time class="byline-meta-date">3 May</time></div></div></section>`, "", two},
		{"Drupal", "", `<div class="node__submitted">Submitted by <span class="field field--name-uid"><a title="View user profile." href="/user/7" class="username">Ada North</a></span> on Fri, 05/03/2024 - 10:15</div>`, "", ada},
		{"microformats", "", `<a class="p-author h-card" href="/">Ada North</a>`, "", ada},
		{"AMP", "", `<div class="amp-wp-meta amp-wp-byline"><span class="amp-wp-author author vcard">Ada North</span></div>`, "", ada},
		{"microdata", "", `<span itemprop="author" itemscope itemtype="https://schema.org/Person"><span itemprop="name">Ada North</span></span>`, "", ada},
		{"microdata in meta", `<meta itemprop="author" content="Ada North">`, "", "", ada},
		{"Blogger, after the text", "", "", `<span class="post-author vcard">Posted by <span class="fn" itemprop="author" itemscope itemtype="http://schema.org/Person"><a class="g-profile" href="/p/1" rel="author"><span itemprop="name">Ada North</span></a></span></span>`, ada},
		{"Blogger, a text at the end", "", "", `<p>Posted by Ada North at 10:15</p>`, ada},
		{"names for tests", "", `<div><a data-testid="authorName" href="/@ada">Ada North</a><span>Follow</span></div>`, "", ada},
		{"the address of a page of an author", "", `<div class="x1"><a href="/authors/ada-north">Ada North</a></div>`, "", ada},
		{"each author in an element", "", `<div class="authors"><div class="author"><a href="/a">Ada North</a><span class="author-title">Chief Sea Person</span></div><div class="author"><a href="/b">Bob South</a><span class="role">Analyst</span></div></div>`, "", two},
		{"first and last name apart", "", `<a rel="author" href="/a"><span class="first">Ada</span> <span class="last">North</span></a>`, "", ada},
		{"before the headline", `<div class="byline">By Ada North</div>`, "", "", ada},
		{"a role", "", `<p class="byline">Ada North, Political Editor</p>`, "", ada},
		{"a role in an element", "", `<p class="byline"><span>Ada North</span><span>Staff writer</span></p>`, "", ada},
		{"a place", "", `<p class="byline">By Ada North in Berlin</p>`, "", ada},
		{"a paper", "", `<p class="byline">By Ada North, Harbour Post</p>`, "", ada},
		{"an account of a network", "", `<p class="byline">By Ada North @adanorth</p>`, "", ada},
		{"an address of mail", "", `<p class="byline">By Ada North (ada@harbour.example)</p>`, "", ada},
		{"a day", "", `<p class="byline">Ada North | March 5, 2024 10:30 am</p>`, "", ada},
		{"a day first", "", `<p class="byline">Monday March 5, 2024 10:30 am PST by <a href="/a">Ada North</a></p>`, "", ada},
		{"three", "", `<p class="byline">by Ada North, Bob South and Cy van der West</p>`, "", []string{"Ada North", "Bob South", "Cy van der West"}},
		{"who looked it over", "", `<div class="byline">Medically reviewed by <a href="/c">Cy West</a> — Written by <a href="/a">Ada North</a></div>`, "", ada},
		{"who took the picture", "", `<p>Photo by Cy West</p><p>By Ada North</p>`, "", ada},
		{"an agency", "", `<p class="byline">Von dpa</p>`, "", []string{"dpa"}},

		{"a text in English", "", `<div>By Ada North</div><div>May 3, 2024</div>`, "", ada},
		{"German", "", `<p>Von Ada North, Berlin</p>`, "", ada},
		{"French", "", `<div>Par Ada North et Bob South</div>`, "", two},
		{"Spanish", "", `<div>Por Ada North</div><div>Madrid - 3 may 2024</div>`, "", ada},
		{"Italian", "", `<div class="autore">di Ada North</div>`, "", ada},
		{"Dutch", "", `<div>Door Ada North</div>`, "", ada},
		{"Swedish", "", `<div>Text: Ada North</div><div>Foto: Cy West</div>`, "", ada},
		{"Danish", "", `<div class="byline">Af Ada North</div>`, "", ada},
		{"Polish", "", `<div>Autor: Ada North</div>`, "", ada},
		{"Turkish", "", `<div>Yazan: Ada North</div>`, "", ada},
		{"Russian", "", `<div>Автор: Анна Северная</div>`, "", []string{"Анна Северная"}},
		{"Korean", "", `<span class="writer">홍길동 기자 hong@harbour.example</span>`, "", []string{"홍길동"}},
		{"Korean, two", "", `<div>홍길동·김영희 기자</div>`, "", []string{"홍길동", "김영희"}},
		{"Korean, the last line", "", "", `<p>홍길동 선임기자 hong@harbour.example</p>`, []string{"홍길동"}},
		{"Korean, before the text", "", `<p>[서울=항구일보] 홍길동 기자 = 항구 시의회는 화요일에 어시장을 옮기는 계획을 논의했다고 밝혔다. 의원들은 비용에 대한 자료를 더 요구했다.</p>`, "", []string{"홍길동"}},
		{"Japanese", "", `<p class="author">記者 山田太郎</p>`, "", []string{"山田太郎"}},
		{"Chinese", "", `<span>作者：张小明</span>`, "", []string{"张小明"}},
		{"Taiwan", "", `<p>記者張小明／台北報導</p>`, "", []string{"張小明"}},
		{"two Chinese names", "", `<span>记者 张小明 李红</span>`, "", []string{"张小明", "李红"}},

		{"JSON-LD", ld(`{"@type":"Person","name":"Ada North"}`), "", "", ada},
		{"JSON-LD, two joined", ld(`"By Ada North and Bob South"`), "", "", two},
		{"JSON-LD, a list in a text", ld(`{"name":"Ada North; Bob South"}`), "", "", two},
		{"JSON-LD, initials", ld(`{"name":"Ada North (an)"}`), "", "", ada},
		{"JSON-LD, an account and a byline", ld(`{"name":"Watermark feed"}`), `<p class="byline">By Ada North</p>`, "", ada},
		{"JSON-LD, an account", ld(`{"name":"admin"}`), "", "", nil},
		{"JSON-LD, a mail address", ld(`"ada@harbour.example"`), "", "", nil},
		{"JSON-LD, the publisher and a byline", ld(`{"name":"Harbour Post"}`), `<p class="byline">By Ada North</p>`, "", ada},
		{"JSON-LD, the publisher's staff and a byline", ld(`{"name":"Harbour Post Staff"}`), `<p class="byline">By Ada North</p>`, "", ada},
		{"JSON-LD, the publisher alone", ld(`{"name":"Harbour Post"}`), "", "", []string{"Harbour Post"}},
		{"JSON-LD, one of two", ld(`{"name":"Bob South"}`), `<p class="byline">By Ada North and Bob South</p>`, "", two},
		{"JSON-LD, another than the byline", ld(`{"name":"Fay Editor"}`), `<p class="byline">By Ada North</p>`, "", ada},
		{"JSON-LD and meta, others than the byline", ld(`{"name":"Bob South"}`) + `<meta name="author" content="Bob South">`, `<p class="author">Fay Quoted</p>`, "", []string{"Bob South"}},
		{"a meta element", `<meta name="author" content="Ada North">`, "", "", ada},
		{"meta elements, the first with the site", `<meta name="author" content="https://harbour.example"><meta name="author" content="Ada North">`, "", "", ada},
		{"Dublin Core", `<meta name="DC.creator" content="North, Ada"><meta name="DC.creator" content="South, Bob">`, "", "", two},
		{"two in one element", `<meta name="parsely-author" content="Ada North, Bob South">`, "", "", two},
		{"a paper of science", `<meta name="citation_author" content="North, Ada"><meta name="citation_author" content="South, Bob">`, "", "", two},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, `<html><head><meta property="og:site_name" content="Harbour Post"></head><body>`+c.before+`<article><h1>The harbour decides</h1>`+c.after+paragraphs(4)+c.end+`</article>`+cards+`</body></html>`, article.Rules{}).Authors
			assert.Equal(t, c.want, got)
		})
	}
}
