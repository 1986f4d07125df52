package mk

import (
	"net/url"

	"github.com/newsfork/seed-engine/transforms/article"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

const press = "매일경제"

// rules are of the present layout and the one before it.
var rules = mustCompile(article.Rules{
	Body:      ".news_cnt_detail_wrap, #article_body, .art_txt",
	Published: ".time_area .registration dd, .lasttime",
	Remove:    []string{".thumb_area", ".ad_wrap", ".relation_news", ".mid_title", "figure", ".art_photo"},
	Drop:      []string{`^\[?매경(닷컴|이코노미|AX)[^.]{0,30}\]?$`},
	Site:      press,
	Zone:      provider.Seoul,
})

func mustCompile(r article.Rules) *article.Compiled {
	c, err := r.Compile()
	if err != nil {
		panic(err) // a mistake in this file, which every test meets
	}
	return c
}

func parse(page []byte, contentType string, u *url.URL) (provider.Article, error) {
	p, err := article.Parse(page, contentType)
	if err != nil {
		return provider.Article{}, err
	}
	return provider.Article{Article: p.Read(rules), ExternalID: externalID(u), Press: press}, nil
}
