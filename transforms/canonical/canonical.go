// Package canonical gives web pages their identity and says which of them a
// crawl may visit: the key of a URL, the address to fetch, and scopes of path
// patterns. It is pure: no network, no clock, no logging.
package canonical

import (
	"errors"
	"net/url"
)

// Why a link names no page to visit. The caller drops the link; --explain says
// which of these it was.
var (
	ErrEmpty    = errors.New("the link is empty")
	ErrFragment = errors.New("the link points into its own page")
	ErrScheme   = errors.New("the link is not http or https")
	ErrURL      = errors.New("the link is no valid URL")
)

// Key is a page's identity: u by the nine rules of CPA-001 section 3.3 and its
// appendix A. Always https, lower-case host without www. and default port, no
// user information, no fragment, no repeated and no trailing slash, no query but
// the parameters that keep names (sorted by name, their values in order; "*"
// keeps all that do not track). Percent-encodings are resolved where that does
// not change the meaning: unreserved characters and printable UTF-8; %2F, %3F,
// %23 and %25 stay. A key is text to compare and to show, never an address to
// fetch. Key of a parsed key is the same key. The error is ErrScheme or ErrURL.
func Key(u *url.URL, keep []string) (string, error) {
	return "", errors.New("not built yet")
}

// Address is what to fetch for a link: href resolved against base as browsers do
// (WHATWG URL Standard), without fragment, user information and the tracking
// parameters that keep does not name. The error is one of ErrEmpty, ErrFragment,
// ErrScheme, ErrURL.
func Address(base *url.URL, href string, keep []string) (*url.URL, error) {
	return nil, errors.New("not built yet")
}

// Tracking reports whether a query parameter serves to follow visitors and not
// to choose a page: utm_source, ref, gclid.
func Tracking(parameter string) bool { return false }

// Host is the part of a host that scopes and keys compare: lower case, without
// www., trailing dot and the default port of the scheme.
func Host(u *url.URL) string { return "" }
