package docsim

import "strings"

// provider describes a site. Chapters are below the seed URL or on paths of
// their own; topics below each chapter; blocked is out of the policy's scope.
type provider struct {
	name, host, seed string
	chapters         []string // paths
	blocked          string
	page             string // {{MAIN}} is the content
	robots           string
	korean           bool
}

var providers = []provider{
	{"OpenAI", "platform.openai.com", "/docs", []string{"/docs/guides", "/docs/models", "/docs/api-reference"}, "/docs/changelog/2026-02", nextjs("en", "<main>", `<article class="docs-content">`, "</article></main>"), "User-agent: *\nDisallow: /docs/internal\n", false},
	{"Anthropic", "docs.anthropic.com", "/en/docs", []string{"/en/docs/build", "/en/docs/agents", "/en/docs/test"}, "/en/docs/about-claude/models-overview/all", read("pages/mintlify.html"), "User-agent: *\nAllow: /\n", false},
	{"Gemini", "ai.google.dev", "/gemini-api/docs", []string{"/gemini-api/docs/text", "/gemini-api/docs/vision", "/gemini-api/docs/tokens"}, "/gemini-api/docs/changelog/old", read("pages/devsite.html"), "User-agent: *\nDisallow: /search\n", false},
	{"Stripe", "docs.stripe.com", "/api", []string{"/api/charges", "/payments/quickstart", "/connect/accounts"}, "/changelog/2026", nextjs("en", "<div class=\"method-list-group\">GET POST</div><main>", `<article class="content">`, "</article></main>"), "User-agent: *\nDisallow: /api/private\n", false},
	{"토스페이먼츠", "docs.tosspayments.com", "/reference", []string{"/reference/widget", "/guides/payment", "/guides/webhook"}, "/reference/release-notes/2026", nextjs("ko", "<main>", `<div class="docs-content">`, "</div></main>"), "User-agent: *\nAllow: /\n", true},
	{"PayPal", "developer.paypal.com", "/docs/api/overview", []string{"/docs/api/orders", "/docs/api/payments", "/docs/checkout/standard"}, "/docs/archive/classic", nextjs("en", "<div class=\"breadcrumb\">Docs</div><main>", `<div class="contentColumn">`, "</div></main>"), "User-agent: *\nDisallow: /cgi-bin\n", false},
	{"Auth0", "auth0.com", "/docs", []string{"/docs/authenticate", "/docs/manage-users", "/docs/secure"}, "/docs/quickstarts/spa", nextjs("en", "<div class=\"breadcrumbs\">Docs</div><main>", `<article class="content-area">`, "<a class=\"edit-page\" href=\"/edit\">Edit</a></article></main>"), "User-agent: *\nDisallow: /docs/drafts\n", false},
	{"Firebase Auth", "firebase.google.com", "/docs/auth", []string{"/docs/auth/web", "/docs/auth/android", "/docs/auth/admin"}, "/docs/auth/release-notes/2026", read("pages/devsite.html"), "User-agent: *\nDisallow: /s/results\n", false},
	{"Clerk", "clerk.com", "/docs", []string{"/docs/users", "/docs/sessions", "/docs/organizations"}, "/docs/upgrade-guides/core-2", nextjs("en", "<main>", `<article>`, "</article></main>"), "User-agent: *\nAllow: /\n", false},
	{"Twilio", "www.twilio.com", "/docs/messaging", []string{"/docs/messaging/services", "/docs/sms/send", "/docs/voice/calls"}, "/docs/tutorials/first", nextjs("en", "<div class=\"breadcrumb\">Docs</div><main>", `<article class="css-0">`, "</article></main>"), "User-agent: *\nDisallow: /console\n", false},
	{"SendGrid", "docs.sendgrid.com", "/for-developers", []string{"/for-developers/sending-email", "/for-developers/parsing-email", "/for-developers/tracking-events"}, "/for-developers/release-notes/2026", nextjs("en", "", `<main class="content">`, "</main>"), "", false},
	{"SES", "docs.aws.amazon.com", "/ses/latest/dg", []string{"/ses/latest/dg/send-email.html", "/ses/latest/dg/receive-email.html", "/ses/latest/APIReference/Welcome.html"}, "/ses/latest/dg/release-notes/all.html", read("pages/awsdocs.html"), "User-agent: *\nDisallow: /search/\n", false},
	{"Pinecone", "docs.pinecone.io", "/guides", []string{"/guides/indexes", "/guides/data", "/reference/api"}, "/guides/release-notes/2026", read("pages/readme.html"), "User-agent: *\nAllow: /\n", false},
	{"Qdrant", "qdrant.tech", "/documentation", []string{"/documentation/concepts", "/documentation/guides", "/documentation/cloud"}, "/documentation/changelog/v1", read("pages/hugo.html"), "User-agent: *\nAllow: /\n", false},
	{"Weaviate", "weaviate.io", "/developers/weaviate", []string{"/developers/weaviate/concepts", "/developers/weaviate/search", "/developers/weaviate/manage-data"}, "/developers/weaviate/release-notes/v1", read("pages/docusaurus.html"), "User-agent: *\nAllow: /\n", false},
}

