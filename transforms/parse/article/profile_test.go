package article_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// The type of a page is told by its structure; each type has a main part of its own.
func TestTypes(t *testing.T) {
	const header, footer = `<header><nav><ul><li><a href="/a">Politics</a></li></ul></nav><a href="/">Harbour Post</a></header>`, `<footer><p>Harbour Post Ltd, quay 3, all rights are ours, whatever the sea may say about it.</p></footer>`
	for _, c := range cases.Table[[]struct {
		Name, Body string
		Want       article.Type
		Must, Not  []string
	}](t, "profiles.yaml") {
		got := read(t, "<html><head><title>Page of the Harbour Post</title></head><body>"+header+c.Body+footer+"</body></html>", article.Rules{})
		assert.Equal(t, c.Want, got.Type, c.Name)
		for _, w := range c.Must {
			assert.Contains(t, got.Body, w, c.Name)
		}
		for _, w := range c.Not {
			assert.NotContains(t, got.Body, w, c.Name)
		}
	}
}
