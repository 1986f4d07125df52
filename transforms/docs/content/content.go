// Package content turns the pages of documentation sites into Markdown: it finds
// the main content (candidates), drops what surrounds it (clutter), and renders
// the rest (writer). It is pure: no network, no clock, no logging. No promise: see docs/library.md.
package content

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/andybalholm/cascadia"
	bcp47 "golang.org/x/text/language"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// Options are what a provider's policy and the fetch say about a page.
type Options struct {
	// Base is the page's address, for links; nil leaves Page.Links empty.
	Base *url.URL
	// Content is the CSS selector of the main content (custom_selectors.content),
	// "" for none.
	Content string
	// Remove are CSS selectors of elements to drop, in addition to the clutter of all sites
	// (custom_selectors.remove).
	Remove []string
	// Links asks for Page.Linked. It needs Base.
	Links bool
	// Keep are the query parameters that select a page (keep_query_params), for the
	// addresses in Page.Links.
	Keep []string
}

// Check returns an error for a malformed selector.
func (o Options) Check() error {
	_, _, err := o.selectors()
	return err
}

func (o Options) selectors() (content cascadia.Matcher, remove []cascadia.Matcher, err error) {
	if o.Content != "" {
		if content, err = cascadia.ParseGroup(o.Content); err != nil {
			return nil, nil, fmt.Errorf("reading the content selector %q: %w", o.Content, err)
		}
	}
	for _, s := range o.Remove {
		m, err := cascadia.ParseGroup(s)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the remove selector %q: %w", s, err)
		}
		remove = append(remove, m)
	}
	return content, remove, nil
}

// Page is what is extracted from a document.
type Page struct {
	// Title is the page's title element, else its first heading, "" if it has
	// neither: one line of at most MaxTitle characters, e-mail addresses masked.
	Title string
	// Language is what the page says of its language, "" where it says nothing
	// that is valid.
	Language string
	// Markdown is the main content, UTF-8, with e-mail addresses masked.
	Markdown string
	// Linked is Markdown with the page's links, whose targets are absolute; "" unless
	// Options.Links asks for it, and for documents whose links are not kept.
	Linked string
	// Anchors are the URL fragments of the Markdown's headings, in
	// order, without "#"; "" for a heading that has none. Nil for documents that
	// are not HTML.
	Anchors []string
	// Pages are the offsets in Markdown at which the pages of a PDF begin; nil for
	// other documents.
	Pages []int
	// Links are the addresses (canonical.Resolve) that the whole page links to,
	// in order, without repetition, at most MaxLinks.
	Links []string
	// Selector is the selector that found the main content: the policy's, one of
	// candidates, "body", or "" for documents that are not HTML.
	Selector string
	// Empty means that there is no main content.
	Empty bool
	// Script means that the page is a shell that scripts fill (spa_rendering).
	Script bool
}

// MaxLinks is the maximum number of Page.Links.
const MaxLinks = 10_000

// MaxTitle is the maximum length of a title in characters: it is stored with each chunk.
const MaxTitle = 300

// Clean returns text as people see it (untrusted.Text), with e-mail addresses masked.
func Clean(text string) string { return MaskEmails(untrusted.Text(text, 0)) }

// ShortTitle makes a title from a line of text: at most MaxTitle characters, e-mail
// addresses masked.
func ShortTitle(text string) string {
	text = Clean(text)
	n := 0
	for i := range text {
		if n++; n > MaxTitle {
			return strings.Clone(text[:i])
		}
	}
	return text
}

// ErrTooDeep means that a page's elements are nested over 512 deep, which no author
// does on purpose. The page is skipped.
var ErrTooDeep = errors.New("the page's elements are nested too deep")

// Read calls Extract, ExtractText or ExtractOpenAPI, depending on form. A text that looks
// like an OpenAPI description but is not one is read as text.
func Read(form Form, body []byte, contentType string, o Options) (Page, error) {
	switch form {
	case HTML:
		return Extract(body, contentType, o)
	case Text:
		p, err := ExtractText(body, contentType)
		if err == nil && o.Links && o.Base != nil {
			p.Linked = linkedText(body, contentType, o.Base)
		}
		return p, err
	case OpenAPI:
		p, err := ExtractOpenAPI(body)
		if media, _, merr := mime.ParseMediaType(contentType); merr == nil && errors.Is(err, ErrNotOpenAPI) && prose(media, body) {
			return ExtractText(body, contentType) // the text only quotes a description
		}
		return p, err
	}
	return Page{}, fmt.Errorf("a document of form %q is not collected", form)
}

// Language returns a language tag in BCP 47's form, such as en or pt-BR. It takes what
// pages and servers write: en_us, or a list, of which the first counts. It is "" for
// anything else.
func Language(tag string) string {
	tag, _, _ = strings.Cut(tag, ",")
	tag = strings.TrimSpace(tag)
	if len(tag) > 35 { // RFC 5646 section 4.4.1
		return ""
	}
	parsed, err := bcp47.Parse(tag)
	if err != nil || parsed == bcp47.Und {
		return ""
	}
	return parsed.String()
}
