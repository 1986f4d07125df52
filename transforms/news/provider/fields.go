package provider

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// describe adds what a page says about its article for machines.
func (a *Article) describe(p *article.Page) {
	said, _ := p.Data.Article() // without one its fields are empty
	a.Description = cmp.Or(p.Data.First("og:description", "description"), said.Description)
	a.Section = cmp.Or(a.Section, said.Section)
	tags := append(slices.Clone(p.Data.Meta["article:tag"]), said.Keywords...)
	if len(tags) == 0 {
		tags = p.Data.Meta["news_keywords"]
	}
	for _, list := range tags {
		for tag := range strings.SplitSeq(list, ",") {
			if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(a.Tags, tag) {
				a.Tags = append(a.Tags, tag)
			}
		}
	}
	for _, address := range slices.Concat(said.Images, p.Data.Meta["og:image"], p.Data.Meta["og:image:url"], p.Data.Meta["twitter:image"]) {
		if !slices.Contains(a.Images, address) {
			a.Images = append(a.Images, address)
		}
	}
	for blog := range p.Data.All("LiveBlogPosting") {
		a.Live = a.Live || len(blog.Values("liveBlogUpdate")) > 0
	}
	a.Paywalled = a.Paywalled || said.Paid || walled(p.Root, a.Body)
}

// maxTeaser is how many characters of an article a page shows at most in front of a
// wall. A longer text is kept: many free articles offer a subscription at their end.
const maxTeaser = 800

// wallClasses are words in the class or id of what stands in place of the rest of an article.
var wallClasses = []string{"paywall", "pay-wall", "piano-offer", "article-wall", "premium-wall", "subscriber-only", "subscribers-only", "subscription-wall",
	"subscribe-wall", "regwall", "metered-wall", "locked-content", "content-locked", "premium-content-lock", "offer-wall"}

// wallTexts are what publishers write there, and not in menus and footers.
var wallTexts = []string{"subscribe to continue reading", "subscribe to read the full", "to continue reading, subscribe", "to continue reading this article, subscribe",
	"유료 회원만 볼 수 있", "유료회원 전용 기사", "구독 후 이용하실 수", "이 기사는 구독자만", "cet article est réservé aux abonnés", "la suite est réservée aux abonnés", "dieser artikel ist nur für abonnenten",
	"este contenido es exclusivo para suscriptores", "contenuto riservato agli abbonati", "conteúdo exclusivo para assinantes", "この記事は有料会員", "有料会員になると続き"}

var wallElements = cascadia.MustCompile("[class], [id]")

// walled reports whether a page shows a short beginning of its article and then a wall:
// an element with a wall's name, or a publisher's words for it.
func walled(root *html.Node, body string) bool {
	if body == "" || utf8.RuneCountInString(body) > maxTeaser {
		return false
	}
	for _, n := range cascadia.QueryAll(root, wallElements) {
		if n.Data == "body" || n.Data == "html" || article.Text(n) == "" {
			continue
		}
		wall, hidden := false, false
		for _, a := range n.Attr {
			wall = wall || (a.Key == "class" || a.Key == "id") && named(a.Val)
			hidden = hidden || a.Key == "hidden" || a.Key == "aria-hidden" && a.Val == "true" || a.Key == "style" && strings.Contains(strings.ReplaceAll(a.Val, " ", ""), "display:none")
		}
		if wall && !hidden { // a hidden one waits on every page
			return true
		}
	}
	text := strings.ToLower(article.Text(root))
	return slices.ContainsFunc(wallTexts, func(s string) bool { return strings.Contains(text, s) })
}

// named reports whether one of the words of a class or id is a wall's.
func named(names string) bool {
	for name := range strings.FieldsSeq(strings.ReplaceAll(strings.ToLower(names), "_", "-")) {
		for _, wall := range wallClasses {
			if name == wall || strings.HasSuffix(name, "-"+wall) || strings.HasPrefix(name, wall+"-") && !strings.HasSuffix(name, "-free") {
				return true
			}
		}
	}
	return false
}
