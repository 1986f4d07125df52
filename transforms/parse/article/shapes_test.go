package article_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// sentences are n paragraphs of prose, each different.
func sentences(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, fmt.Sprintf("Paragraph %c of the report says what the harbour's council decided on its long evening, and why it took so many hours.", 'A'+i))
	}
	return b.String()
}

func paragraphs(n int) string { return sentences(n, "<p>%s</p>\n") }

// filler is a number of paragraphs in shapes.yaml, and their form.
var filler = regexp.MustCompile(`\[\[(\d+)(?: (.*?))?\]\]`)

// Shapes of pages that are common, each with words that the text must have and words that it must not have.
func TestShapes(t *testing.T) {
	for _, c := range cases.Table[[]struct {
		Name, Body string
		Must, Not  []string
	}](t, "shapes.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			body := filler.ReplaceAllStringFunc(c.Body, func(mark string) string {
				m := filler.FindStringSubmatch(mark)
				n, _ := strconv.Atoi(m[1]) // digits
				if m[2] == "" {
					return paragraphs(n)
				}
				return sentences(n, m[2])
			})
			got := read(t, "<html><body>"+body+"</body></html>", article.Rules{}).Body
			for _, w := range c.Must {
				assert.Contains(t, got, w)
			}
			for _, w := range c.Not {
				assert.NotContains(t, got, w)
			}
		})
	}
}
