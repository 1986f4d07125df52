package ledger

import (
	"strings"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/printable"
)

// Why is what is kept of the error that ended a run: one line, bounded, without
// what could be a secret and without what a terminal would obey. "" for nil.
func Why(err error) string {
	if err == nil {
		return ""
	}
	return bounded(printable.Line(Redact(strings.Join(strings.Fields(err.Error()), " "))))
}

// maxError bounds the error text kept, in bytes.
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
