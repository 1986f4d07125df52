package article_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// What readers see next to the headline is the article's day; other days of the page are not.
func TestDayNextToTheHeadline(t *testing.T) {
	for _, c := range cases.Table[[]struct{ Name, Page, Want string }](t, "days.yaml") {
		got := read(t, strings.ReplaceAll(c.Page, "[[prose]]", prose)+prose, article.Rules{}).Published
		assert.Equal(t, c.Want, got.Format(time.RFC3339), c.Name)
	}
}
