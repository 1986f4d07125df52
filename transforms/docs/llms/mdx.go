package llms

import (
	"regexp"
	"strings"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
)

var (
	// module matches the first line of an import or export of MDX.
	module = regexp.MustCompile(`^(?:import\s+(?:["'{*]|[\w$]+\s*,|[\w$]+\s+from\b)|export\s+(?:const|let|var|function|default|async|class|\{|\*))`)
	// labelled matches attributes that have a text for readers.
	labelled = regexp.MustCompile(`\s(?:title|label)=(?:"([^"<>{}]*)"|'([^'<>{}]*)')`)
)

const (
	// maxModule bounds the lines of one import or export.
	maxModule = 200
	// maxTag bounds the bytes of one tag.
	maxTag = 5_000
)

// MDX makes Markdown of MDX: without imports, exports, comments and the tags of components.
// What is between the tags stays, and so does their title. Code is not touched.
func MDX(text string) string {
	var out, prose strings.Builder
	flush := func() {
		out.WriteString(untagged(prose.String()))
		prose.Reset()
	}
	var code chunk.Fence
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		if code.In(strings.TrimRight(lines[i], "\r\n")) {
			flush()
			out.WriteString(lines[i])
			continue
		}
		if module.MatchString(lines[i]) {
			i += moduleEnd(lines[i:])
			continue
		}
		prose.WriteString(lines[i])
	}
	flush()
	return out.String()
}

// moduleEnd is how many lines an import or export has after its first: up to where its
// brackets are closed.
func moduleEnd(lines []string) int {
	depth := 0
	for i, line := range lines[:min(len(lines), maxModule)] {
		depth += strings.Count(line, "{") + strings.Count(line, "(") + strings.Count(line, "[") - strings.Count(line, "}") - strings.Count(line, ")") - strings.Count(line, "]")
		if depth <= 0 {
			return i
		}
	}
	return 0
}

// untagged removes the tags of components and comments outside of inline code.
func untagged(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		switch {
		case s[i] == '`':
			n := chunk.Span(s[i:])
			out.WriteString(s[i : i+n])
			i += n
		case strings.HasPrefix(s[i:], "{/*"):
			end := strings.Index(s[i:], "*/}")
			if end < 0 {
				out.WriteString(s[i:])
				return out.String()
			}
			i += end + len("*/}")
		case s[i] == '<' && component(s[i+1:]):
			n := tagEnd(s[i:])
			if n == 0 {
				out.WriteByte(s[i])
				i++
				continue
			}
			out.WriteString(says(s[i : i+n]))
			i += n
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	return out.String()
}

// says is what a tag tells readers: the kind of a callout, a field with its type, and its title.
func says(tag string) (out string) {
	if strings.HasPrefix(tag, "</") {
		return ""
	}
	if kind := calloutTag.FindStringSubmatch(tag); kind != nil {
		word := strings.ToLower(kind[1] + kind[2])
		out = "**" + strings.ToUpper(word[:1]) + word[1:] + ":**\n\n"
	}
	if field := fieldTag.FindStringSubmatch(tag); field != nil {
		out += "`" + field[1] + "`"
		if kind := typed.FindStringSubmatch(tag); kind != nil {
			out += " " + kind[1]
		}
		if required.MatchString(tag) {
			out += " required"
		}
		out += "\n\n"
	}
	if m := labelled.FindStringSubmatch(tag); m != nil && m[1]+m[2] != "" {
		out += "**" + m[1] + m[2] + "**\n\n"
	}
	return out
}

var (
	calloutTag = regexp.MustCompile(`^<(?:(Note|Warning|Info|Tip|Caution|Danger|Important)\b|(?:Aside|Callout|Admonition)\s[^>]*\btype="(note|warning|info|tip|caution|danger|important)")`)
	fieldTag   = regexp.MustCompile(`^<(?:ParamField|ResponseField)\s[^>]*?\b(?:name|path|body|query|header|cookie)="([^"<>]+)"`)
	typed      = regexp.MustCompile(`\stype="([^"<>]+)"`)
	required   = regexp.MustCompile(`\srequired(?:[\s/>]|=\{true\})`)
)

// component reports whether what follows a < is the tag of a component, or of a fragment.
func component(s string) bool {
	s = strings.TrimPrefix(s, "/")
	return s != "" && (s[0] >= 'A' && s[0] <= 'Z' || s[0] == '>')
}

// tagEnd is the length of a tag, 0 if it does not end.
func tagEnd(s string) int {
	depth, quote := 0, byte(0)
	for i := 1; i < min(len(s), maxTag); i++ {
		switch b := s[i]; {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'':
			quote = b
		case b == '{':
			depth++
		case b == '}':
			depth--
		case b == '>' && depth <= 0:
			return i + 1
		}
	}
	return 0
}
