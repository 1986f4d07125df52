package domain

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

var errEmptyURL = fmt.Errorf("the URL is empty: %w", ErrNoHost)

// hostOf finds the host in what people write into raw_url, in canonical form. It
// reads more than RFC 3986 allows, much as a browser's address line does:
// spaces around, a missing scheme, back-slashes, a port, user info.
//
// Without "//" a colon is a port when digits follow it; otherwise it belongs to
// a scheme that has no host (mailto:, javascript:). An e-mail address is no URL.
func hostOf(rawURL string) (string, error) {
	s := rawURL
	if s == "" {
		return "", errEmptyURL
	}
	if !plain(s[0]) || !plain(s[len(s)-1]) {
		if s = strings.Trim(s, " \t\r\n\f\v\u00a0\ufeff"); s == "" {
			return "", errEmptyURL
		}
	}
	authority, marked, ok := splitAuthority(s)
	if !ok {
		return "", fmt.Errorf("URL %.200q: %w", rawURL, ErrNoHost)
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if !marked {
			return "", fmt.Errorf("URL %.200q looks like an e-mail address: %w", rawURL, ErrNoHost)
		}
		authority = authority[at+1:]
	}
	host, err := withoutPort(authority)
	if err != nil {
		return "", err
	}
	if host == "" {
		return "", fmt.Errorf("URL %.200q: %w", rawURL, ErrNoHost)
	}
	return foldHost(host)
}

