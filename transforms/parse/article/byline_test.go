package article_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// Bylines as themes, content systems and newspapers write them.
func TestBylines(t *testing.T) {
	const cards = `<div class="related"><h3>Related</h3><div class="card"><h4><a href="/x">Another story</a></h4><span class="author">Dan East</span></div></div><ol class="comments"><li><span class="comment-author vcard"><cite class="fn">Eve Reader</cite></span><p>I agree.</p></li></ol>`
	for _, c := range cases.Table[[]struct {
		Name, Before, After, End string
		Want                     []string
	}](t, "bylines.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			got := read(t, `<html><head><meta property="og:site_name" content="Harbour Post"></head><body>`+c.Before+`<article><h1>The harbour decides</h1>`+c.After+paragraphs(4)+c.End+`</article>`+cards+`</body></html>`, article.Rules{}).Authors
			assert.Equal(t, c.Want, got)
		})
	}
}
