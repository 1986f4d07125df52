package policy_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// The values of the shipped policies are those of the requirements' table of providers (6.2, read by a script on
// 2026-11-25: no difference in any of the fifteen). Nothing else states these selectors and limits: whether the sites'
// pages still have them is not known here.
func TestShipped(t *testing.T) {
	all, err := policy.Load(policies.Files, today)
	require.NoError(t, err)
	got := map[string][]any{}
	for _, p := range all {
		require.Equal(t, policy.Unknown, p.Terms, p.ProviderID)
		require.False(t, p.SPARendering)
		require.Len(t, p.SeedURLs, 1)
		got[p.SeedURLs[0]] = []any{p.Name, strings.Join(p.AllowedPathPatterns, " "), strings.Join(p.BlockedPathPatterns, " "),
			p.CustomSelectors.Content, strings.Join(p.CustomSelectors.Remove, " "), p.MaxDepth, p.MaxPages, p.RequestDelayMS, p.Channel}
	}
	require.Equal(t, map[string][]any{
		"https://platform.openai.com/docs":               {"OpenAI", "/docs/**", "/docs/changelog/** /docs/deprecations/**", "article.docs-content", ".sidebar .nav-header .feedback-widget", 3, 200, 1500, policy.Context7},
		"https://docs.anthropic.com/en/docs":             {"Anthropic", "/en/docs/**", "/en/docs/about-claude/models-overview/**", "article.prose", ".sidebar .header-nav .toc", 3, 150, 1500, policy.Context7},
		"https://ai.google.dev/gemini-api/docs":          {"Google Gemini", "/gemini-api/docs/**", "/gemini-api/docs/changelog/**", "article.devsite-article-body", ".devsite-nav .devsite-toc .devsite-banner", 3, 200, 2000, policy.Context7},
		"https://docs.stripe.com/api":                    {"Stripe", "/api/** /payments/** /connect/**", "/changelog/** /upgrades/** /cli/**", "article.content", ".sidebar .feedback .method-list-group", 4, 300, 1500, policy.Context7},
		"https://docs.tosspayments.com/reference":        {"토스페이먼츠", "/reference/** /guides/**", "/reference/release-notes/**", ".docs-content", ".sidebar .toc .gnb", 3, 150, 1500, policy.Crawl},
		"https://developer.paypal.com/docs/api/overview": {"PayPal", "/docs/api/** /docs/checkout/**", "/docs/api/release-notes/** /docs/archive/**", ".contentColumn", ".leftNav .feedback-section .breadcrumb", 3, 200, 2000, policy.Context7},
		"https://auth0.com/docs":                         {"Auth0", "/docs/**", "/docs/videos/** /docs/quickstarts/**", "article.content-area", ".sidebar .breadcrumbs .edit-page", 3, 200, 1500, policy.Context7},
		"https://firebase.google.com/docs/auth":          {"Firebase Auth", "/docs/auth/**", "/docs/auth/release-notes/**", "article.devsite-article-body", ".devsite-nav .devsite-toc .devsite-banner", 3, 150, 2000, policy.Context7},
		"https://clerk.com/docs":                         {"Clerk", "/docs/**", "/docs/changelog/** /docs/upgrade-guides/**", "main article", ".sidebar .toc .breadcrumb", 3, 150, 1500, policy.Context7},
		"https://www.twilio.com/docs/messaging":          {"Twilio", "/docs/messaging/** /docs/sms/** /docs/voice/**", "/docs/messaging/changelog/** /docs/tutorials/**", "article.css-0", ".sidebar .breadcrumb .feedback", 3, 200, 1500, policy.Context7},
		"https://docs.sendgrid.com/for-developers":       {"SendGrid", "/for-developers/**", "/for-developers/release-notes/**", "main.content", ".sidebar .toc .breadcrumb", 3, 150, 1500, policy.Context7},
		"https://docs.aws.amazon.com/ses/latest/dg":      {"AWS SES", "/ses/latest/dg/** /ses/latest/APIReference/**", "/ses/latest/dg/release-notes/**", "#main-content", "#left-nav .breadcrumb #feedback", 3, 200, 2000, policy.Crawl},
		"https://docs.pinecone.io/guides":                {"Pinecone", "/guides/** /reference/**", "/guides/release-notes/**", "article.rm-Article", ".sidebar .rm-TableOfContents .rm-Feedback", 3, 150, 1500, policy.Context7},
		"https://qdrant.tech/documentation":              {"Qdrant", "/documentation/**", "/documentation/changelog/**", ".docs-content", ".sidebar .toc .breadcrumb", 3, 150, 1500, policy.Context7},
		"https://weaviate.io/developers/weaviate":        {"Weaviate", "/developers/weaviate/**", "/developers/weaviate/release-notes/**", "article.docs-content", ".sidebar .toc .breadcrumb .pagination", 3, 150, 1500, policy.Context7},
	}, got)
}

