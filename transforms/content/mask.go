package content

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// masked stands where an e-mail address stood.
const masked = "[email]"

// MaskEmails replaces the e-mail addresses in text by "[email]" (CPA-001 section
// 8.3). An address ends in a top-level domain that exists; git@host: is the
// form of a repository's address and stays.
func MaskEmails(text string) string {
	at := strings.IndexByte(text, '@')
	if at < 0 {
		return text
	}
	var b strings.Builder
	done := 0
	for at >= 0 {
		start := at
		for start > done && local(text[start-1]) {
			start--
		}
		for start < at && strings.IndexByte(".-+%'", text[start]) >= 0 {
			start++ // punctuation before the address
		}
		end := at + 1
		for end < len(text) && end-at <= maxDomain && host(text[end]) {
			end++
		}
		domain := text[at+1 : end]
		for domain != "" && !address(domain) { // "write to a@b.com.Then" has no space
			domain = domain[:max(0, strings.LastIndexByte(domain, '.'))]
		}
		end = at + 1 + len(domain)
		remote := text[start:at] == "git" && end < len(text) && text[end] == ':' // git@host:path
		if start < at && domain != "" && !remote {
			b.WriteString(text[done:start])
			b.WriteString(masked)
			done = end
		}
		next := strings.IndexByte(text[max(at+1, done):], '@')
		if next < 0 {
			break
		}
		at = max(at+1, done) + next
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// maxDomain is the length of the longest domain name (RFC 1035 section 2.3.4).
const maxDomain = 255

// local are the characters in use before the @; RFC 5322 allows more.
func local(c byte) bool {
	return letter(c) || '0' <= c && c <= '9' || strings.IndexByte("._%+-'", c) >= 0
}

func host(c byte) bool { return letter(c) || '0' <= c && c <= '9' || c == '.' || c == '-' }

// address reports whether a domain could take mail: its top-level name exists.
func address(domain string) bool {
	dot := strings.LastIndexByte(domain, '.')
	if dot <= 0 || dot == len(domain)-1 || strings.Contains(domain, "..") {
		return false
	}
	_, icann := publicsuffix.PublicSuffix(strings.ToLower(domain[dot+1:]))
	return icann
}
