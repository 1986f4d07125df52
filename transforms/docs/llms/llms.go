// Package llms reads llms.txt and llms-full.txt (llmstxt.org): the list of a site's
// pages for language models, and the text of all of them in one file. It is pure. No promise: see docs/library.md.
package llms

import (
	"regexp"
	"strings"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
)

// Link is a link in Markdown.
type Link struct {
	Title, Href string
}

// inline matches [title](href "note"); an href has at most one pair of brackets.
var inline = regexp.MustCompile(`\[((?:[^\[\]\\]|\\.)*)\]\(\s*<?([^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)?)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)`)

// Links returns the links of Markdown outside of its code, in their order, at most
// that many. Images are not links.
func Links(markdown string, most int) (out []Link) {
	var code chunk.Fence
	for line := range strings.SplitSeq(markdown, "\n") {
		if code.In(line) {
			continue
		}
		for _, at := range inline.FindAllStringSubmatchIndex(line, -1) {
			if len(out) == most {
				return out
			}
			if at[0] > 0 && line[at[0]-1] == '!' {
				continue
			}
			out = append(out, Link{line[at[2]:at[3]], line[at[4]:at[5]]})
		}
	}
	return out
}

// IsMarkdown reports whether the body of an answer can be a llms.txt: text that is no
// page of HTML, which many sites answer for every path, and no JSON.
func IsMarkdown(body string) bool {
	body = strings.TrimLeft(body, " \t\r\n\ufeff")
	return body != "" && !strings.HasPrefix(body, "{") && (body[0] != '<' || strings.HasPrefix(body, "<page>")) && strings.IndexByte(body, 0) < 0
}

// Page is a page in a llms-full.txt.
type Page struct {
	Address string // as written, maybe relative
	Text    string // Markdown
}

var (
	// named matches the line that names a page's address.
	named = regexp.MustCompile(`(?i)^\s*(?:[-*]\s+)?\**(?:source|source_url|url|page|link|canonical|html)\**\s*:\**\s*["'<]?((?:https?://|/)[^\s"'<>]*)["'>]?\s*$`)
	// titled matches a heading that is a link, or ends with an address.
	titled = regexp.MustCompile(`^#\s+(?:\[([^\[\]]+)\]\(((?:https?://|/)[^\s()]*)\)|(.+?)\s+\(((?:https?://|/)[^\s()]*)\))\s*$`)
	title  = regexp.MustCompile(`^\s*title:\s*["']?(.*?)["']?\s*$`)
)

// headed matches a document that begins with its heading.
var headed = regexp.MustCompile(`^(?:# |[^\n]+\n=+[ \t\r]*(?:\n|$))`)

// maxHead is how many lines a page's heading and its address may be apart.
const maxHead = 4

// Pages cuts a llms-full.txt into its pages, at most that many. A page begins with a
// heading of the first level, or with front matter, and names its address within the
// next lines. Text before the first page belongs to none.
func Pages(text string, most int) (out []Page) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	var heads []head
	for i, code := 0, (chunk.Fence{}); i < len(lines) && len(heads) < most; i++ {
		if code.In(lines[i]) {
			continue
		}
		if h, ok := headAt(lines, i); ok {
			heads = append(heads, h)
			i = h.text - 1
			code = chunk.Fence{}
		}
	}
	for n, h := range heads {
		end := len(lines)
		if n+1 < len(heads) {
			end = heads[n+1].at
		}
		body := strings.Trim(strings.Join(lines[h.text:end], "\n"), " \t\n")
		for _, mark := range []string{"</page>", "---", "***"} {
			body = strings.TrimRight(strings.TrimSuffix(body, mark), " \t\n")
		}
		if h.title != "" && !strings.HasPrefix(body, "# ") {
			body = "# " + h.title + "\n\n" + body
		}
		out = append(out, Page{h.address, body})
	}
	return out
}

// head is the beginning of a page: its first line, the first line of its text, and
// what it says about the page.
type head struct {
	at, text       int
	address, title string
}

