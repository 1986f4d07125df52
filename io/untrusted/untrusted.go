// Package untrusted cleans and bounds text from outside the program: that of
// pages, headers, sitemaps and raw files. Every job passes such text through it
// where the text enters, so that no database, index or file refuses it later.
package untrusted

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxKey is the maximum length of a URL or an id in bytes. PostgreSQL refuses an
// index row of more than 2,704 bytes, and an index has other columns too.
const MaxKey = 2000

// The reasons why Key refuses a URL or an id.
var (
	ErrTooLong = fmt.Errorf("it is over %d bytes long", MaxKey)
	ErrUnclean = errors.New("it contains control characters or bytes that are not UTF-8")
)

// Text returns s as valid UTF-8 without control characters other than white space.
// Each run of bytes that are not UTF-8 becomes one U+FFFD. The result has at most
// maxBytes bytes and ends between two characters; 0 means no limit.
func Text(s string, maxBytes int) string {
	if !isClean(s) {
		s = strings.Map(func(c rune) rune {
			if isControl(c) {
				return -1
			}
			return c
		}, strings.ToValidUTF8(s, string(utf8.RuneError)))
	}
	return truncate(s, maxBytes)
}

// Line returns Text as one line: each run of white space becomes one space, and
// white space at both ends is removed.
func Line(s string, maxBytes int) string {
	return strings.TrimRight(truncate(strings.Join(strings.Fields(Text(s, 0)), " "), maxBytes), " ")
}

// Key reports why a URL or an id cannot be stored: ErrTooLong, ErrUnclean. Such a
// key must not be cut or cleaned, because the result would name something else.
func Key(s string) error {
	switch {
	case len(s) > MaxKey:
		return ErrTooLong
	case !isClean(s):
		return ErrUnclean
	}
	return nil
}

func isClean(s string) bool { return utf8.ValidString(s) && strings.IndexFunc(s, isControl) < 0 }

func isControl(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }

func truncate(s string, maxBytes int) string {
	if maxBytes <= 0 || len(s) <= maxBytes {
		return s
	}
	for maxBytes > 0 && !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes]
}
