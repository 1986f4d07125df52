// Package untrusted makes text that strangers wrote fit to be kept: what pages,
// headers, sitemaps and raw files say. Every job puts such text through it where
// the text enters, so that no database, index or file refuses it later.
package untrusted

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxKey is the most bytes of a URL or an id. PostgreSQL refuses an index row of
// more than 2,704 bytes, and a key has other columns beside it.
const MaxKey = 2000

// The reasons why Key refuses a URL or an id.
var (
	ErrTooLong = fmt.Errorf("it is over %d bytes long", MaxKey)
	ErrUnclean = errors.New("it holds control characters or bytes that are not UTF-8")
)

// Text is s as valid UTF-8 without control characters, white space aside. Each
// run of bytes that are not UTF-8 becomes one U+FFFD. The result has at most
// most bytes and ends between two characters; 0 is no limit.
func Text(s string, most int) string {
	if !clean(s) {
		s = strings.Map(func(c rune) rune {
			if control(c) {
				return -1
			}
			return c
		}, strings.ToValidUTF8(s, string(utf8.RuneError)))
	}
	return cut(s, most)
}

// Line is Text on one line: each run of white space is one space, and none is at
// the ends.
func Line(s string, most int) string {
	return strings.TrimRight(cut(strings.Join(strings.Fields(Text(s, 0)), " "), most), " ")
}

// Key says why a URL or an id cannot be kept: ErrTooLong, ErrUnclean. Neither may
// be mended, for what is cut or cleaned names something else.
func Key(s string) error {
	switch {
	case len(s) > MaxKey:
		return ErrTooLong
	case !clean(s):
		return ErrUnclean
	}
	return nil
}

func clean(s string) bool { return utf8.ValidString(s) && strings.IndexFunc(s, control) < 0 }

func control(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }

func cut(s string, most int) string {
	if most <= 0 || len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
