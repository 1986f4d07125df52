package content

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
)

// plainMarkdown makes Markdown that people wrote like what this package writes: links and images are text, without comments and
// definitions, and all headings at the margin begin with #.
func plainMarkdown(markdown string) string { return withLinks(markdown, nil) }

// WithoutLinks is Markdown as Page.Linked has it, with the text of its links alone.
func WithoutLinks(markdown string) string { return plainMarkdown(markdown) }

// withLinks is plainMarkdown, but links stay, with targets that are absolute, unless base is nil.
func withLinks(markdown string, base *url.URL) string {
	defined := make(map[string]string)
	parts := codeApart(markdown)
	for i := 0; i < len(parts); i += 2 {
		parts[i] = undefined(parts[i], defined)
	}
	for i := 0; i < len(parts); i += 2 {
		parts[i] = alert.ReplaceAllStringFunc(headings(relink(parts[i], defined, base)), func(l string) string {
			m := alert.FindStringSubmatch(l)
			return m[1] + "**" + kinds[strings.ToLower(m[2])] + ":**\n" + strings.TrimRight(m[1], " ")
		})
	}
	return strings.Join(parts, "")
}

// alert matches the first line of a callout in GitHub's Markdown.
var alert = regexp.MustCompile(`(?im)^([ \t]*> ?)\[!(note|tip|important|warning|caution)\][ \t]*$`)

// codeApart cuts Markdown into texts and fenced code, in turns. The first is a text, maybe an
// empty one.
func codeApart(markdown string) (parts []string) {
	var code chunk.Fence
	was, from, at := false, 0, 0
	for l := range strings.Lines(markdown) {
		if is := code.In(l); is != was {
			parts = append(parts, markdown[from:at])
			was, from = is, at
		}
		at += len(l)
	}
	return append(parts, markdown[from:])
}

// definition matches the definition of a link, as CommonMark has it, but for titles on a line
// of their own. A footnote is none.
var definition = regexp.MustCompile(`^ {0,3}\[((?:[^\[\]\\^]|\\.)(?:[^\[\]\\]|\\.){0,998})\]:[ \t]*(<[^<>\n]*>|[^\s<]\S*)(?:[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*\n?$`)

// undefined removes the definitions of links from a text, and notes their labels.
func undefined(text string, defined map[string]string) string {
	if !strings.Contains(text, "]:") {
		return text
	}
	var b strings.Builder
	inParagraph := false // which a definition cannot interrupt
	for l := range strings.Lines(text) {
		if m := definition.FindStringSubmatch(l); m != nil && !inParagraph {
			if _, twice := defined[label(m[1])]; !twice {
				defined[label(m[1])] = m[2]
			}
			continue
		}
		inParagraph = strings.TrimSpace(l) != "" && !strings.HasPrefix(l, "#")
		b.WriteString(l)
	}
	return b.String()
}

// label is the form in which labels of links are compared.
func label(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// maxTarget is the most bytes of a link's target with its title.
const maxTarget = 4 << 10

// unlink replaces links in Markdown, without fenced code, by their text and images by their alternative text, and removes comments.
// defined has the labels of links. Inline code stays.
func unlink(s string, defined map[string]string) string { return relink(s, defined, nil) }

// relink is unlink, but links stay, with targets that are absolute, unless base is nil.
func relink(s string, defined map[string]string, base *url.URL) string {
	if !strings.Contains(s, "]") && !strings.Contains(s, "<!--") {
		return s
	}
	type bracket struct {
		from  int // where its text begins in s
		to    int // and where it stands in pieces
		image bool
	}
	var pieces []string // of the result; a bracket is one, so that it can be removed
	var open []bracket
	plain, lastEnd := 0, strings.LastIndex(s, "-->")
	flush := func(to int) {
		pieces = append(pieces, s[plain:to])
		plain = to
	}
	for i := 0; i < len(s); {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i += 2
		case s[i] == '\n' && i+1 < len(s) && s[i+1] == '\n':
			open = nil // a link does not go beyond its paragraph
			i++
		case s[i] == '`':
			i += chunk.Span(s[i:])
		case i <= lastEnd && strings.HasPrefix(s[i:], "<!--"):
			flush(i)
			i = commentEnd(s, i)
			plain = i
		case s[i] == '[', s[i] == '!' && i+1 < len(s) && s[i+1] == '[':
			flush(i)
			mark := bracket{to: len(pieces), image: s[i] == '!'}
			if i++; mark.image {
				i++
			}
			flush(i)
			mark.from = i
			open = append(open, mark)
		case s[i] == ']' && len(open) > 0:
			mark := open[len(open)-1]
			open = open[:len(open)-1]
			n, to := target(s[i+1:], s[mark.from:i], defined)
			if n < 0 {
				i++
				continue
			}
			flush(i)
			pieces[mark.to] = ""
			if text := s[mark.from:i]; mark.image && strings.TrimSpace(text) != "" {
				pieces[mark.to] = "[이미지: "
				pieces = append(pieces, "]")
			} else if to = absolute(base, to); to != "" && !mark.image {
				pieces[mark.to] = "["
				pieces = append(pieces, "]("+to+")")
			}
			i += 1 + n
			plain = i
		default:
			i++
		}
	}
	flush(len(s))
	return strings.Join(pieces, "")
}

