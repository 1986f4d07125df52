// Package usage has the errors of wrong usage. They are found before anything is
// touched, and they have their own exit code, apart from failures. No promise: see docs/library.md.
package usage

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
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

// Age parses how long ago something was: days, such as 90d, or a duration in Go's form. It is above 0.
func Age(text string) (time.Duration, error) {
	hours := text
	if n, ok := strings.CutSuffix(text, "d"); ok {
		d, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return 0, errAge
		}
		hours = strconv.FormatUint(d*24, 10) + "h"
	}
	age, err := time.ParseDuration(hours)
	if err != nil || age <= 0 {
		return 0, errAge
	}
	return age, nil
}

var errAge = errors.New("write a number of days, such as 90d, or hours, such as 36h")
