package known

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// BadRequest is the reason for refusing a request, as its sender sees it.
type BadRequest struct{ Message string }

func (e *BadRequest) Error() string { return e.Message }

// Told returns what the sender of a request may be told of an error, and the status. Others
// go to the log.
func Told(err error) (message string, code int, ok bool) {
	var bad *BadRequest
	var known *AnswerError
	switch {
	case errors.As(err, &known):
		return Safe(known.Message), known.Code, true
	case errors.As(err, &bad):
		return Safe(bad.Message), http.StatusBadRequest, true
	}
	return "", 0, false
}

// Refuse returns an error whose message the sender of a request gets, with status 400.
func Refuse(format string, args ...any) error { return &BadRequest{fmt.Sprintf(format, args...)} }

// Clip shortens a sender's text for an error message.
func Clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// AnswerError is an error with the status of its answer, written for the sender.
type AnswerError struct {
	Code    int
	Message string
}

func (e *AnswerError) Error() string { return e.Message }

// Conflict returns an error whose message the sender of a request gets, with status 409.
func Conflict(format string, args ...any) error {
	return &AnswerError{http.StatusConflict, fmt.Sprintf(format, args...)}
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
	if err := refuseEmpty(in, FieldNames(fields)...); strict && err != nil {
		return err
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

// refuseEmpty refuses parameters without a value. A form sends its empty fields; a
// program that does so has made a mistake.
func refuseEmpty(q url.Values, names ...string) error {
	for _, name := range names {
		if q.Has(name) && q.Get(name) == "" {
			return Refuse("%s: it is empty; leave it out", name)
		}
	}
	return nil
}