// splitAuthority is the part of a URL that has the user info, the host and the port.
// marked reports that a scheme or two slashes precede it; ok is false for a scheme
// that has no host.
func splitAuthority(s string) (authority string, marked, ok bool) {
	switch scheme := schemeLen(s); {
	case strings.HasPrefix(s, "//"):
		authority, marked = s[2:], true
	case scheme > 0 && strings.HasPrefix(s[scheme:], "://"):
		authority, marked = s[scheme+3:], true
	case scheme > 0 && isHTTP(s[:scheme]) && !isPort(s[scheme+1:]): // http:/host, http:\\host
		authority, marked = strings.TrimLeft(s[scheme+1:], `/\`), true
	case scheme > 0 && !isPort(s[scheme+1:]):
		return "", false, false
	default:
		authority = s
	}
	for i := 0; i < len(authority); i++ {
		if c := authority[i]; c == '/' || c == '\\' || c == '?' || c == '#' {
			return authority[:i], marked, true
		}
	}
	return authority, marked, true
}

// withoutPort is the host of an authority without user info. It refuses addresses in
// brackets and invalid ports.
func withoutPort(authority string) (string, error) {
	if strings.HasPrefix(authority, "[") {
		inside, _, closed := strings.Cut(authority[1:], "]")
		if _, err := netip.ParseAddr(inside); closed && err == nil {
			return "", fmt.Errorf("host %.200q: %w", authority, ErrIP)
		}
		return "", fmt.Errorf("host %.200q: %w", authority, ErrBadHost)
	}
	colon := strings.IndexByte(authority, ':')
	switch {
	case colon < 0:
		return authority, nil
	case isPort(authority[colon+1:]) || colon+1 == len(authority):
		return authority[:colon], nil
	}
	if _, err := netip.ParseAddr(authority); err == nil {
		return "", fmt.Errorf("host %.200q: %w", authority, ErrIP)
	}
	return "", fmt.Errorf("host %.200q, its port: %w", authority, ErrBadHost)
}

// plain reports whether a byte is visible ASCII.
func plain(c byte) bool { return ' ' < c && c < 0x7f }

// schemeLen is the length of the text before the first colon when it has
// the form of a scheme (RFC 3986, 3.1), else 0.
func schemeLen(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i] | 0x20; {
		case s[i] == ':':
			return i
		case lowerLetter(c):
		case i > 0 && ('0' <= s[i] && s[i] <= '9' || s[i] == '+' || s[i] == '-' || s[i] == '.'):
		default:
			return 0
		}
	}
	return 0
}

func isHTTP(scheme string) bool {
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

// isPort reports whether s begins with a port, followed by the end of an authority.
func isPort(s string) bool {
	n, port := 0, 0
	for ; n < len(s) && '0' <= s[n] && s[n] <= '9'; n++ {
		if port = port*10 + int(s[n]-'0'); port > 65535 {
			return false
		}
	}
	return n > 0 && (n == len(s) || strings.IndexByte(`/\?#`, s[n]) >= 0)
}

// lookup is UTS 46 as browsers apply it: non-transitional (ß stays), with the
// Bidi and joiner rules. Hyphens and underscores are judged by validHost, since
// real hosts have them where the registration rules do not.
var lookup = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.CheckJoiners(true),
	idna.Transitional(false),
	idna.CheckHyphens(false),
	idna.StrictDomainName(false),
)

var lineEnds = strings.NewReplacer("\t", "", "\r", "", "\n", "")

// foldHost returns a host name in its canonical form: lower case, ASCII, no
// trailing dot. It refuses IP addresses and names that are impossible in DNS.
func foldHost(host string) (string, error) {
	folded := strings.TrimSuffix(host, ".")
	if !canonical(folded) {
		if strings.IndexByte(folded, '%') >= 0 {
			decoded, err := url.PathUnescape(folded)
			if err != nil {
				return "", fmt.Errorf("host %.200q: %w", host, ErrBadHost)
			}
			folded = decoded
		}
		// Tabs and line ends are dropped everywhere, as in the URL Standard.
		ascii, err := lookup.ToASCII(lineEnds.Replace(folded))
		if err != nil {
			return "", fmt.Errorf("host %.200q: %w: %w", host, ErrBadHost, err)
		}
		if again, err := lookup.ToASCII(ascii); err != nil || again != ascii {
			return "", fmt.Errorf("host %.200q has no stable ASCII form: %w", host, ErrBadHost)
		}
		folded = strings.TrimSuffix(ascii, ".") // an ideographic full stop became one
	}
	switch {
	case folded == "":
		return "", fmt.Errorf("host %.200q: %w", host, ErrNoHost)
	case endsInNumber(folded):
		return "", fmt.Errorf("host %.200q: %w", host, ErrIP)
	case !validHost(folded):
		return "", fmt.Errorf("host %.200q: %w", host, ErrBadHost)
	}
	return folded, nil
}

// canonical reports whether a host needs no folding: lower-case letters,
// digits, hyphens and dots, and no label in Punycode, which has to be checked.
func canonical(host string) bool {
	for i := 0; i < len(host); i++ {
		switch c := host[i]; {
		case lowerLetter(c), '0' <= c && c <= '9', c == '.':
		case c == '-':
			if i >= 3 && host[i-3:i] == "xn-" && (i == 3 || host[i-4] == '.') {
				return false
			}
		default:
			return false
		}
	}
	return host != "" && host[len(host)-1] != '.'
}

// validHost checks the lengths of RFC 1035 (2.3.4) and the letters of RFC 1123
// (2.1). An underscore is allowed, because hosts below a domain have them.
func validHost(host string) bool {
	if len(host) > 253 {
		return false
	}
	start := 0
	for i := 0; i <= len(host); i++ {
		if i == len(host) || host[i] == '.' {
			if i == start || i-start > 63 {
				return false
			}
			start = i + 1
			continue
		}
		if c := host[i]; !lowerLetter(c) && (c < '0' || '9' < c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// endsInNumber is the URL Standard's test for an IPv4 address in any notation
// (127.1, 0x7f.1, 2130706433): no top-level name is a number.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" || last[0] < '0' || '9' < last[0] {
		return false
	}
	digits := "0123456789"
	if strings.HasPrefix(last, "0x") {
		last, digits = last[2:], "0123456789abcdef"
	}
	return strings.Trim(last, digits) == ""
}

// registrableOf splits a folded host. suffix is its public suffix.
func registrableOf(host string) (registrable, suffix string, err error) {
	if endsInNumber(host) {
		return "", "", fmt.Errorf("host %.200q: %w", host, ErrIP)
	}
	lastDot := strings.LastIndexByte(host, '.')
	if lastDot < 0 {
		return "", "", fmt.Errorf("host %.200q: %w", host, ErrSingleLabel)
	}
	suffix, icann := publicsuffix.PublicSuffix(host)
	// The flag is also false for a node that is only the parent of private
	// rules (amazonaws.com); then only the top-level domain is looked up.
	if !icann && strings.IndexByte(suffix, '.') < 0 {
		if _, icann = publicsuffix.PublicSuffix(host[lastDot+1:]); !icann {
			return "", "", fmt.Errorf("host %.200q: %w", host, ErrUnlisted)
		}
	}
	registrable = host
	if len(suffix) < len(host) {
		above := host[:len(host)-len(suffix)-1]
		registrable = host[strings.LastIndexByte(above, '.')+1:]
	}
	if !registrableLabels(registrable) {
		return "", "", fmt.Errorf("registrable domain %.200q: %w", registrable, ErrBadHost)
	}
	return registrable, suffix, nil
}

// registrableLabels checks a registrable domain against the rules of registries:
// lengths as in DNS, no underscore, no hyphen at a label's ends (RFC 1123, 2.1).
func registrableLabels(host string) bool {
	if len(host) > 253 {
		return false
	}
	start := 0
	for i := 0; i <= len(host); i++ {
		if i == len(host) || host[i] == '.' {
			if i == start || i-start > 63 || host[start] == '-' || host[i-1] == '-' {
				return false
			}
			start = i + 1
			continue
		}
		if c := host[i]; !lowerLetter(c) && (c < '0' || '9' < c) && c != '-' {
			return false
		}
	}
	return true
}

// withoutWWW removes one leading www. from a host unless the rest is a public
// suffix. registrable and suffix belong to a domain that may not contain host.
func withoutWWW(host, registrable, suffix string) string {
	rest, found := strings.CutPrefix(host, "www.")
	switch {
	case !found:
		return host
	case rest == registrable && suffix != registrable: // the common case
		return rest
	}
	if own, _, err := registrableOf(host); err == nil && own == host {
		return host
	}
	if strings.IndexByte(rest, '.') < 0 {
		return host
	}
	return rest
}

// within reports whether host is below domain.
func within(host, domain string) bool {
	at := len(host) - len(domain) - 1
	return at > 0 && host[at] == '.' && host[at+1:] == domain
}
