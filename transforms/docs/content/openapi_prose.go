package content

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
)

// sections writes the Markdown of a description, within its limits.
type sections struct {
	b     strings.Builder
	steps int
	cells int // bytes of cells of the current operation's tables, not written yet
	full  bool
}

// tooLong reports whether the rendered description is over its limits; from then on
// nothing more is rendered.
func (a *sections) tooLong() bool {
	a.full = a.full || a.steps > maxSteps || a.b.Len()+a.cells > maxOpenAPI
	return a.full
}

func (a *sections) heading(depth int, text string) {
	fmt.Fprintf(&a.b, "%s %s\n\n", strings.Repeat("#", depth), text)
}

// prose writes a description, which is Markdown, with its headings below depth and
// its links as text.
func (a *sections) prose(markdown string, depth int) {
	if markdown == "" {
		return
	}
	var code chunk.Fence
	for l := range strings.SplitSeq(plainMarkdown(strings.ReplaceAll(markdown, "\r\n", "\n")), "\n") {
		if !code.In(l) {
			if text := strings.TrimLeft(l, "#"); len(text) < len(l) && strings.HasPrefix(text, " ") {
				l = strings.Repeat("#", min(6, len(l)-len(text)+depth)) + text
			}
		}
		a.b.WriteString(l)
		a.b.WriteByte('\n')
	}
	if code.Mark != "" {
		a.b.WriteString(code.Mark + "\n")
	}
	a.b.WriteByte('\n')
}

// oneLine returns a text with single spaces.
func oneLine(s string) string {
	last := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || c < ' ' || c == ' ' && last == ' ' {
			return strings.Join(strings.Fields(s), " ")
		}
		last = c
	}
	return strings.TrimSuffix(s, " ")
}

// cellText returns a text as Markdown for a table's cell.
func (a *sections) cellText(s string) string {
	if a.cells += len(s); a.tooLong() {
		return ""
	}
	return strings.ReplaceAll(unlink(oneLine(s), nil), "|", `\|`)
}

func (a *sections) table(head []string, rows [][]string) {
	a.row(head)
	a.b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, r := range rows {
		a.row(r)
	}
	a.b.WriteByte('\n')
}

func (a *sections) row(cells []string) {
	for _, c := range cells {
		a.b.WriteString("| ")
		a.b.WriteString(c)
		a.b.WriteByte(' ')
	}
	a.b.WriteString("|\n")
}