// topics are below each chapter; details below the first of them.
var topics = []string{"overview", "errors"}

func (p provider) site() *Site {
	s := &Site{Host: p.host, Seed: p.seed, Robots: p.robots, page: p.page, pages: map[string]kept{}, now: published}
	seed := Page{Title: p.title("API documentation"), Sections: p.sections("documentation"), Links: append([]string{}, p.chapters...)}
	// Links as on real sites, which a crawl must resolve or ignore.
	seed.Links = append(seed.Links, p.blocked, "/pricing", "https://status.example.com/", "#authentication", "mailto:support@example.com",
		"https://"+p.host+p.chapters[0]+"/?utm_source=nav#top", "javascript:void(0)")
	s.Set(p.seed, seed)
	s.Set(p.blocked, Page{Title: p.title("Changelog"), Sections: p.sections("changelog")})
	for i, chapter := range p.chapters {
		page := Page{Title: p.title(last(chapter)), Sections: p.sections(last(chapter))}
		for _, topic := range topics {
			at := strings.TrimSuffix(chapter, ".html") + "/" + topic
			page.Links = append(page.Links, at)
			below := Page{Title: p.title(last(chapter) + " " + topic), Sections: p.sections(last(chapter) + " " + topic), Links: []string{chapter}}
			if i == 0 && topic == topics[0] {
				below.Links = append(below.Links, at+"/limits")
				s.Set(at+"/limits", Page{Title: p.title(last(chapter) + " limits"), Sections: p.sections(last(chapter) + " limits"), Links: []string{at}})
			}
			s.Set(at, below)
		}
		s.Set(chapter, page)
	}
	return s
}

// nextWeek is edition 2: a page more and a link to it, one changed in its last
// section, one gone.
func (s *Site) nextWeek(p provider) {
	s.Later()
	added := strings.TrimSuffix(p.chapters[1], ".html") + "/batch"
	s.Set(added, Page{Title: p.title("batch"), Sections: p.sections("batch")})
	chapter, _ := s.Page(p.chapters[1])
	chapter.Links = append(chapter.Links, added)
	s.Set(p.chapters[1], chapter)

	at := strings.TrimSuffix(p.chapters[2], ".html") + "/errors"
	changed, _ := s.Page(at)
	final := &changed.Sections[len(changed.Sections)-1]
	final.Text += " Since this week the limit is counted by project."
	s.Set(at, changed)

	s.Remove(strings.TrimSuffix(p.chapters[0], ".html") + "/errors")
}

func last(path string) string {
	return strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".html")
}

func (p provider) title(of string) string {
	words := strings.ReplaceAll(of, "-", " ")
	return strings.ToUpper(words[:1]) + words[1:] + " – " + p.name
}

func (p provider) outline(subject string) []section {
	if p.korean {
		return []section{
			{Heading: "개요", Text: "이 문서는 " + subject + " 기능을 설명하는 예시 문서입니다. 연동을 시작하기 전에 시크릿 키를 발급받고, 테스트 환경에서 결제 요청과 승인 과정을 확인하세요. 실제 서비스의 내용이 아닙니다."},
			{Heading: "인증", Text: subject + " 요청에는 시크릿 키를 사용합니다. 키는 서버에서만 사용하고 브라우저에 노출하지 마세요.", Lang: "bash", Code: "curl https://" + p.host + "/v1/" + strings.ReplaceAll(subject, " ", "/") + " \\\n  -u test_sk_demo: \\\n  -H \"Content-Type: application/json\""},
			{Heading: "파라미터", Text: subject + " 요청의 파라미터입니다.", Table: [][]string{{"이름", "타입", "설명"}, {"orderId", "string", subject + " 주문 번호"}, {"amount", "number", "결제 금액"}}},
			{Heading: "한도", Text: subject + " 요청은 1분에 60회까지 허용되며, 한도를 넘으면 429 응답을 보냅니다."},
		}
	}
	return []section{
		{Heading: "Overview", Text: "This page describes " + subject + " in a made-up edition of the " + p.name + " documentation. It shows how a request is built, what comes back, and what to do when something goes wrong. Nothing here is the provider's own text."},
		{Heading: "Authentication", Text: "Every " + subject + " request carries a key in its header. Keep the key on the server and never send it to a browser.", Lang: "python",
			Code: "import demo\n\nclient = demo.Client(key=\"test\")\nfor item in client.list(\"" + subject + "\"):\n    if item.ready:\n        print(item.id)"},
		{Heading: "Parameters", Text: "What a " + subject + " request takes.", Table: [][]string{{"Name", "Type", "Meaning"}, {"id", "string", "which " + subject + " object"}, {"limit", "integer", "how many come back, 1 to 100"}}},
		{Heading: "Limits", Text: "A project may send 60 " + subject + " requests a minute. Past that the answer is 429 with a Retry-After header, and the client should wait that long before it asks again."},
	}
}
