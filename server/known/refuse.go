package known

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// AnswerError is the reason for refusing a request, with the status of its answer, written for the sender.
type AnswerError struct {
	Code    int
	Message string
	RunID   string // of the run that the refusal is about; "" for none
}

func (e *AnswerError) Error() string { return e.Message }

// Answer returns an error with the status and the message of the answer.
func Answer(code int, message string) *AnswerError { return &AnswerError{Code: code, Message: message} }

// Refuse returns an error whose message the sender of a request gets, with status 400.
func Refuse(format string, args ...any) error {
	return Answer(http.StatusBadRequest, fmt.Sprintf(format, args...))
}

// Conflict returns an error whose message the sender of a request gets, with status 409.
func Conflict(format string, args ...any) error {
	return Answer(http.StatusConflict, fmt.Sprintf(format, args...))
}

var (
	// ErrInternal stands for an error that the sender of a request is not told: it may have paths and keys.
	ErrInternal = Answer(http.StatusInternalServerError, "the server could not do this; its log says why")
	// ErrForm refuses a form that is none.
	ErrForm = Refuse("that form cannot be read")
)

// WantsPage reports whether a request comes from a browser, not a program.
func WantsPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// Clip shortens a sender's text for an error message.
func Clip(s string) string { return Cut(s, 40) }

// Cut is a text, of one with more than n characters only its beginning.
func Cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// Safe removes what could be a secret from a text that the sender chose.
func Safe(text string) string { return ledger.Redact(strings.ToValidUTF8(text, "")) }

// FieldNames are the names of fields in a request.
func FieldNames(fields []option.Option) (names []string) {
	for _, f := range fields {
		names = append(names, f.Field())
	}
	return names
}

// Checked refuses values that their fields do not take. A form sends its empty fields; a program that does so has made a mistake.
func Checked(in url.Values, fields []option.Option, strict bool) error {
	for _, f := range fields {
		if strict && in.Has(f.Field()) && in.Get(f.Field()) == "" {
			return Refuse("%s: it is empty; leave it out", f.Field())
		}
	}
	for _, f := range fields {
		if v := in.Get(f.Field()); v != "" {
			if err := f.Check(v); err != nil {
				return Refuse("%s: %s", f.Field(), err)
			}
		}
	}
	return nil
}
