// Package answer tells what answered a request: the robots.txt, sitemap, feed or page that was expected, or a
// wall in its place, such as a challenge, a consent page or a soft 404. It is pure: no network, no clock, no log.
//
// A job calls Classify with each answer before it believes the answer: before a page is stored, before a thing
// counts as gone, forbidden or done, and before the next sitemap candidate is requested.
//
//	v := answer.Classify(answer.Response{Status: r.Status, Header: r.Header, URL: u, Final: r.Final, Body: r.Body, Want: answer.Page})
//	if v.Kind.Wall() { … v.Evidence, v.Vendor … }
//
// docs: Soft404 and Login are no pages. catalog: an empty list page is the end of a list only if its
// verdict is Page or JSON. news: Challenge, Consent, Login and Soft404 are no articles; how free an article is, its provider decides. seed:
// the kinds of robots.txt and of sitemap candidates. For an address that answers with a status over 399 the kind is a wall too: it tells
// a challenge from a plain refusal, and the status tells 403 from 404.
//
// Where a phrase stands decides, and how much other text there is, not the phrase alone: a page about captchas, cookies
// or the status 404 is a page. A consent banner on a page, a login form in its header and the teaser of an
// article with a paywall are parts of pages. No promise: see docs/library.md.
package answer

import (
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// Kind is what an answer is.
type Kind string

// What is expected of an answer.
const (
	Robots  Kind = "robots"  // rules for crawlers
	Sitemap Kind = "sitemap" // a sitemap in any form of the protocol; of a request for a sitemap also RSS and Atom
	Feed    Kind = "feed"    // RSS, RDF, Atom, JSON Feed
	Page    Kind = "page"    // HTML
	JSON    Kind = "json"
	PDF     Kind = "pdf"
	Text    Kind = "text" // any other text: plain, Markdown, XML, YAML
)

// What answers in place of it.
const (
	Challenge   Kind = "challenge" // a test for bots, or the refusal of one
	Consent     Kind = "consent"   // a request for consent to cookies in place of the page
	Login       Kind = "login"
	Paywall     Kind = "paywall"     // an offer of subscriptions without any article. The teaser of an article is a page
	Soft404     Kind = "soft_404"    // not found, with a status that says found
	Maintenance Kind = "maintenance" // the site is closed for a while
	Parked      Kind = "parked"      // the domain is for sale, or its server has no site yet
	ErrorPage   Kind = "error_page"  // a status over 399 that nothing else explains, or an error with a status of success
	Empty       Kind = "empty"
	OtherType   Kind = "other_type" // a good answer of a type other than the one expected
)

// Wall reports whether a site shows something in place of what it has at the address.
func (k Kind) Wall() bool {
	switch k {
	case Challenge, Consent, Login, Paywall, Soft404, Maintenance, Parked, ErrorPage:
		return true
	}
	return false
}

// Response is an answer to a request.
type Response struct {
	Status int
	Header map[string][]string // with canonical keys, as net/http has them
	URL    string              // of the request
	Final  string              // after redirects; "" if there were none
	Body   []byte              // decompressed; it may be cut off
	Want   Kind                // "" if any type is right
}

// Verdict tells what an answer is.
type Verdict struct {
	Kind Kind
	// Evidence is what shows it, for a person: a header, a title, a phrase, a host. It is one clean line of at
	// most 200 bytes. It is "" for what was expected.
	Evidence string
	Vendor   string // of the wall, where it is known: "Cloudflare"
}

const maxEvidence = 200

// OffersSubscription reports whether the text of an article, in lower case, has a publisher's words for what
// stands in place of the rest.
func OffersSubscription(text string) bool {
	return slices.ContainsFunc(slices.Concat(signs()["text"], signs()["article"]), func(s sign) bool {
		return s.kind == Paywall && strings.Contains(text, s.text)
	})
}

// Classify tells what r is. It reads at most the first MiB of the body.
func Classify(r Response) Verdict {
	v := classify(r)
	v.Evidence = untrusted.Line(v.Evidence, maxEvidence)
	return v
}