// Terms that were read more than 90 days ago are to be read again.
func TestTermsOld(t *testing.T) {
	at := time.Date(2026, 4, 5, 12, 0, 0, 0, time.UTC)
	for date, want := range map[string]string{
		"":           "",
		"2026-04-05": "",
		"2026-01-05": "", // 90 days
		"2026-01-04": "its terms of service were read on 2026-01-04, 91 days ago; read them again, and write the day into tos_checked",
	} {
		require.Equal(t, want, policy.Policy{TermsDate: date}.TermsOld(at), date)
	}
	require.Empty(t, policy.WrongDay("2026-03-17", today), "tomorrow here is today elsewhere")
}

// today is when the policies of these tests are read.
var today = time.Date(2026, 3, 16, 12, 0, 0, 0, time.UTC)

const least = "provider_id: a\nseed_urls: [https://a.example/docs]\nallowed_path_patterns: [/docs/**]\n"

// The values of fields that a file leaves out.
func TestDefaults(t *testing.T) {
	p, err := policy.Parse("a.yaml", []byte(least), today)
	require.NoError(t, err)
	require.Equal(t, policy.Policy{ProviderID: "a", SeedURLs: []string{"https://a.example/docs"}, AllowedPathPatterns: []string{"/docs/**"},
		MaxDepth: 3, MaxPages: 200, RequestDelayMS: 1500, Channel: policy.Crawl, Terms: policy.Unknown}, p)
	require.Equal(t, "a.example", p.Host())
	require.Equal(t, "a", p.Label())
}

