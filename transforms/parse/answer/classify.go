package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
	"github.com/newsfork/seed-engine/transforms/parse/xmltext"
)

// maxPeek is how many bytes of a body are read to tell its type.
const maxPeek = 64 << 10

// maxSmall is the weight of the text of a JSON object or a plain text that may be nothing but an error.
const maxSmall = 400

func classify(r Response) Verdict {
	if v := byHeader(r); v.Kind != "" {
		return v
	}
	body := r.Body
	if unpacked, is, _, err := sitemap.Unpack(body[:min(len(body), maxBody)], maxPeek); err == nil && is {
		body = unpacked
	}
	kind, media := typeOf(r, body)
	var v Verdict
	switch kind {
	case Page:
		v = r.html(body)
	case JSON, Text:
		v = r.text(body)
	}
	switch {
	case v.Kind != "":
		return v
	case r.Status > 399:
		return Verdict{Kind: ErrorPage, Evidence: fmt.Sprintf("status %d", r.Status)}
	case kind == Empty:
		return Verdict{Kind: Empty, Evidence: "no body"}
	case kind == "":
		return Verdict{Kind: OtherType, Evidence: media}
	case r.Want == "" || r.Want == kind:
		return Verdict{Kind: kind}
	case r.Want == Sitemap && kind == Feed: // the protocol accepts feeds
		return Verdict{Kind: Sitemap}
	case r.Want == Text && kind != Page && kind != PDF:
		return Verdict{Kind: Text}
	}
	return Verdict{Kind: OtherType, Evidence: strings.TrimSpace(fmt.Sprintf("%s in place of %s", kind, r.Want))}
}

func (r Response) header(name string) string { return strings.Join(r.Header[name], ", ") }

// typeOf tells the type of a body, first of all by the body. The kind is "" for images, archives and other types
// that no job reads.
func typeOf(r Response, body []byte) (kind Kind, media string) {
	media, _, err := mime.ParseMediaType(r.header("Content-Type"))
	if err != nil {
		media = ""
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return Empty, media
	}
	if bytes.Contains(body[:min(len(body), 1<<10)], []byte("%PDF-")) {
		return PDF, media
	}
	peek, wide := body[:min(len(body), maxPeek)], false
	if name, _ := charset.BOM(peek); name != "" && name != "utf-8" {
		wide = true
	}
	text, xml, err := xmltext.Decode(peek)
	sniffed, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	if err != nil || !wide && !strings.HasPrefix(sniffed, "text/") && strings.IndexByte(text[:min(len(text), 1<<10)], 0) >= 0 ||
		strings.HasPrefix(sniffed, "image/") || strings.HasPrefix(sniffed, "video/") || strings.HasPrefix(sniffed, "audio/") ||
		strings.HasPrefix(sniffed, "font/") || sniffed == "application/zip" || sniffed == "application/x-gzip" {
		return "", sniffed
	}
	if xml {
		if kind := ofRoot(text); kind != "" {
			return kind, media
		}
	}
	switch {
	case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		if kind := ofJSON(body, text, media); kind != "" {
			return kind, media
		}
	case r.Want == Robots && rules(text):
		return Robots, media
	case r.Want == Sitemap && list(text):
		return Sitemap, media
	}
	if sniffed == "text/html" || media == "text/html" || media == "application/xhtml+xml" {
		return Page, media
	}
	return Text, media
}

// ofRoot tells the kind of a document by its first element, "" for an unknown one.
func ofRoot(text string) Kind {
	s := xmltext.Scanner{Text: text}
	for s.Next() {
		if s.Token.Kind != xmltext.StartTag {
			continue
		}
		switch strings.ToLower(s.Token.Local) {
		case "urlset", "sitemapindex":
			return Sitemap
		case "rss", "feed", "rdf":
			return Feed
		case "html", "head", "body", "title", "meta", "script", "div", "h1", "p", "center", "link", "style", "main", "article":
			return Page
		}
		return ""
	}
	return ""
}

func ofJSON(body []byte, text, media string) Kind {
	is := media == "application/json" || strings.HasSuffix(media, "+json")
	if !is && len(body) <= maxBody && !json.Valid([]byte(text)) {
		return ""
	}
	if strings.Contains(text[:min(len(text), 1<<10)], "https://jsonfeed.org/version/") {
		return Feed
	}
	return JSON
}

// rules reports whether a text has rules for crawlers, or nothing but comments.
func rules(text string) bool {
	comments := true
	for l := range strings.Lines(text) {
		l, _, _ = strings.Cut(strings.TrimSpace(l), "#")
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		comments = false
		key, _, _ := strings.Cut(strings.ToLower(l), ":")
		switch strings.Join(strings.Fields(strings.ReplaceAll(key, "-", "")), "") {
		case "useragent", "disallow", "allow", "sitemap", "crawldelay", "host", "noindex",
			"cleanparam", "requestrate", "visittime", "contentsignal", "contentusage", "license":
			return true
		}
	}
	return comments
}

// list reports whether a text is a list of URLs.
func list(text string) bool {
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			return !strings.ContainsAny(l, " \t<{") && strings.Contains(l, "://")
		}
	}
	return false
}
