package pagehead_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
)

// minRefresh is a floor: it may only rise.
const minRefresh = 12 // without two whose pages are in other encodings

func TestRead(t *testing.T) {
	type h = pagehead.Head
	for head, want := range cases.Table[map[string]h](t, "heads.yaml") {
		body := "<!doctype html><html><head><title>x</title>" + head + "</head><body><p>text</p></body></html>"
		require.Equal(t, want, pagehead.Read(nil, []byte(body), "text/html", "APIIntelBot"), head)
	}
	for line, want := range cases.Table[map[string]h](t, "headers.yaml") {
		name, value, _ := strings.Cut(line, ": ")
		header := http.Header{}
		header.Set(name, value)
		require.Equal(t, want, pagehead.Read(header, nil, "", "APIIntelBot"), line)
	}
}

// The rows of w3lib on pages that redirect. Its rules are looser than those of HTML's standard.
func TestRefreshCases(t *testing.T) {
	right := 0
	for _, c := range cases.Rows[struct {
		ID, Kind, HTML, Base string
		Result               []any
	}](t, "charset/cases.jsonl") {
		if c.Kind != "meta-refresh" {
			continue
		}
		base, err := url.Parse(c.Base)
		require.NoError(t, err)
		got, want := "", ""
		if at := pagehead.Read(nil, []byte(c.HTML), "text/html; charset=utf-8", "bot").Refresh; at != "" {
			got, err = canonical.Resolve(base, at, []string{"*"})
			require.NoError(t, err, c.ID)
		}
		if delay, ok := c.Result[0].(float64); ok && delay <= 15 {
			want = c.Result[1].(string)
		}
		if got != want {
			t.Logf("%s: %q, want %q: %s", c.ID, got, want, c.HTML)
			continue
		}
		right++
	}
	assert.True(t, right >= minRefresh, "%d rows are right, floor %d", right, minRefresh)
}

// A head without an end is not read for ever.
func TestLongHead(t *testing.T) {
	body := strings.Repeat("<meta name=x content=y>", 200_000) + `<meta name="robots" content="noindex">`
	require.Equal(t, pagehead.Head{}, pagehead.Read(nil, []byte(body), "text/html", "APIIntelBot"))
}

func FuzzRead(f *testing.F) {
	f.Add("noindex", `<head><meta http-equiv=refresh content="0;url=/a"><link rel=canonical href=/b>`)
	f.Add("bot: none", `<noscript></template>`)
	f.Fuzz(func(_ *testing.T, line, body string) {
		header := http.Header{"X-Robots-Tag": {line}, "Link": {line}}
		pagehead.Read(header, []byte(body), "text/html", "bot") // any answer but a panic
	})
}
