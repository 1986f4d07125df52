package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// badRequest is the reason for refusing a request, as its sender sees it.
type badRequest struct{ message string }

func (e *badRequest) Error() string { return e.message }

// told returns what the sender of a request may be told of an error, and the status. Others
// go to the log.
func told(err error) (message string, code int, ok bool) {
	var bad *badRequest
	var known *answerError
	switch {
	case errors.As(err, &known):
		return safe(known.message), known.code, true
	case errors.As(err, &bad):
		return safe(bad.message), http.StatusBadRequest, true
	}
	return "", 0, false
}

func refuse(format string, args ...any) error { return &badRequest{fmt.Sprintf(format, args...)} }

// clip shortens a sender's text for an error message.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// answerError is an error with the status of its answer, written for the sender.
type answerError struct {
	code    int
	message string
}

func (e *answerError) Error() string { return e.message }

func conflict(format string, args ...any) error {
	return &answerError{http.StatusConflict, fmt.Sprintf(format, args...)}
}

// safe removes what could be a secret from a text that the sender chose.
func safe(text string) string { return ledger.Redact(strings.ToValidUTF8(text, "")) }

func fieldNames(fields []option.Option) (names []string) {
	for _, f := range fields {
		names = append(names, f.Field())
	}
	return names
}

// checked refuses values that their fields do not take. A form sends its empty fields; a program that does so has made a mistake.
func checked(in url.Values, fields []option.Option, strict bool) error {
	if err := refuseEmpty(in, fieldNames(fields)...); strict && err != nil {
		return err
	}
	for _, f := range fields {
		if v := in.Get(f.Field()); v != "" {
			if err := f.Check(v); err != nil {
				return refuse("%s: %s", f.Field(), err)
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
			return refuse("%s: it is empty; leave it out", name)
		}
	}
	return nil
}
