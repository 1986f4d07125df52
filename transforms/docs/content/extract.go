package content

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/dom"
)

// Extract reads an HTML page. contentType is the Content-Type header, for its charset. The errors are ErrTooDeep, a malformed selector,
// and a body whose encoding cannot be decoded.
func Extract(body []byte, contentType string, o Options) (Page, error) {
	content, remove, err := o.selectors()
	if err != nil {
		return Page{}, err
	}
	text, _, err := charset.Decode(body, contentType)
	if err != nil {
		return Page{}, fmt.Errorf("reading the page: %w", err)
	}
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return Page{}, errors.Join(ErrTooDeep, fmt.Errorf("parsing the page: %w", err))
	}
	unfold(root)
	conceal(root)
	s := survey{size: len(text), options: o, clutter: clutter{remove}, custom: content, seen: make(map[string]bool)}
	if o.Base != nil {
		s.base = o.Base
	}
	s.walk(root, 0)
	return s.page(), nil
}

// candidates are the selectors of the main content, tried in this order after the
// policy's own.
var candidates = [...]string{"article", "main", `[role="main"]`, ".content", ".docs-body", "#content", ".markdown-body"}

// page renders the first candidate with text.
func (s *survey) page() Page {
	p := Page{Title: s.title, Language: s.language, Links: s.links}
	roots := s.choose(s.own)
	if roots != nil {
		s.render(&p, roots, true, false)
		p.Selector = s.options.Content
	}
	for i, name := range candidates {
		if p.Markdown != "" {
			break
		}
		if roots = s.choose(s.found[i]); roots != nil && !s.isCard(roots, i) && (i <= 2 || !s.areBoxes(s.found[i], roots)) {
			if len(roots) > 1 && i <= 2 {
				roots = []*html.Node{s.around(roots)}
			}
			s.render(&p, withNotes(roots), roots[0] != s.body, i > 2 || roots[0] == s.body)
			p.Selector = name
		}
	}
	if p.Markdown == "" && s.body != nil {
		if roots = s.byProse(); roots != nil {
			s.render(&p, roots, true, true)
			p.Selector = "prose"
		}
	}
	if p.Markdown == "" && s.body != nil {
		roots = []*html.Node{s.body}
		s.render(&p, roots, false, true)
		p.Selector = "body"
	}
	p.Markdown, p.Linked = Clean(p.Markdown), Clean(p.Linked)
	if p.Title == "" {
		p.Title = firstHeading(p.Markdown)
	}
	p.Title = ShortTitle(p.Title)

	letters := 0
	for _, r := range p.Markdown {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			letters++
		}
	}
	p.Script = s.scripts > 0 && s.shell && letters < 200
	p.Empty = letters == 0 || p.Script && letters < 40
	return p
}

// withNotes returns the content with the footnotes that follow it in an element of their own,
// as Asciidoctor writes them.
func withNotes(roots []*html.Node) []*html.Node {
	for n := roots[len(roots)-1].NextSibling; n != nil; n = n.NextSibling {
		if dom.Attr(n, "id") == "footnotes" {
			return append(slices.Clip(roots), n)
		}
	}
	return roots
}

// render writes the roots as a page's Markdown. bounded: they are not the whole body; loose: a class or id found them. Content without an
// h1 begins with the page's.
func (s *survey) render(p *Page, roots []*html.Node, bounded, loose bool) {
	p.Markdown, p.Anchors = s.write(roots, bounded, loose, nil)
	if s.options.Links && s.base != nil && p.Markdown != "" {
		p.Linked, _ = s.write(roots, bounded, loose, s.base)
	}
}

// write writes the roots as Markdown, with links where base is not nil.
func (s *survey) write(roots []*html.Node, bounded, loose bool, base *url.URL) (text string, anchors []string) {
	w := writer{clutter: s.clutter, bounded: bounded, markdown: markdown{markBytes: s.size/2 + 64<<10}, base: base, linkBytes: 2*s.size + 64<<10}
	if s.h1 != nil && bounded {
		if !slices.ContainsFunc(roots, func(r *html.Node) bool { return r == s.h1 || contains(r, s.h1) || dom.Holds(r, atom.H1) }) {
			w.introduce(s.h1, roots[0])
		}
	}
	for _, r := range roots {
		if loose {
			w.framing = framing(r)
		}
		w.block()
		w.children(r)
		w.block()
	}
	return w.String(), w.anchors
}

// firstHeading returns the text of the first heading of Markdown, "" for none.
func firstHeading(markdown string) string {
	var code chunk.Fence
	for l := range strings.SplitSeq(markdown, "\n") {
		if code.In(l) {
			return ""
		}
		if text := strings.TrimLeft(l, "#"); len(text) < len(l) && strings.HasPrefix(text, " ") {
			return strings.TrimSpace(strings.NewReplacer("`", "", "**", "", `\`, "").Replace(text))
		}
	}
	return ""
}

// ExtractText reads a plain text document. It is kept as it is, except line ends,
// e-mail addresses and the space at both ends. In Markdown, links become text.
func ExtractText(body []byte, contentType string) (Page, error) {
	return readText(body, contentType, Options{})
}

func readText(body []byte, contentType string, o Options) (Page, error) {
	text, _, err := charset.Decode(body, contentType)
	if err != nil {
		return Page{}, fmt.Errorf("reading the document: %w", err)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	clean := func(s string) string {
		return Clean(strings.Trim(strings.ReplaceAll(s, "\x00", string(utf8.RuneError)), "\n \t"))
	}
	linked := ""
	if media, _, err := mime.ParseMediaType(contentType); err == nil && media != "text/plain" && isText(media) {
		if o.Links && o.Base != nil {
			linked = clean(withLinks(text, o.Base))
		}
		text = plainMarkdown(text)
	}
	text = clean(text)
	return Page{Title: ShortTitle(firstHeading(text)), Markdown: text, Linked: linked, Empty: text == ""}, nil
}
