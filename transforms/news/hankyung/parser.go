package hankyung

import (
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/article"
)

const press = "한국경제"

var rules = article.MustCompile(article.Rules{
	Body:   "#articletxt, .article-body",
	Remove: []string{".article-figure", ".ad-area-wrap", ".related-news", "figure"},
	Drop:   []string{`^한경닷컴 [^.]{0,30}$`},
	Site:   press,
	Zone:   provider.Seoul,
})