// commentEnd is where the comment at i ends, with its line if it has one of its own.
func commentEnd(s string, i int) int {
	end := i + strings.Index(s[i:], "-->") + len("-->")
	if (i == 0 || s[i-1] == '\n') && end < len(s) && s[end] == '\n' {
		end++
	}
	return end
}

// target is the length of what makes a link of the text in brackets before s: its target in
// parentheses, its label, or nothing where the text is a label itself; -1 if there is no link. to is where it leads.
func target(s, text string, defined map[string]string) (n int, to string) {
	if strings.HasPrefix(s, "(") {
		if m := inParentheses.FindStringSubmatch(s[:min(len(s), maxTarget)]); m != nil {
			return len(m[0]), m[1]
		}
	}
	if len(defined) == 0 || len(text) > 1000 {
		return -1, ""
	}
	own, isLabel := defined[label(text)]
	if strings.HasPrefix(s, "[") {
		if of, _, ok := strings.Cut(s[1:min(len(s), 1000)], "]"); ok {
			if of == "" && isLabel {
				return len("[]"), own
			}
			if to, ok := defined[label(of)]; ok {
				return len(of) + len("[]"), to
			}
		}
	}
	if isLabel {
		return 0, own
	}
	return -1, ""
}

// inParentheses matches the target of a link with its title. A target may have
// parentheses in it.
var inParentheses = regexp.MustCompile(`^\(\s*(<[^<>\n]*>|(?:[^\s()<>\\]|\\.|\((?:[^\s()<>\\]|\\.|\([^\s()<>]*\))*\))*)(?:\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\)))?\s*\)`)

var (
	closedBy  = regexp.MustCompile(`(?m)^(#{1,6} [^\n]*?)[ \t]+#+[ \t]*$`)
	noHeading = regexp.MustCompile("^(?:[ \t]|$|[-*+>#|=~`<:]|[0-9]+[.)] )")
)

// headings writes the headings that are underlined, or closed by #, with # in front alone.
// Only one line can be underlined here.
func headings(text string) string {
	if strings.Contains(text, "\n=") || strings.Contains(text, "\n-") {
		var kept []string
		for l := range strings.SplitSeq(text, "\n") {
			under, n := strings.TrimRight(l, " \t"), len(kept)
			level := ""
			switch {
			case under == "" || n == 0 || noHeading.MatchString(kept[n-1]) || n > 1 && strings.TrimSpace(kept[n-2]) != "" && !strings.HasPrefix(kept[n-2], "#"):
			case strings.Trim(under, "=") == "":
				level = "# "
			case strings.Trim(under, "-") == "":
				level = "## "
			}
			if level == "" {
				kept = append(kept, l)
			} else {
				kept[n-1] = level + strings.TrimSpace(kept[n-1])
			}
		}
		text = strings.Join(kept, "\n")
	}
	return closedBy.ReplaceAllString(text, "$1")
}
