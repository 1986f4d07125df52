package mk

import (
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/article"
)

const press = "매일경제"

// rules are for the present layout and for the one before it.
var rules = article.MustCompile(article.Rules{
	Body:      ".news_cnt_detail_wrap, #article_body, .art_txt",
	Published: ".time_area .registration dd, .lasttime",
	Remove:    []string{".thumb_area", ".ad_wrap", ".relation_news", ".mid_title", "figure", ".art_photo"},
	Drop:      []string{`^\[?매경(닷컴|이코노미|AX)[^.]{0,30}\]?$`},
	Site:      press,
	Zone:      provider.Seoul,
})