// html is the last source, whether it is named or not.
func TestOrder(t *testing.T) {
	for text, want := range map[string][]policy.Source{"": {policy.LLMsFull, policy.Markdown, policy.OpenAPI, policy.HTML}, "sources: [html]": {policy.HTML},
		"sources: [markdown]": {policy.Markdown, policy.HTML}, "sources: [markdown, html, llms_full]": {policy.Markdown, policy.HTML},
		"github: {repository: o/r, base: https://a.example/}":                              {policy.GitHub, policy.LLMsFull, policy.Markdown, policy.OpenAPI, policy.HTML},
		"github: {repository: o/r, base: https://a.example/}\nsources: [github]":           {policy.GitHub},
		"github: {repository: o/r, base: https://a.example/}\nsources: [github, markdown]": {policy.GitHub, policy.Markdown, policy.HTML}} {
		p, err := policy.Parse("a.yaml", []byte(least+text), today)
		require.NoError(t, err)
		require.Equal(t, want, p.Order(), text)
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown field", least + "max_page: 3\n", `a.yaml: line 4: unknown field "max_page"`},
		{"unknown selector field", least + "custom_selectors:\n  contents: x\n", `a.yaml: line 5: unknown field "contents"`},
		{"no YAML", "a: [", "a.yaml: line 1:"},
		{"empty", "# nothing yet\n", "a.yaml: the file is empty"},
		{"two documents", least + "---\n" + least, "a.yaml: the file has 2 YAML documents"},
		{"wrong type", least + "max_depth: deep\n", "a.yaml: line 4: "},
		{"no id", "seed_urls: [https://a.example/]\nallowed_path_patterns: [/**]\n", "a.yaml:1: provider_id: "},
		{"id with a slash", strings.Replace(least, "id: a", "id: a/b", 1), `a.yaml:1: provider_id: "a/b" is not a provider id`},
		{"depth 0", least + "max_depth: 0\n", "a.yaml:4: max_depth: 0 is outside 1 to 5"},
		{"depth 6", least + "max_depth: 6\n", "a.yaml:4: max_depth: 6 is outside 1 to 5"},
		{"a name of two lines", least + "name: \"A\\nB\"\n", `a.yaml:4: name: "A\nB" has line breaks or control characters`},
		{"half a depth", least + "max_depth: 2.5\n", "a.yaml:4: max_depth: 2.5 is no whole number"},
		{"half a page", least + "max_pages: 0.5\n", "a.yaml:4: max_pages: 0.5 is no whole number"},
		{"a fraction of a delay", least + "request_delay_ms: 1500.5\n", "a.yaml:4: request_delay_ms: 1500.5 is no whole number"},
		{"pages 0", least + "max_pages: 0\n", "a.yaml:4: max_pages: 0 is outside 1 to 500"},
		{"pages 501", least + "max_pages: 501\n", "a.yaml:4: max_pages: 501 is outside 1 to 500"},
		{"delay 999", least + "request_delay_ms: 999\n", "a.yaml:4: request_delay_ms: 999 is outside 1000 to 5000"},
		{"delay 5001", least + "request_delay_ms: 5001\n", "a.yaml:4: request_delay_ms: 5001 is outside 1000 to 5000"},
		{"no seed", "provider_id: a\nallowed_path_patterns: [/**]\nseed_urls: []\n", "a.yaml:3: seed_urls: the list is empty"},
		{"seed without host", "provider_id: a\nallowed_path_patterns: [/**]\nseed_urls: [docs]\n", `a.yaml:3: seed_urls[0]: "docs" is not a URL`},
		{"seed by ftp", "provider_id: a\nallowed_path_patterns: [/**]\nseed_urls: [ftp://a.example/]\n", `seed_urls[0]: "ftp://a.example/"; use https`},
		{"two hosts", "provider_id: a\nallowed_path_patterns: [/**]\nseed_urls:\n  - https://a.example/\n  - https://b.example/\n", `a.yaml:5: seed_urls[1]: "https://b.example/" is on another host`},
		{"sitemap elsewhere", least + "sitemap_url: https://b.example/sitemap.xml\n", "a.yaml:4: sitemap_url: "},
		{"empty allow list", "provider_id: a\nseed_urls: [https://a.example/]\nallowed_path_patterns: []\n", "a.yaml:3: allowed_path_patterns: the list is empty"},
		{"pattern without slash", least + "blocked_path_patterns: [docs/x]\n", `a.yaml:4: blocked_path_patterns[0]: "docs/x" matches no path`},
		{"bad glob", least + "blocked_path_patterns:\n  - /a/**\n  - '/docs/['\n", "a.yaml:6: blocked_path_patterns[1]: "},
		{"bad expression", least + "blocked_path_patterns: ['re:^/docs/(']\n", "a.yaml:4: blocked_path_patterns[0]: "},
		{"bad selector", least + "custom_selectors:\n  content: 'article['\n", "a.yaml:5: custom_selectors.content: "},
		{"bad removal", least + "custom_selectors:\n  remove: [.a, '>>']\n", "a.yaml:5: custom_selectors.remove[1]: "},
		{"channel", least + "channel: both\n", `a.yaml:4: channel: "both"; use context7 or crawl`},
		{"terms", least + "tos: fine\n", `a.yaml:4: tos: "fine"; use allowed, prohibited or unknown`},
		{"terms without a date", least + "tos: allowed\n", "tos_checked: missing"},
		{"bad date", least + "tos: allowed\ntos_checked: 2026-02-30\n", `a.yaml:5: tos_checked: "2026-02-30" is not a date`},
		{"terms that nobody can have read", least + "tos: allowed\ntos_checked: 2026-03-18\n", "a.yaml:5: tos_checked: 2026-03-18 is in the future"},
		{"unknown source", least + "sources: [wiki, html]\n", `a.yaml:4: sources[0]: "wiki"; use github, llms_full, markdown, openapi or html`},
		{"source twice", least + "sources: [markdown, markdown, html]\n", `a.yaml:4: sources[1]: "markdown" is there twice`},
		{"no sources", least + "sources: []\n", "a.yaml:4: sources: the list is empty"},
		{"github second", least + "github: {repository: o/r, base: https://a.example/docs}\nsources: [markdown, github]\n", "a.yaml:5: sources[1]: github is not the first source"},
		{"github without a repository", least + "sources: [github]\n", "a.yaml:4: sources[0]: github needs a repository"},
		{"a folder without a repository", least + "github:\n  path: docs\n", "a.yaml:5: github: the repository is missing"},
		{"repository by address", least + "github:\n  repository: https://github.com/o/r\n  base: https://a.example/\n", `a.yaml:5: github.repository: "https://github.com/o/r"; write owner/name`},
		{"base elsewhere", least + "github:\n  repository: o/r\n  base: https://b.example/\n", `a.yaml:6: github.base: "https://b.example/" is on another host`},
		{"no base", least + "github:\n  repository: o/r\n", "github: the base is missing"},
		{"folder with slashes", least + "github:\n  repository: o/r\n  path: /docs/\n  base: https://a.example/\n", `a.yaml:6: github.path: "/docs/"; write the folder`},
		{"reference", least + "github:\n  repository: o/r\n  ref: a b\n  base: https://a.example/\n", `a.yaml:6: github.ref: "a b" is no branch`},
		{"unknown block", least + "allow_personal: [wiki]\n", `a.yaml:4: allow_personal[0]: "wiki"; use blog, community, forum, profile, users`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := policy.Parse("a.yaml", []byte(tt.text), today)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// All faults of all files are reported at once.
func TestLoadReportsAll(t *testing.T) {
	_, err := policy.Load(fstest.MapFS{
		"a.yaml":    {Data: []byte(least + "max_depth: 9\nmax_pages: 0\n")},
		"b.yml":     {Data: []byte(least + "x: 1\n")},
		"c.yaml":    {Data: []byte(least)},
		"d.yaml":    {Data: []byte(least)},
		"README.md": {Data: []byte("no policy")},
	}, today)
	require.EqualError(t, err, "a.yaml:4: max_depth: 9 is outside 1 to 5\na.yaml:5: max_pages: 0 is outside 1 to 500\n"+
		"b.yml: line 4: unknown field \"x\"\nd.yaml: provider_id \"a\" is taken by c.yaml; give each provider its own")
	_, err = policy.Load(fstest.MapFS{}, today)
	require.ErrorContains(t, err, "there is no *.yaml file")
	_, err = policy.Load(os.DirFS("/nowhere"), today)
	require.ErrorContains(t, err, "reading the policies")
}

// Paths that may have personal data are blocked until a policy allows them by name.
func TestPersonalBlocks(t *testing.T) {
	open := "provider_id: a\nseed_urls: [https://a.example/]\nallowed_path_patterns: ['/**']\nblocked_path_patterns: [/own/**]\n"
	p, err := policy.Parse("a.yaml", []byte(open), today)
	require.NoError(t, err)
	allowed, err := policy.Parse("a.yaml", []byte(open+"allow_personal: [blog, users]\n"), today)
	require.NoError(t, err)
	for _, tt := range []struct {
		path          string
		block         string // the default block's name, "own" for the policy's
		in, ifAllowed bool
	}{
		{"/docs/api", "", true, true},
		{"/docs/api/users", "", true, true}, // an API's users are no persons
		{"/blog", "blog", false, true},
		{"/docs/blog/2026", "blog", false, true},
		{"/forum/t/1", "forum", false, false},
		{"/community", "community", false, false},
		{"/profile/jane", "profile", false, false},
		{"/users/jane", "users", false, true},
		{"/@jane/x", "users", false, true},
		{"/own/x", "own", false, false},
	} {
		pattern, in := p.Scope().Rule(tt.path)
		require.Equal(t, tt.in, in, tt.path)
		if tt.block == "own" {
			require.Equal(t, "", p.Personal(pattern))
		} else {
			require.Equal(t, tt.block, p.Personal(pattern), tt.path)
		}
		require.Equal(t, tt.ifAllowed, allowed.Scope().In(tt.path), tt.path)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(least))
	f.Add([]byte(least + "custom_selectors:\n  content: main\n  remove: [.a]\nsitemap_url: null\n"))
	f.Add([]byte("seed_urls: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := policy.Parse("f.yaml", text, today)
		require.False(t, err == nil && (p.Host() == "" || len(p.AllowedPathPatterns) == 0), "%q was taken as %+v", text, p)
	})
}
