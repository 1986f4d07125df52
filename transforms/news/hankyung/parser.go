package hankyung

import (
	"net/url"

	"github.com/newsfork/seed-engine/transforms/article"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

const press = "한국경제"

var rules = mustCompile(article.Rules{
	Body:   "#articletxt, .article-body",
	Remove: []string{".article-figure", ".ad-area-wrap", ".related-news", "figure"},
	Drop:   []string{`^한경닷컴 [^.]{0,30}$`},
	Site:   "한국경제",
	Zone:   provider.Seoul,
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
