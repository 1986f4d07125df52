// Package usage is about wrong usage, apart from what failed: it is found before
// anything is touched, and has an exit code of its own.
package usage

import (
	"errors"
	"fmt"
	"strings"
)

// Error is bad usage.
type Error struct{ err error }

// Error implements error.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.err }

// Usage marks the error for packages that do not import this one (package server).
func (e *Error) Usage() {}

// Errorf is fmt.Errorf for bad usage.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Is says that an error is bad usage, also of a package with a type of its own.
func Is(err error) bool {
	var usage interface{ Usage() }
	return errors.As(err, &usage)
}

// Or joins words for a person: "a, b or c".
func Or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// OneLine is a message as scripts and schedulers want it; the runners' and the
// YAML library's span several, and joined errors have a line each.
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
