package content

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// masked replaces an e-mail address.
const masked = "[email]"

// MaskEmails replaces the e-mail addresses in text by "[email]", also if the at sign is escaped or Markdown's marks are in the address. An
// address ends in an existing top-level domain. The address of a repository (git@host:, git@host/) or of a server with a password
// (scheme://user:password@host) stays.
func MaskEmails(text string) string {
	var b strings.Builder
	done := 0
	for at := 0; at < len(text); {
		if !signByte[text[at]] {
			at++
			continue
		}
		sign := atSign(text[at:])
		if sign == 0 {
			at++
			continue
		}
		start := done + localStart(text[done:at])
		end := at + sign
		domain := domainEnd(text[end:])
		if end += domain; start == at || domain == 0 || repository(text[start:at], text[end:]) || text[at] == '@' && password(text[:at]) {
			at += sign
			continue
		}
		var open string // the marks that the address opens and that stay open after it
		for _, m := range openMarks(text[start:end]) {
			switch {
			case strings.HasPrefix(text[end:], m):
				end += len(m)
			case strings.HasSuffix(text[done:start], m) && !strings.HasSuffix(text[done:start-len(m)], `\`):
				start -= len(m)
			default:
				open += m
			}
		}
		b.WriteString(text[done:start])
		b.WriteString(masked)
		b.WriteString(open)
		done, at = end, end
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// repository reports whether an at sign between two texts is that of a repository's address.
func repository(before, after string) bool {
	return before == "git" && after != "" && (after[0] == ':' || after[0] == '/')
}

// maxUserInfo is the most bytes of a URL's user and password.
const maxUserInfo = 256

// password reports whether a text ends in a URL's scheme, user and password. A user alone
// may be a person's address with http:// before it.
func password(s string) bool {
	s = s[max(0, len(s)-maxUserInfo):]
	slash := strings.LastIndexAny(s, "/@ \t\n\"'<>")
	return slash > 1 && s[slash-2:slash+1] == "://" && strings.Contains(s[slash+1:], ":")
}

// signByte has the bytes with which an at sign begins, in any of its forms.
var signByte = [256]bool{'@': true, '%': true, '&': true, 0xef: true} // 0xef begins ＠

// atSign returns the length of the at sign with which s begins, in any of its forms.
func atSign(s string) int {
	switch s[0] {
	case '@':
		return 1
	case '%', '&', "＠"[0]:
		for _, sign := range []string{"%40", "&#64;", "&#x40;", "&commat;", "＠"} {
			if strings.HasPrefix(s, sign) {
				return len(sign)
			}
		}
	}
	return 0
}

// The maximum lengths of the parts of an address, in bytes: those of RFC 5321
// section 4.5.3.1, and some bytes more for marks.
const (
	maxLocal  = 128
	maxDomain = 320
)

// localStart returns where the local part at the end of s begins, len(s) for none.
// Letters of other scripts than Latin belong to it only if it has no Latin letters:
// in Korean there is no space before an address.
func localStart(s string) int {
	start, least := len(s), max(0, len(s)-maxLocal)
	found := false
	back := func(in func(rune) bool) {
		for start > least {
			r, size := utf8.DecodeLastRuneInString(s[:start])
			is := in(r)
			if !is && !markup(r) {
				return
			}
			found = found || is
			start -= size
		}
	}
	back(local)
	if !found {
		start = len(s)
		back(unicode.IsLetter)
	}
	for start < len(s) && (markup(rune(s[start])) || strings.IndexByte(".-+%'_", s[start]) >= 0) {
		start++ // punctuation before the address
	}
	return start
}

// domainEnd returns the length of the domain with which s begins, if it could
// receive mail; 0 for none.
func domainEnd(s string) int {
	if n := domainOf(s, host); n > 0 {
		return n
	}
	return domainOf(s, func(r rune) bool { return host(r) || r >= utf8.RuneSelf && unicode.IsLetter(r) })
}

func domainOf(s string, in func(rune) bool) int {
	var name []rune
	var ends []int
	for i, r := range s[:min(len(s), maxDomain)] {
		if in(r) {
			name, ends = append(name, r), append(ends, i+utf8.RuneLen(r))
		} else if !markup(r) {
			break
		}
	}
	for len(name) > 0 { // "write to a@b.com.Then" has no space
		if address(string(name)) {
			return ends[len(name)-1]
		}
		// Neither has "a@b.kr로", in which the particle is not part of the address.
		last := len(name) - 1
		if dot := lastDot(name); dot >= 0 && dot < last && name[dot+1] < utf8.RuneSelf && name[last] >= utf8.RuneSelf {
			name = name[:dot+1+slices.IndexFunc(name[dot+1:], func(r rune) bool { return r >= utf8.RuneSelf })]
			continue
		}
		name = name[:max(0, lastDot(name))]
	}
	return 0
}

func lastDot(name []rune) int {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			return i
		}
	}
	return -1
}

// markup reports whether a character belongs to Markdown's marks, which may be
// inside an address that a page shows in parts.
func markup(r rune) bool { return r == '*' || r == '`' || r == '~' || r == '\\' }

// openMarks returns the marks in s that are not closed in it.
func openMarks(s string) (open []string) {
	for i := 0; i < len(s); {
		n := len(s[i:]) - len(strings.TrimLeft(s[i:], s[i:i+1]))
		switch {
		case s[i] == '\\':
			n = min(2, len(s)-i)
		case !markup(rune(s[i])):
			n = 1
		case len(open) > 0 && open[len(open)-1] == s[i:i+n]:
			open = open[:len(open)-1]
		default:
			open = append(open, s[i:i+n])
		}
		i += n
	}
	return open
}

// local reports whether a character is in use before the @; RFC 5322 allows more.
func local(r rune) bool {
	return r < utf8.RuneSelf && (letter(byte(r)) || '0' <= r && r <= '9' || strings.IndexByte("._%+-'", byte(r)) >= 0) || r >= utf8.RuneSelf && unicode.Is(unicode.Latin, r)
}

func host(r rune) bool {
	return r < utf8.RuneSelf && (letter(byte(r)) || '0' <= r && r <= '9' || r == '.' || r == '-')
}

// address reports whether a domain could receive mail: its top-level domain exists.
func address(domain string) bool {
	dot := strings.LastIndexByte(domain, '.')
	if dot <= 0 || dot == len(domain)-1 || strings.Contains(domain, "..") {
		return false
	}
	top, err := idna.ToASCII(strings.ToLower(domain[dot+1:]))
	if err != nil {
		return false
	}
	_, icann := publicsuffix.PublicSuffix(top)
	return icann
}
