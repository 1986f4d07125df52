package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Pages that only a query tells apart stay apart; what shows a page in another way, or comes from outside, selects none.
func TestDraftOfQueries(t *testing.T) {
	f := func(at, links string, keep []string, seed string) {
		t.Helper()
		page := "<title>Manual</title><a href=/docs/a>a</a>"
		for l := range strings.FieldsSeq(links) {
			page += `<a href="` + l + `">x</a>`
		}
		d, err := NewDraft(at, page)
		require.NoError(t, err)
		text, err := d.Write(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))
		require.NoError(t, err)
		p, err := Parse("a.yaml", []byte(text), time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))
		require.NoError(t, err, text)
		assert.Equal(t, keep, p.KeepQueryParams, links)
		assert.Equal(t, []string{seed}, p.SeedURLs, links)
	}
	topics := "topic.cfm?topic=1 topic.cfm?topic=2 topic.cfm?topic=3"
	f("https://e.com/docs/", topics, []string{"topic"}, "https://e.com/docs/")
	f("https://e.com/docs/topic.cfm?topic=1&utm_source=x", topics, []string{"topic"}, "https://e.com/docs/topic.cfm?topic=1")
	f("https://e.com/docs/?topic=1", "?topic=2 ?topic=2 ?topic=3", nil, "https://e.com/docs/")
	f("https://e.com/docs/", "/shop?topic=1 /shop?topic=2 /shop?topic=3", nil, "https://e.com/docs/")
	f("https://e.com/docs/", "?hl=de ?hl=en ?hl=fr a?utm_source=1 a?utm_source=2 a?utm_source=3", nil, "https://e.com/docs/")
	f("https://e.com/docs/", "?a=1&b=1 ?a=2&b=1 ?a=3&b=1", nil, "https://e.com/docs/")
}
