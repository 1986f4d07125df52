package pagehead_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/pagehead"
)

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
