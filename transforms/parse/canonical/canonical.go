// Package canonical has the key that identifies a web page, the address to fetch
// it from, and the scopes of path patterns that a crawl may visit. It is pure: no
// network, no clock, no logging. No promise: see docs/library.md.
package canonical

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Why a link names no page to visit. The caller drops the link; --explain shows the
// reason.
var (
	ErrEmpty    = errors.New("the link is empty")
	ErrFragment = errors.New("the link points into its own page")
	ErrScheme   = errors.New("the link is not http or https")
	ErrURL      = errors.New("the link is no valid URL")
)

// Key is a page's identity: a normalised form of u. The scheme is always https; the
// host is in lower case, without www. and default port; there is no user
// information, no session id in the path, no fragment, no repeated and no trailing slash. Of the query only
// the parameters in keep remain, sorted by name, the values of one name in their
// order; "*" in keep stands for all that do not track visitors. Percent-encodings
// are decoded where that does not change the meaning: unreserved characters and
// printable UTF-8; %2F, %3F, %23 and %25 stay. A key is text to compare and to
// show, never an address to fetch. The key of a key is the same key. The error is
// ErrScheme or ErrURL.
func Key(u *url.URL, keep []string) (string, error) {
	switch u.Scheme {
	case "http", "https":
	default:
		return "", fmt.Errorf("URL %.200q: %w", u.Redacted(), ErrScheme)
	}
	host := Host(u)
	if host == "" {
		return "", fmt.Errorf("URL %.200q has no host: %w", u.Redacted(), ErrURL)
	}
	key := "https://" + host + keyPath(escapedPath(u))
	if q := keyQuery(u.RawQuery, keep); q != "" {
		key += "?" + q
	}
	return key, nil
}

// Host is the part of a URL's authority that scopes and keys compare: lower
// case, as names on the Internet are written (xn--…), without user information, www., trailing dots and default port (443, and
// 80 of http).
func Host(u *url.URL) string {
	host := strings.TrimRight(strings.ToLower(u.Hostname()), ".")
	if strings.ContainsFunc(host, func(c rune) bool { return c > unicode.MaxASCII }) {
		if ascii, err := hosts.ToASCII(host); err == nil { // else it is no host's name, and equal to none
			host = ascii
		}
	}
	// "www.com" is a domain of its own, not the host of a "com".
	if rest, ok := strings.CutPrefix(host, "www."); ok && strings.Contains(rest, ".") {
		host = rest
	}
	if strings.IndexByte(host, ':') >= 0 {
		host = "[" + host + "]"
	}
	if p := u.Port(); host != "" && p != "" && p != "443" && (p != "80" || u.Scheme != "http") {
		host += ":" + p
	}
	return host
}

// Path is the part of a key that scopes match: from the first slash after the
// host up to the query.
func Path(key string) string {
	_, rest, _ := strings.Cut(key, "://")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return "/"
	}
	path, _, _ := strings.Cut(rest[slash:], "?")
	return path
}

// escapedPath is u.EscapedPath, but in a path that has characters besides ASCII, as that
// of a key, it escapes no more than these.
func escapedPath(u *url.URL) string {
	if path, err := url.PathUnescape(u.RawPath); err != nil || path != u.Path {
		return u.EscapedPath() // it was not parsed, or needs no RawPath
	}
	var b strings.Builder
	encode(&b, u.RawPath, neverInPath)
	return b.String()
}

// keyPath normalises an encoded path: escapes, session id, dot segments (RFC 3986 section
// 5.2.4), then repeated and trailing slashes.
func keyPath(escaped string) string {
	return "/" + strings.Join(slices.DeleteFunc(dotless(strings.Split(withoutSession(decode(escaped)), "/")),
		func(segment string) bool { return segment == "" }), "/")
}

