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
	for head, want := range map[string]h{
		"":                                       {},
		`<meta name="robots" content="noindex">`: {NoIndex: true},
		`<META NAME=Robots CONTENT="NoIndex, NoFollow">`:                   {NoIndex: true, NoFollow: true},
		`<meta content="none" name="robots"/>`:                             {NoIndex: true, NoFollow: true},
		`<meta name="robots" content="index, follow, max-snippet:-1">`:     {},
		`<meta name="apiintelbot" content="noindex">`:                      {NoIndex: true},
		`<meta name="googlebot" content="noindex">`:                        {},
		`<meta name="description" content="noindex">`:                      {},
		`<link rel="canonical" href=" /a ">`:                               {Canonical: "/a"},
		`<link href="https://x.example/a?b=c&amp;d=e" rel="me CANONICAL">`: {Canonical: "https://x.example/a?b=c&d=e"},
		`<link rel="alternate" href="/a">`:                                 {},
		`<link rel="service-desc" href=" /api.json "><link rel="service-desc" href="/api.json"><link href="b" rel="x Service-Desc">`: {Describes: []string{"/api.json", "b"}},
		`<link rel="alternate" type="text/markdown" href="/a.md">`:                                                                   {Markdown: "/a.md"},
		`<link rel="alternate" type="application/rss+xml" href="/a.rss">`:                                                            {},
		`<meta http-equiv="refresh" content="0; url=/new/">`:                                                                         {Refresh: "/new/"},
		`<meta http-equiv=Refresh content="5;URL='../new'">`:                                                                         {Refresh: "../new"},
		`<meta http-equiv="refresh" content="0;/new?url=x">`:                                                                         {Refresh: "/new?url=x"},
		`<meta http-equiv="refresh" content=".5 /new">`:                                                                              {Refresh: "/new"},
		`<meta http-equiv="refresh" content="1.5, URL = &quot;/new&quot;x">`:                                                         {Refresh: "/new"},
		`<meta http-equiv="refresh" content="0url=/new">`:                                                                            {},
		`<meta http-equiv="refresh" content="url=/new">`:                                                                             {},
		`<meta http-equiv="refresh" content="0;">`:                                                                                   {},
		`<meta name="robots" content="noindex nofollow">`:                                                                            {NoIndex: true, NoFollow: true},
		`<meta name="robots" content="noarchive;noindex">`:                                                                           {NoIndex: true},
		`<meta name="robots" content="unavailable_after: none noindex">`:                                                             {},
		`<meta http-equiv="refresh" content="300">`:                                                                                  {},
		`<meta http-equiv="refresh" content="300; url=/new">`:                                                                        {},
		`<noscript><meta http-equiv="refresh" content="0; url=/plain"><meta name="robots" content="noindex"></noscript>`:             {},
		`<script>"<meta name='robots' content='noindex'>"</script>`:                                                                  {},
		`<!-- <meta name="robots" content="noindex"> -->`:                                                                            {},
		`</head><body><meta name="robots" content="noindex"><link rel="canonical" href="/a">`:                                        {},
	} {
		body := "<!doctype html><html><head><title>x</title>" + head + "</head><body><p>text</p></body></html>"
		require.Equal(t, want, pagehead.Read(nil, []byte(body), "text/html", "APIIntelBot"), head)
	}
	for line, want := range map[string]h{
		"X-Robots-Tag: noindex":                                      {NoIndex: true},
		"X-Robots-Tag: nosnippet, none":                              {NoIndex: true, NoFollow: true},
		"X-Robots-Tag: otherbot: nofollow, apiintelbot: noindex":     {NoIndex: true},
		"X-Robots-Tag: noindex, otherbot: nofollow":                  {NoIndex: true},
		"X-Robots-Tag: apiintelbot: noindex, nofollow":               {NoIndex: true, NoFollow: true},
		"X-Robots-Tag: otherbot: noindex":                            {},
		"X-Robots-Tag: max-snippet: 20, noindex":                     {NoIndex: true},
		"X-Robots-Tag: noarchive":                                    {},
		`Link: <https://x.example/a>; rel="canonical"`:               {Canonical: "https://x.example/a"},
		`Link: </s.css>; rel=preload; as=style, </a>; rel=canonical`: {Canonical: "/a"},
		`Link: </a>; rel="service-desc"; type="application/yaml", <>; rel=service-desc, </b>; rel="service-doc"`: {Describes: []string{"/a"}},
		`Link: </a>; title="x, y"; rel="alternate"`:                                                              {},
		`Link: </a.md>; rel="alternate"; type="text/markdown"`:                                                   {Markdown: "/a.md"},
	} {
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
