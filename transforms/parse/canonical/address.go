package canonical

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Address is the URL to fetch for a link: href resolved against base as in browsers
// (WHATWG URL Standard, the special schemes http and https), without fragment,
// user information and the tracking parameters that keep does not name. IPv4
// addresses in other notations than four decimal numbers are refused. base may
// be nil where href is absolute. The error is one of ErrEmpty, ErrFragment,
// ErrScheme, ErrURL.
func Address(base *url.URL, href string, keep []string) (*url.URL, error) {
	text, err := Resolve(base, href, keep)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("link %.200q: %w: %w", href, ErrURL, err)
	}
	return u, nil
}

// Resolve is Address as text.
func Resolve(base *url.URL, href string, keep []string) (string, error) {
	s := strings.TrimFunc(href, func(r rune) bool { return r <= ' ' })
	if strings.ContainsAny(s, "\t\r\n") {
		s = lineEnds.Replace(s)
	}
	switch {
	case s == "":
		return "", ErrEmpty
	case s[0] == '#':
		return "", ErrFragment
	}
	scheme, rest, err := schemeOf(base, href, s)
	if err != nil {
		return "", err
	}
	rest, _, _ = strings.Cut(rest, "#")
	path, query, hasQuery := strings.Cut(rest, "?")

	var host string
	if twoSlashes(path) {
		path = strings.TrimLeft(path, `/\`)
		end := strings.IndexAny(path, `/\`)
		if end < 0 {
			end = len(path)
		}
		if host, err = authority(scheme, path[:end]); err != nil {
			return "", fmt.Errorf("link %.200q: %w", href, err)
		}
		path = path[end:]
	} else {
		host = base.Host
		if path == "" && !hasQuery {
			query = base.RawQuery
		}
		path = againstBase(base, path)
	}

	var b strings.Builder
	b.Grow(len(scheme) + len(host) + len(path) + len(query) + 8)
	b.WriteString(scheme)
	b.WriteString("://")
	b.WriteString(host)
	if path == "" || !slash(path[0]) {
		path = "/" + path
	}
	writePath(&b, path)
	if query = withoutTracking(query, keep); query != "" {
		b.WriteByte('?')
		encode(&b, query, "\"#<>'")
	}
	return b.String(), nil
}

// schemeOf returns the scheme of the URL that a link leads to, and the rest of the link,
// which begins with two slashes if it has a host. s is href without white space.
func schemeOf(base *url.URL, href, s string) (scheme, rest string, err error) {
	scheme, rest = splitScheme(s)
	switch {
	case scheme == "" && (base == nil || base.Host == ""):
		return "", "", fmt.Errorf("link %.200q is relative and its page has no address: %w", href, ErrURL)
	case scheme == "" && base.Scheme != "http" && base.Scheme != "https":
		return "", "", fmt.Errorf("link %.200q: %w", href, ErrScheme)
	case scheme == "":
		return base.Scheme, rest, nil
	case scheme != "http" && scheme != "https":
		return "", "", fmt.Errorf("link %.200q: %w", href, ErrScheme)
	case base == nil || base.Scheme != scheme || twoSlashes(rest):
		return scheme, "//" + strings.TrimLeft(rest, `/\`), nil
	}
	return scheme, rest, nil // "https:page" is relative to a base with that scheme
}

// againstBase resolves a link's path, without a host, against that of its page.
func againstBase(base *url.URL, path string) string {
	switch {
	case path == "":
		return base.EscapedPath()
	case slash(path[0]):
		return path
	}
	dir := base.EscapedPath()
	return dir[:strings.LastIndexByte(dir, '/')+1] + path
}

var lineEnds = strings.NewReplacer("\t", "", "\r", "", "\n", "")

func slash(c byte) bool { return c == '/' || c == '\\' }

func twoSlashes(s string) bool { return len(s) > 1 && slash(s[0]) && slash(s[1]) }

// splitScheme cuts off the scheme, lower case, "" where there is none.
func splitScheme(s string) (scheme, rest string) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == ':' && i > 0:
			return strings.ToLower(s[:i]), s[i+1:]
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return "", s
		}
	}
	return "", s
}

// hosts is UTS 46 as the URL Standard applies it.
var hosts = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.CheckJoiners(true),
	idna.Transitional(false), idna.CheckHyphens(false), idna.StrictDomainName(false))

// authority is the host, with its port where that is not the scheme's own.
func authority(scheme, s string) (string, error) {
	s = s[strings.LastIndexByte(s, '@')+1:]
	host, port := s, ""
	if colon := strings.LastIndexByte(s, ':'); colon > strings.LastIndexByte(s, ']') {
		host, port = s[:colon], s[colon+1:]
	}
	n := 0
	for i := range len(port) {
		if c := port[i]; c < '0' || c > '9' {
			return "", fmt.Errorf("port %.20q: %w", port, ErrURL)
		} else if n = n*10 + int(c-'0'); n > 65535 {
			return "", fmt.Errorf("port %.20q: %w", port, ErrURL)
		}
	}
	if strings.HasPrefix(host, "[") {
		ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil || !ip.Is6() || ip.Zone() != "" || host[len(host)-1] != ']' {
			return "", fmt.Errorf("host %.200q: %w", host, ErrURL)
		}
		host = "[" + ip.String() + "]"
	} else if !plainHost(host) {
		decoded := formDecode(strings.ReplaceAll(host, "+", "%2B"))
		ascii, err := hosts.ToASCII(decoded)
		if err != nil || !utf8.ValidString(decoded) || strings.ContainsFunc(ascii, forbidden) {
			return "", fmt.Errorf("host %.200q: %w", host, ErrURL)
		}
		host = ascii
	}
	if host == "" {
		return "", fmt.Errorf("no host: %w", ErrURL)
	}
	if trimmed := strings.TrimSuffix(host, "."); endsInNumber(trimmed) {
		ip, err := netip.ParseAddr(trimmed)
		if err != nil {
			return "", fmt.Errorf("host %.200q is no address of four decimal numbers: %w", host, ErrURL)
		}
		host = ip.String()
	}
	if port != "" && (scheme != "http" || n != 80) && (scheme != "https" || n != 443) {
		host = fmt.Sprintf("%s:%d", host, n)
	}
	return host, nil
}

// forbidden are the URL Standard's forbidden domain code points, and those that
// Go's parser takes in no host.
func forbidden(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("#/:<>?@[\\]^|%\"`{}", r)
}

// plainHost reports whether a host needs no folding.
func plainHost(host string) bool {
	for i := range len(host) {
		if c := host[i]; ('a' > c || c > 'z') && ('0' > c || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return !strings.Contains(host, "xn--")
}

func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// writePath writes a path that begins with a slash or back-slash: back-slashes
// as slashes, without dot segments, encoded.
func writePath(b *strings.Builder, path string) {
	if strings.IndexByte(path, '\\') >= 0 {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	if strings.Contains(path, "/.") || strings.Contains(path, "/%2") {
		path = strings.Join(dotless(strings.Split(path, "/")), "/")
	}
	encode(b, path, neverInPath)
}

// neverInPath are the ASCII characters that a path has only encoded.
const neverInPath = "\"#<>?`{}^|\\"

// encode writes s and percent-encodes every character that is not allowed in a URL,
// and those in more. An invalid escape becomes an encoded percent
// sign, so that Go's parser and every server read the same.
func encode(b *strings.Builder, s, more string) {
	for i := range len(s) {
		c := s[i]
		if c == '%' {
			if _, ok := unhex(s[i:]); ok {
				b.WriteByte(c)
				continue
			}
		} else if ' ' < c && c < 0x7f && strings.IndexByte(more, c) < 0 {
			b.WriteByte(c)
			continue
		}
		const hex = "0123456789ABCDEF"
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
}

// withoutTracking removes the tracking parameters from a query and leaves the
// rest as written.
func withoutTracking(query string, keep []string) string {
	tracks := func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		name, value = formDecode(name), formDecode(value)
		return Tracking(name, value) && !keeps(keep, name, value)
	}
	found := false
	for pair := range strings.SplitSeq(query, "&") {
		found = found || tracks(pair)
	}
	if !found {
		return query
	}
	var b strings.Builder
	for pair := range strings.SplitSeq(query, "&") {
		if tracks(pair) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(pair)
	}
	return b.String()
}
