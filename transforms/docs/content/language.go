package content

import (
	"strings"

	bcp47 "golang.org/x/text/language"
)

// Language returns a language tag in BCP 47's form, such as en or pt-BR. It takes what
// pages and servers write: en_us, or a list, of which the first counts. It is "" for
// anything else.
func Language(tag string) string {
	tag, _, _ = strings.Cut(tag, ",")
	tag = strings.TrimSpace(tag)
	if len(tag) > 35 { // RFC 5646 section 4.4.1
		return ""
	}
	parsed, err := bcp47.Parse(tag)
	if err != nil || parsed == bcp47.Und {
		return ""
	}
	return parsed.String()
}