// withoutSession removes the session id that servers of Java write into a path for
// visitors without cookies: each visit gets another one, for the same page. The address keeps
// it: some servers redirect who comes without.
func withoutSession(path string) string {
	if strings.IndexByte(path, ';') < 0 {
		return path
	}
	return session.ReplaceAllString(path, "")
}

var session = regexp.MustCompile(`(?i);jsessionid=[^;/]*`)

// dotless removes the dot segments of a path that begins with a slash; for a dot
// segment at the end there is an empty one, the trailing slash.
func dotless(segments []string) []string {
	kept := segments[:0]
	for i, s := range segments {
		last := i == len(segments)-1
		switch dots(s) {
		case 0:
			kept = append(kept, s)
			continue
		case 2:
			if len(kept) > 1 { // the first stands before the leading slash
				kept = kept[:len(kept)-1]
			}
		}
		if last {
			kept = append(kept, "")
		}
	}
	return kept
}

// dots is 1 for "." and 2 for "..", their dots encoded or not, else 0.
func dots(segment string) int {
	if len(segment) == 0 || len(segment) > len("%2e%2e") || segment[0] != '.' && segment[0] != '%' {
		return 0
	}
	switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
	case ".":
		return 1
	case "..":
		return 2
	}
	return 0
}

// decode decodes the escapes of unreserved characters (RFC 3986 section 2.3) and of
// printable UTF-8, and writes all others in upper case.
func decode(s string) string {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	for i < len(s) {
		c, ok := unhex(s[i:])
		switch {
		case !ok:
			b.WriteByte(s[i])
			i++
		case unreserved(c):
			b.WriteByte(c)
			i += 3
		case c >= utf8.RuneSelf:
			var sequence [utf8.UTFMax]byte
			n := 0
			for n < len(sequence) {
				if sequence[n], ok = unhex(s[i+3*n:]); !ok {
					break
				}
				n++
			}
			r, size := utf8.DecodeRune(sequence[:n])
			if (r != utf8.RuneError || size > 1) && unicode.IsPrint(r) {
				b.WriteRune(r)
				i += 3 * size
				continue
			}
			fallthrough
		default:
			fmt.Fprintf(&b, "%%%02X", c)
			i += 3
		}
	}
	return b.String()
}

// unhex is the byte of the escape that s begins with.
func unhex(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	hi, ok1 := nibble(s[1])
	lo, ok2 := nibble(s[2])
	return hi<<4 | lo, ok1 && ok2
}

func nibble(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func unreserved(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// keyQuery has the parameters of a query that are in keep, sorted and encoded
// uniformly.
func keyQuery(query string, keep []string) string {
	if query == "" || len(keep) == 0 {
		return ""
	}
	type parameter struct{ name, text string }
	var kept []parameter
	for pair := range strings.SplitSeq(query, "&") {
		name, value, hasValue := strings.Cut(pair, "=")
		name = formDecode(name)
		value = formDecode(value)
		if name == "" || !keeps(keep, name, value) {
			continue
		}
		text := url.QueryEscape(name)
		if hasValue {
			text += "=" + url.QueryEscape(value)
		}
		kept = append(kept, parameter{name, text})
	}
	slices.SortStableFunc(kept, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	texts := make([]string, len(kept))
	for i, p := range kept {
		texts[i] = p.text
	}
	return strings.Join(texts, "&")
}

// keeps reports whether a policy's list keeps a parameter; "*" keeps all that do not
// track visitors.
func keeps(keep []string, name, value string) bool {
	return slices.Contains(keep, name) || slices.Contains(keep, "*") && !Tracking(name, value)
}

// formDecode decodes a name or value of a query; an invalid escape stays as it is,
// as in browsers.
func formDecode(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		switch c, ok := unhex(s[i:]); {
		case ok:
			b = append(b, c)
			i += 3
		case s[i] == '+':
			b = append(b, ' ')
			i++
		default:
			b = append(b, s[i])
			i++
		}
	}
	return string(b)
}
