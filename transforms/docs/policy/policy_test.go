package policy_test

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
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
	for _, c := range cases.Table[[]struct{ Name, More, Text, Want string }](t, "refused.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			_, err := policy.Parse("a.yaml", []byte(cmp.Or(c.Text, least+c.More)), today)
			require.ErrorContains(t, err, c.Want)
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
