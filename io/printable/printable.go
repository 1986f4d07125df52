// Package printable makes text from outside the program, such as a URL or a
// server's response, safe to print on a terminal: control characters (ESC, BEL,
// C1), bidirectional controls and other invisible characters are escaped as in
// JSON (\u001b). It also writes JSON for people. No promise: see docs/library.md.
package printable

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON writes v as JSON that is indented by two spaces.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// Line returns s as one line: line feeds and tabs are escaped too.
func Line(s string) string {
	var b strings.Builder
	for i, r := range s {
		writeRune(&b, s[i:], r)
	}
	return b.String()
}

func writeRune(b *strings.Builder, rest string, r rune) {
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

// Writer returns a writer that escapes text and writes it to w. Line feeds and tabs
// stay as they are. JSON stays valid and means the same: only its strings can
// contain anything to escape.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w          io.Writer
	incomplete []byte // the first bytes of a character whose rest is still to come
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	all := append(w.incomplete, p...)
	w.incomplete = nil
	var b strings.Builder
	for len(all) > 0 {
		if !utf8.FullRune(all) {
			w.incomplete = append([]byte(nil), all...)
			break
		}
		r, n := utf8.DecodeRune(all)
		if r == '\n' || r == '\t' {
			b.WriteRune(r)
		} else {
			writeRune(&b, string(all[:n]), r)
		}
		all = all[n:]
	}
	if _, err := io.WriteString(w.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
