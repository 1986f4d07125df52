package content

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

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

// Kind decides how a body is read, by the Content-Type header, or by the bytes when
// the header is wrong or missing. It also returns the media type, for the log. An
// image or archive sent as text/html is excluded, and a PDF is one whatever the header
// says. HTML sent as plain text, as an octet stream or without a header is read as HTML. JSON is collected if it
// describes an API at its top level, and so is YAML of a text or YAML type.
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
