// Package content turns the pages of documentation sites into Markdown: it finds
// the main content (candidates), drops what surrounds it (clutter), and renders
// the rest (writer). It is pure: no network, no clock, no logging. No promise: see docs/library.md.
package content

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	bcp47 "golang.org/x/text/language"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
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
		return readText(body, contentType, o)
	case OpenAPI:
		p, err := ExtractOpenAPI(body)
		if media, _, merr := mime.ParseMediaType(contentType); merr == nil && errors.Is(err, ErrNotOpenAPI) && prose(media, body) {
			return ExtractText(body, contentType) // the text only quotes a description
		}
		return p, err
	}
	return Page{}, fmt.Errorf("a document of form %q is not collected", form)
}

// Language returns a language tag in BCP 47's form, such as en or pt-BR, of what pages and servers write: en_us, or a list, of which the
// first counts; "" for anything else.
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

// Form is how the body of a response is read.
type Form string

// The forms that are collected.
const (
	HTML    Form = "html"
	Text    Form = "text"
	OpenAPI Form = "openapi"
	PDF     Form = "pdf"
	// Excluded is everything else; the page is skipped.
	Excluded Form = ""
)

// Kind decides how a body is read, by the Content-Type header, or by the bytes when the header is wrong or missing, and returns the media
// type for the log. JSON, or YAML of a text or YAML type, is collected if it describes an API at its top level.
func Kind(header string, body []byte) (form Form, media string) {
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		media, _, _ = strings.Cut(header, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	if name, _ := charset.BOM(body); name != "" && name != "utf-8" { // it looks binary
		if text, _, err := charset.Bytes(body, ""); err == nil {
			body = text
		}
	}
	sniffed, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	if sniffed == mediaPDF || media == mediaPDF && bytes.Contains(body[:min(len(body), 1<<10)], []byte("%PDF-")) { // readers skip what is before it
		return PDF, mediaPDF
	}
	textual := strings.HasPrefix(sniffed, "text/") || sniffed == "application/octet-stream" && plain(body)
	switch {
	case media == "", !strings.Contains(media, "/"), media == "application/octet-stream", media == "text/plain" && sniffed == "text/html":
		media = sniffed
		if textual && sniffed != "text/html" {
			media = "text/plain"
		}
	case !textual && (strings.HasPrefix(media, "text/") || strings.HasPrefix(media, "application/")):
		return Excluded, sniffed // the header is wrong
	}
	switch {
	case !textual:
		return Excluded, media
	case media == "text/html", media == "application/xhtml+xml":
		if describesAPI(body) {
			return OpenAPI, "application/json"
		}
		return HTML, media
	case media == "application/json", strings.HasSuffix(media, "+json"), strings.HasSuffix(media, "/yaml"), strings.HasSuffix(media, "/x-yaml"), strings.HasSuffix(media, "+yaml"):
		if describesAPI(body) {
			return OpenAPI, media
		}
		return Excluded, media
	case isText(media):
		if describesAPI(body) {
			return OpenAPI, media
		}
		if first := bytes.TrimLeft(body, " \t\r\n\ufeff"); len(first) > 0 && (first[0] == '{' || first[0] == '[') && isJSON(first) {
			return Excluded, "application/json"
		}
		return Text, media
	}
	return Excluded, media
}

const mediaPDF = "application/pdf"

func isText(media string) bool {
	return media == "text/plain" || media == "text/markdown" || media == "text/x-markdown"
}

// prose reports whether a body of a text type is not JSON.
func prose(media string, body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return isText(media) && len(body) > 0 && body[0] != '{'
}

// plain reports whether bytes are text without control characters.
func plain(body []byte) bool {
	body = body[:min(len(body), 1<<10)]
	for len(body) > 0 && !utf8.FullRune(body) {
		body = body[:len(body)-1]
	}
	for _, c := range body {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b {
			return false
		}
	}
	return true
}
