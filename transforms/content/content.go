// Package content turns the pages of documentation sites into Markdown: it
// finds the main content, drops what surrounds it, and renders the rest by
// CPA-001 sections 7.1 to 7.3. It is pure: no network, no clock, no logging.
package content

import (
	"errors"
	"net/url"
)

// Options is what a provider's policy and the fetch say about a page.
type Options struct {
	// Base is the page's address, for links; nil leaves Page.Links empty.
	Base *url.URL
	// Content is the CSS selector of the main content (custom_selectors.content),
	// "" for none.
	Content string
	// Remove are CSS selectors of what is dropped besides section 7.2's list
	// (custom_selectors.remove).
	Remove []string
	// Keep are the query parameters that choose a page (keep_query_params), for
	// the addresses in Page.Links.
	Keep []string
}

// Check says which selector is malformed, nil where none is.
func (o Options) Check() error { return nil }

// Page is what a document says.
type Page struct {
	// Title is the page's title on one line, "" where it has none.
	Title string
	// Markdown is the main content, UTF-8, with e-mail addresses masked.
	Markdown string
	// Links are the addresses (canonical.Address) that the whole page links to,
	// in order, without repetition, at most MaxLinks.
	Links []string
	// Selector is what found the main content: the policy's selector, one of
	// section 7.1's, "body", or "" for documents that are not HTML.
	Selector string
	// Login says that the page is a login form and nothing else: it is skipped.
	Login bool
	// Empty says that there is no main content; Script that scripts would have
	// to build it (spa_rendering).
	Empty, Script bool
}

// MaxLinks is how many different links of one page are kept.
const MaxLinks = 10_000

// Form is how the body of an answer is read.
type Form string

// The forms that are collected (CPA-001 section 4.2).
const (
	HTML    Form = "html"
	Text    Form = "text"
	OpenAPI Form = "openapi"
	// Excluded is everything else; the page is skipped.
	Excluded Form = ""
)

// Kind decides by the Content-Type header, and by the bytes where the header
// lies or is missing, how a body is read, and names its media type for the log.
func Kind(header string, body []byte) (form Form, media string) { return Excluded, "" }

// ErrNotOpenAPI says that a document is no OpenAPI or Swagger description.
var ErrNotOpenAPI = errors.New("no OpenAPI or Swagger description")

// Read is Extract, PlainText or ReadOpenAPI, whichever form names.
func Read(form Form, body []byte, contentType string, o Options) (Page, error) {
	return Page{}, errors.New("not built yet")
}

// Extract reads an HTML page. contentType is the Content-Type header, for its
// charset. Broken HTML is read as browsers read it; the error is a malformed
// selector, or a body whose encoding cannot be decoded.
func Extract(html []byte, contentType string, o Options) (Page, error) {
	return Page{}, errors.New("not built yet")
}

// ExtractText reads a plain text document, which is kept as it is.
func ExtractText(body []byte, contentType string) (Page, error) {
	return Page{}, errors.New("not built yet")
}

// ExtractOpenAPI renders an OpenAPI or Swagger description in JSON or YAML, one
// section an operation. Other documents are ErrNotOpenAPI.
func ExtractOpenAPI(body []byte) (Page, error) { return Page{}, errors.New("not built yet") }

// MaskEmails replaces the e-mail addresses in text by "[email]" (CPA-001 section 8.3).
func MaskEmails(text string) string { return text }
