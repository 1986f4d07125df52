package server

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// playSearch finds two chunks, whatever is searched for.
func playSearch(args []string) int {
	switch {
	case slices.Contains(args, "--question=refused"):
		return exitUsage
	case slices.Contains(args, "--question=broken"):
		return 1
	}
	fmt.Printf(`{"by_vectors":true,"results":[
		{"id":"a","provider":"pay","url":"https://pay.example/refunds#how","title":"Refunds","context":"Refunds > <How>","excerpt":"Paid back","score":0.03,"rank_by_words":1,"fetched_at":"2026-03-02T10:00:00Z"},
		{"id":"b","provider":"pay","url":"javascript:alert(1)","title":"","context":"","excerpt":%q,"text":"All of <it>.","score":0.01,"rank_by_vector":1}]}`, strings.Join(args, " "))
	if _, err := os.Stdout.WriteString("\n"); err != nil {
		return 1
	}
	return 0
}

// The page and the API ask the same search, and pass on what it says and no markup.
func TestSearch(t *testing.T) {
	w := newWorld(t, "done")
	page := w.do("GET", "/search?q=%3Cb%3E+--refunds&provider=pay", "", "Accept", "text/html").body
	for _, has := range []string{`value="&lt;b&gt; --refunds"`, `href="https://pay.example/refunds#how"`, "Refunds &gt; &lt;How&gt;", "Paid back", "fetched 2026-03-02 10:00:00", "All of &lt;it&gt;.", "By words and meaning",
		"search --json --question=&lt;b&gt; --refunds --limit=10 --provider=pay"} {
		assert.Contains(t, page, has)
	}
	assert.NotContains(t, page, "javascript:")
	assert.Contains(t, w.do("GET", "/search", "").body, `name="q"`)
	got := w.do("GET", "/api/v1/search?q=refunds&limit=3", "").json(t)
	assert.Len(t, got["results"], 2)
	assert.Equal(t, "search --json --question=refunds --limit=3", got["results"].([]any)[1].(map[string]any)["excerpt"])
	for _, bad := range []string{"", "q=", "q=+", "q=x&limit=0", "q=x&limit=51", "q=x&limit=x", "q=x&limit=", "q=x&provider=..", "q=" + strings.Repeat("x", maxQuestion+1)} {
		assert.Equal(t, http.StatusBadRequest, w.do("GET", "/api/v1/search?"+bad, "").code, bad)
	}
	assert.Contains(t, w.do("GET", "/api/v1/search?q=refused", "").body, "no search index here")
	for range maxSearches {
		w.searches <- struct{}{}
	}
	assert.Equal(t, http.StatusServiceUnavailable, w.do("GET", "/api/v1/search?"+url.Values{"q": {"x"}}.Encode(), "").code)
}