// headAt reads the head of a page that begins at a line.
func headAt(lines []string, at int) (h head, ok bool) {
	h.at = at
	line := strings.TrimRight(lines[at], " \t")
	if m := titled.FindStringSubmatch(line); m != nil {
		h.title, h.address, h.text = m[1]+m[3], m[2]+m[4], at+1
		return h, true
	}
	switch {
	case strings.HasPrefix(line, "# "):
		h.title = strings.TrimSpace(line[2:])
		for i := at + 1; i < min(at+1+maxHead, len(lines)); i++ {
			if m := named.FindStringSubmatch(lines[i]); m != nil {
				h.address, h.text = m[1], i+1
				return h, true
			}
			if strings.HasPrefix(lines[i], "#") {
				return h, false
			}
		}
	case line == "---" || line == "<page>":
		return frontMatter(lines, h)
	}
	return h, false
}

// maxFrontMatter bounds the lines of front matter.
const maxFrontMatter = 40

// frontMatter reads a head that is YAML between two lines of dashes.
func frontMatter(lines []string, h head) (head, bool) {
	i := h.at
	if lines[i] = strings.TrimSpace(lines[i]); lines[i] == "<page>" {
		if i++; i >= len(lines) || strings.TrimSpace(lines[i]) != "---" {
			return h, false
		}
	}
	for i++; i < min(h.at+maxFrontMatter, len(lines)); i++ {
		if strings.TrimSpace(lines[i]) == "---" {
			h.text = i + 1
			return h, h.address != ""
		}
		if m := named.FindStringSubmatch(lines[i]); m != nil && h.address == "" {
			h.address = m[1]
		}
		if m := title.FindStringSubmatch(lines[i]); m != nil && h.title == "" {
			h.title = m[1]
		}
	}
	return h, false
}

// Front cuts the front matter off a Markdown document: YAML between two lines of
// dashes at its beginning. Its title becomes the document's heading if it has none.
func Front(markdown string) string {
	if rest, ok := strings.CutPrefix(markdown, "\ufeff"); ok && strings.HasPrefix(rest, "---") {
		markdown = rest
	}
	if !strings.HasPrefix(markdown, "---\n") && !strings.HasPrefix(markdown, "---\r\n") {
		return markdown
	}
	heading := ""
	at := 0
	for n, line := range strings.SplitAfter(markdown, "\n") {
		at += len(line)
		switch text := strings.TrimSpace(line); {
		case n == 0:
		case n > maxFrontMatter:
			return markdown
		case text == "---":
			body := strings.TrimLeft(markdown[at:], "\r\n")
			if heading != "" && !headed.MatchString(body) {
				body = "# " + heading + "\n\n" + body
			}
			return body
		default:
			if m := title.FindStringSubmatch(text); m != nil && heading == "" {
				heading = m[1]
			}
		}
	}
	return markdown
}

// Twin makes a page of the Markdown that a site serves in place of it: without front matter, the notices for programs above its
// first heading, and the tags of components.
func Twin(markdown string) string {
	markdown = Front(markdown)
	rest, kept, noticed := markdown, "", false
	for {
		block, more, found := strings.Cut(strings.TrimLeft(rest, " \t\r\n"), "\n\n")
		text := strings.Join(strings.Fields(strings.ReplaceAll(block, ">", " ")), " ")
		switch {
		case notice.MatchString(text):
			noticed = true
		case found && strings.HasPrefix(block, "# ") && kept == "" && !strings.Contains(block, "\n"):
			kept = block + "\n\n" // of front matter, or of the page: a notice may be below it
		case !noticed:
			return MDX(markdown)
		default:
			if rest = strings.TrimLeft(rest, " \t\r\n"); headed.MatchString(rest) { // below the notice, which the front matter's title was above
				kept = ""
			}
			return MDX(kept + rest)
		}
		if rest = more; !found {
			return MDX(kept)
		}
	}
}

// notice matches what sites write for programs at the beginning of a page: where the index of all pages is, or a link to the
// page's content.
var notice = regexp.MustCompile(`(?i)^(?:#+ )?(?:documentation index$|documentation index .*llms(?:-full)?\.txt|(?:fetch|use|see|for) [^.!?]*\b(?:index|discover|documentation|markdown|pages)\b.*llms(?:-full)?\.txt.{0,200}$|` +
	`use this file to discover all available pages[^.]*\.$|\[skip to (?:main )?content\]\([^()]*\)$)`)
