// Package printable writes text that strangers chose, such as a URL or what a
// server answered, so that a terminal shows it and does nothing else: control
// characters (ESC, BEL, C1), bidirectional controls and other invisible
// characters are written as JSON writes them, \u001b.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line is s on one line.
func Line(s string) string {
	var b strings.Builder
	for i, r := range s {
		write(&b, s[i:], r)
	}
	return b.String()
}

func write(b *strings.Builder, rest string, r rune) {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(rest, string(utf8.RuneError)):
		fmt.Fprintf(b, `\x%02x`, rest[0])
	case unicode.IsGraphic(r):
		b.WriteRune(r)
	default:
		for _, u := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(b, `\u%04x`, u)
		}
	}
}

// Writer passes text on to w, line feeds and tabs as they are. JSON stays what
// it was: only in its strings can there be anything to escape.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w    io.Writer
	part []byte // of a character whose rest is yet to come
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	all := append(w.part, p...)
	w.part = nil
	var b strings.Builder
	for len(all) > 0 {
		if !utf8.FullRune(all) {
			w.part = append([]byte(nil), all...)
			break
		}
		r, n := utf8.DecodeRune(all)
		if r == '\n' || r == '\t' {
			b.WriteRune(r)
		} else {
			write(&b, string(all[:n]), r)
		}
		all = all[n:]
	}
	if _, err := io.WriteString(w.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
