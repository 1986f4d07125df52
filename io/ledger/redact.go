package ledger

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/printable"
)

// Replacements of Redact, in order.
var redactions = []struct {
	find *regexp.Regexp
	with string
}{
	// The user part of a URL. In a database's URL an unescaped password may contain a
	// slash; in others a slash ends the user part, because paths may contain an @.
	{regexp.MustCompile(`(?i)\b((?:postgres|postgresql|mysql|redis|rediss|amqp|amqps|mongodb|mongodb\+srv)://)[^\s"'<>]*@`), "${1}REDACTED@"},
	{regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^\s/?#"'<>]*@`), "${1}REDACTED@"},
	// Authorization headers.
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9+/._~=-]{8,}`), "${1} REDACTED"},
	// Query parameters: short names are secrets only there.
	{regexp.MustCompile(`(?i)([?&](?:x-(?:amz|goog)-[a-z-]+|awsaccesskeyid|googleaccessid|key|sig|auth|code|sid|session)=)[^\s&#"'<>]*`), "${1}REDACTED"},
	// Names that show that the value is secret, anywhere in the text.
	{regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:token|secret|passw(?:or)?d|pwd|passphrase|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|signature)["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s&#"'<>,;)}\]]+)`), "${1}REDACTED"},
	// In an error like "get credentials: no such file" the value is prose, so a colon
	// followed by a space does not count.
	{regexp.MustCompile(`(?i)([a-z0-9_.-]*credentials?(?:["']\s*[=:]\s*|\s*=\s*|:))("[^"]*"|'[^']*'|[^\s&#"'<>,;)}\]]+)`), "${1}REDACTED"},
	// AWS access key ids, by their prefixes (IAM user guide, "Unique identifiers").
	{regexp.MustCompile(`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`), "REDACTED"},
}

// Redact removes from a text what could be a secret: credentials in URLs,
// signatures and keys in queries, passwords in data source names, tokens in
// headers, AWS access keys. In doubt it removes. Redacting its result again changes
// nothing.
func Redact(s string) string {
	// A replacement can make an earlier expression match. The loop ends, because each
	// change leaves less text other than the word REDACTED.
	for {
		before := s
		for _, r := range redactions {
			s = r.find.ReplaceAllString(s, r.with)
		}
		if s == before {
			return s
		}
	}
}

// ErrorText is an error as one line of limited length, without secrets and without
// characters that control a terminal; "" for nil. The error that ended a run is stored
// in this form.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return oneLine(err.Error(), maxError)
}

// maxError is the maximum length of a stored error text, in bytes.
const maxError = 2000

// oneLine is a text as one line of at most max bytes, without secrets and without
// characters that control a terminal.
func oneLine(text string, max int) string {
	return bounded(printable.Line(Redact(strings.Join(strings.Fields(text), " "))), max)
}

func bounded(text string, max int) string {
	if len(text) <= max {
		return text
	}
	cut := max
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " …"
}
