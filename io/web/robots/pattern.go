package robots

import "strings"

// pattern is a rule's path in the form it is compared in.
type pattern struct {
	parts    []string // normalized text between the wildcards, at least one
	anchored bool     // the pattern ended in $
	length   int      // length by which rules are ranked, wildcards included
	anywhere bool     // a wildcard hides whether its encoded slash is in the path or in the query
}

// compile prepares a rule's value. Only a final $ is an anchor; elsewhere it is an
// ordinary character.
func compile(value string) pattern {
	body, anchored := strings.CutSuffix(value, "$")
	normal := normalize(body, true, true)
	length := len(normal)
	if anchored {
		length++
	}
	star := strings.IndexByte(normal, '*')
	return pattern{parts: strings.Split(normal, "*"), anchored: anchored, length: length,
		anywhere: star >= 0 && (strings.Contains(normal[star:], "%2F") || strings.Contains(normal[star:], "%3F"))}
}

// all reports whether the pattern matches every path.
func (p pattern) all() bool {
	text := strings.Join(p.parts, "")
	return (text == "" && len(p.parts) > 1 || text == "/" && p.parts[0] != "") && (!p.anchored || len(p.parts) > 1)
}

// target is a path in the forms that patterns are compared with.
type target struct{ normal, path string }

func newTarget(path string) target {
	t := target{normal: normalize(path, false, true)}
	if t.path = t.normal; strings.Contains(path, "?") {
		t.path = normalize(path, false, false)
	}
	return t
}

// match reports whether the pattern matches the normalized target from its
// start. The first place where each part matches is enough, because the wildcard
// after it matches any rest; so no backtracking is needed and the time is bounded.
func (p pattern) match(t target) bool {
	return p.matches(t.normal) || p.anywhere && p.matches(t.path)
}

func (p pattern) matches(target string) bool {
	rest, ok := strings.CutPrefix(target, p.parts[0])
	if !ok {
		return false
	}
	last := len(p.parts) - 1
	if last == 0 {
		return !p.anchored || rest == ""
	}
	for _, part := range p.parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	if p.anchored {
		return strings.HasSuffix(rest, p.parts[last])
	}
	return strings.Contains(rest, p.parts[last])
}

// normalize brings a path to the form both sides are compared in (RFC 9309
// section 2.2.2): octets that may not stand in a URI are percent-encoded, encoded
// unreserved characters are decoded, hexadecimal digits are upper case. Reserved
// characters mean the same encoded or not; they are decoded, so that the length by which
// rules are ranked does not depend on how they were written. A literal $ and, outside
// patterns, * are encoded instead, so that a rule can name them as %24 and %2A.
// A slash and a question mark divide a path, and stay as written there; after the first
// question mark they are data, as in the RFC's own example ?baz=https://foo.bar.
// Unless queries is set, all of s is a path.
func normalize(s string, wildcards, queries bool) string {
	const hex = "0123456789ABCDEF"
	unchanged := true
	for i := 0; i < len(s) && unchanged; i++ {
		c := s[i]
		unchanged = c != '%' && !encode(c, wildcards)
	}
	if unchanged {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	query := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			v := hexValue(s[i+1])<<4 | hexValue(s[i+2])
			i += 2
			if unreserved(v) || reserved(v) || query && (v == '/' || v == '?') {
				b.WriteByte(v)
			} else {
				b.Write([]byte{'%', hex[v>>4], hex[v&15]})
			}
		case encode(c, wildcards):
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		default:
			query = query || queries && c == '?'
			b.WriteByte(c)
		}
	}
	return b.String()
}

// encode reports whether an octet is compared in its encoded form.
func encode(c byte, wildcards bool) bool {
	return c <= ' ' || c >= 0x7f || c == '$' || c == '*' && !wildcards || strings.IndexByte("\"<>\\^`{|}", c) >= 0
}

// unreserved characters mean the same encoded or not (RFC 3986 section 2.3).
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// reserved characters have to be encoded before the comparison (RFC 9309 section 2.2.2),
// and so cannot be told from encoded ones. The number sign ends a URL, and stays as written;
// of the slash and the question mark see normalize.
func reserved(c byte) bool { return strings.IndexByte("!&'()+,:;=@[]", c) >= 0 }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
