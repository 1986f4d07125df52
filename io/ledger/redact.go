package ledger

import "regexp"

// Replacements of Redact, in order.
var redactions = []struct {
	find *regexp.Regexp
	with string
}{
	// The user part of a URL. In a database's, an unescaped password may hold a
	// slash; elsewhere a slash ends the part, for paths may hold an @.
	{regexp.MustCompile(`(?i)\b((?:postgres|postgresql|mysql|redis|rediss|amqp|amqps|mongodb|mongodb\+srv)://)[^\s"'<>]*@`), "${1}REDACTED@"},
	{regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^\s/?#"'<>]*@`), "${1}REDACTED@"},
	// Authorization headers.
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9+/._~=-]{8,}`), "${1} REDACTED"},
	// Query parameters: short names are secrets only there.
	{regexp.MustCompile(`(?i)([?&](?:x-(?:amz|goog)-[a-z-]+|awsaccesskeyid|googleaccessid|key|sig|auth|code|sid|session)=)[^\s&#"'<>]*`), "${1}REDACTED"},
	// Names that say themselves that the value is secret, wherever they stand.
	{regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:token|secret|passw(?:or)?d|pwd|passphrase|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|signature)["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s&#"'<>,;)}\]]+)`), "${1}REDACTED"},
	// "get credentials: no such file" is how the clouds' clients say why: after
	// that word a colon and a space are prose.
	{regexp.MustCompile(`(?i)([a-z0-9_.-]*credentials?(?:["']\s*[=:]\s*|\s*=\s*|:))("[^"]*"|'[^']*'|[^\s&#"'<>,;)}\]]+)`), "${1}REDACTED"},
	// AWS access key ids, by their prefixes (IAM user guide, "Unique identifiers").
	{regexp.MustCompile(`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`), "REDACTED"},
}

// Redact removes from a text what could be a secret: credentials in URLs,
// signatures and keys in queries, passwords in data source names, tokens in
// headers, AWS access keys. It errs on the side of removing, and what it gives
// stays as it is when it is redacted again.
func Redact(s string) string {
	// What one replacement removes can be what kept an earlier one from matching.
	// This ends: each change leaves less that is not the word REDACTED.
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
