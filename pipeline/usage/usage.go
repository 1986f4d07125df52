// Package usage has the errors of wrong usage. They are found before anything is
// touched, and they have their own exit code, apart from failures. No promise: see docs/library.md.
package usage

import (
	"errors"
	"fmt"
	"strings"
)

// Error is an error of wrong usage.
type Error struct{ err error }

// Error implements error.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Usage marks the error for packages that do not import this one (package server).
func (e *Error) Usage() {}

// Errorf is fmt.Errorf for wrong usage.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Is reports whether an error is wrong usage, also when its type is of another package.
func Is(err error) bool {
	var usage interface{ Usage() }
	return errors.As(err, &usage)
}

// Or joins words into "a, b or c".
func Or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// OneLine puts an error's message on one line, for scripts and schedulers.
// Messages of runners and of the YAML library have several lines, and joined
// errors have one line each.
func OneLine(err error) string {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var each, lines []string
		for _, e := range several.Unwrap() {
			each, lines = append(each, e.Error()), append(lines, OneLine(e))
		}
		if strings.Join(each, "\n") == err.Error() {
			return strings.Join(lines, "; ")
		}
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
