package ledger

import (
	"strings"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/printable"
)

// ErrorText is an error as one line of limited length, without secrets and without
// characters that control a terminal; "" for nil. The error that ended a run is stored
// in this form.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return bounded(printable.Line(Redact(strings.Join(strings.Fields(err.Error()), " "))))
}

// maxError is the maximum length of a stored error text, in bytes.
const maxError = 2000

func bounded(text string) string {
	if len(text) <= maxError {
		return text
	}
	cut := maxError
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " …"
}
