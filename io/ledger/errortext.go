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
