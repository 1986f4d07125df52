// Package untrusted cleans and bounds text from outside the program: that of
// pages, headers, sitemaps and raw files. Every job passes such text through it
// where the text enters, so that no database, index or file refuses it later. No promise: see docs/library.md.
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
	ErrUnclean = errors.New("it contains control characters, hidden characters or bytes that are not UTF-8")
)

// Text returns s as valid UTF-8 without control characters other than white space and
// without characters that hide text from people (see kept). Each run of bytes that are not UTF-8 becomes one U+FFFD. The result has at most
// maxBytes bytes and ends between two characters; 0 means no limit.
func Text(s string, maxBytes int) string {
	s = visible(strings.ToValidUTF8(s, string(utf8.RuneError)))
	if cut := truncate(s, maxBytes); len(cut) < len(s) {
		return visible(cut) // a flag may have been cut
	}
	return s
}

// Line returns Text as one line: each run of white space becomes one space, and
// white space at both ends is removed.
func Line(s string, maxBytes int) string {
	return strings.TrimRight(Text(strings.Join(strings.Fields(Text(s, 0)), " "), maxBytes), " ")
}

// Key reports why a URL or an id cannot be stored: ErrTooLong, ErrUnclean. Such a
// key must not be cut or cleaned, because the result would name something else.
func Key(s string) error {
	switch {
	case len(s) > MaxKey:
		return ErrTooLong
	case !utf8.ValidString(s), strings.ContainsFunc(s, deceives):
		return ErrUnclean
	}
	return nil
}

// deceives reports whether a character has no place in any text: control characters other
// than white space, overrides of the direction, and tags, which are ASCII that nobody sees.
func deceives(c rune) bool {
	return unicode.IsControl(c) && !unicode.IsSpace(c) || c >= 0x202A && c <= 0x202E || c >= 0x2066 && c <= 0x2069 ||
		c >= 0xE0000 && c <= 0xE0FFF && !unicode.Is(unicode.Variation_Selector, c)
}

// unseen reports whether a character draws nothing.
func unseen(c rune) bool {
	if c >= ' ' && c < 0x7F || c > 0x3164 && c < 0xFE00 { // most of all text
		return false
	}
	return c >= 0x7F && unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, c) || deceives(c)
}

// visible returns s without the unseen characters that hide text.
func visible(s string) string {
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	last := ' '
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		if c == blackFlag {
			n += subdivision(s[i+n:])
		}
		if !unseen(c) || kept(last, c) {
			b.WriteString(s[i : i+n])
			last = c
		}
		i += n
	}
	return b.String()
}

// kept reports whether an unseen character belongs to writing: one that joins or parts the
// letters of a script that needs it, the parts of an emoji, or a variant of a character. Two
// in a row, or one between Latin letters, are no writing.
func kept(last, c rune) bool {
	switch {
	case deceives(c), unseen(last) && last != emojiStyle:
		return false
	case c == 0x200B, c == 0x200C, c == 0x200D, unicode.Is(unicode.Variation_Selector, c):
		emoji := last == emojiStyle || unicode.In(last, unicode.So, unicode.Sk, unicode.Me)
		return emoji && c != 0x200B || unicode.IsOneOf(joining, last) && !unicode.In(last, simple...) ||
			unicode.Is(unicode.Variation_Selector, c) && unicode.In(last, unicode.Han, unicode.Nd, unicode.P, unicode.Sm)
	case c >= 0x2060 && c <= 0x206F, c == 0xFEFF, c >= 0xFFF0 && c <= 0xFFFB, c >= 0x1BCA0 && c <= 0x1BCA3, c >= 0x1D173 && c <= 0x1D17A:
		return false
	}
	return last != emojiStyle
}

const (
	emojiStyle = 0xFE0F
	blackFlag  = 0x1F3F4
)

var (
	joining = []*unicode.RangeTable{unicode.L, unicode.M}
	// simple are the scripts whose letters stand alone.
	simple = []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Georgian, unicode.Hebrew,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo}
)

// subdivision returns the length in bytes of the tags that make a black flag the flag of a
// part of a country, such as England's (UTS 51, emoji tag sequence), 0 for none.
func subdivision(s string) int {
	for n, at := 0, 0; n <= 6; n++ {
		c, size := utf8.DecodeRuneInString(s[at:])
		at += size
		switch {
		case c == 0xE007F && n > 2:
			return at
		case c < 0xE0030 || c > 0xE0039 && c < 0xE0061 || c > 0xE007A:
			return 0
		}
	}
	return 0
}

func truncate(s string, maxBytes int) string {
	if maxBytes <= 0 || len(s) <= maxBytes {
		return s
	}
	for maxBytes > 0 && !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes]
}
