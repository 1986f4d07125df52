package content

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

func (a *api) heading(depth int, text string) {
	fmt.Fprintf(&a.b, "%s %s\n\n", strings.Repeat("#", depth), text)
}

// prose writes a description, which is Markdown, with its headings below depth and
// its links as text.
func (a *api) prose(markdown string, depth int) {
	if markdown == "" {
		return
	}
	fenced := false
	for l := range strings.SplitSeq(strings.ReplaceAll(markdown, "\r\n", "\n"), "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		} else if !fenced {
			if text := strings.TrimLeft(l, "#"); len(text) < len(l) && strings.HasPrefix(text, " ") {
				l = strings.Repeat("#", min(6, len(l)-len(text)+depth)) + text
			}
			l = unlink(l)
		}
		a.b.WriteString(l)
		a.b.WriteByte('\n')
	}
	if fenced {
		a.b.WriteString("```\n")
	}
	a.b.WriteByte('\n')
}

var (
	inlineImage = regexp.MustCompile(`!\[([^\]\n]*)\]\([^)\n]*\)`)
	inlineLink  = regexp.MustCompile(`\[([^\]\n]*)\]\([^)\n]*\)`)
)

// unlink replaces the links in a line of Markdown by their text and the images by
// their alternative text, as in pages. Text in backticks is code and stays.
func unlink(l string) string {
	if !strings.Contains(l, "](") {
		return l
	}
	for _, kind := range []struct {
		found *regexp.Regexp
		text  string
	}{{inlineImage, "[이미지: %s]"}, {inlineLink, "%s"}} {
		var b strings.Builder
		done, ticks := 0, 0
		for _, at := range kind.found.FindAllStringSubmatchIndex(l, -1) {
			ticks += strings.Count(l[done:at[0]], "`")
			b.WriteString(l[done:at[0]])
			if done = at[1]; ticks%2 == 0 {
				fmt.Fprintf(&b, kind.text, l[at[2]:at[3]])
			} else {
				b.WriteString(l[at[0]:at[1]])
			}
			ticks += strings.Count(l[at[0]:at[1]], "`")
		}
		l = b.String() + l[done:]
	}
	return l
}

// unlinked applies unlink to the lines of Markdown, except those of code.
func unlinked(markdown string) string {
	lines := strings.Split(markdown, "\n")
	fence := ""
	for i, l := range lines {
		mark := strings.TrimLeft(l, " ")
		n := max(len(mark)-len(strings.TrimLeft(mark, "`")), len(mark)-len(strings.TrimLeft(mark, "~")))
		switch {
		case fence == "" && n >= 3 && !strings.Contains(mark[n:], "`"):
			fence = mark[:n]
		case fence != "" && n >= len(fence) && strings.HasPrefix(mark, fence):
			fence = ""
		case fence == "":
			lines[i] = unlink(l)
		}
	}
	return strings.Join(lines, "\n")
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
func (a *api) cellText(s string) string {
	if a.cells += len(s); a.tooLong() {
		return ""
	}
	if s = oneLine(s); strings.Contains(s, "](") {
		s = inlineLink.ReplaceAllString(inlineImage.ReplaceAllString(s, "[이미지: $1]"), "$1")
	}
	return strings.ReplaceAll(s, "|", `\|`)
}

func (a *api) table(head []string, rows [][]string) {
	a.row(head)
	a.b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, r := range rows {
		a.row(r)
	}
	a.b.WriteByte('\n')
}

func (a *api) row(cells []string) {
	for _, c := range cells {
		a.b.WriteString("| ")
		a.b.WriteString(c)
		a.b.WriteByte(' ')
	}
	a.b.WriteString("|\n")
}
