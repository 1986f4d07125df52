// Package charset turns the bytes of pages, feeds and sitemaps into text,
// whether they declare their encoding or not. It is pure: no network,
// no clock, no logging. No promise: see docs/library.md.
package charset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// prescan is how many bytes are searched for a declaration. The HTML standard
// demands 1,024; pages with long heads before their meta element are common.
const prescan = 8 << 10

// Decode turns body into UTF-8 text and names the encoding it used, in the
// spelling of the WHATWG Encoding Standard ("utf-8", "euc-kr", "windows-1252").
// It decides, in this order, by a byte order mark; the charset of contentType, the
// value of a Content-Type header or ""; a declaration in the body (meta element
// or XML declaration); the bytes themselves. A declaration in the body is ignored
// where the bytes are clearly UTF-8 or UTF-16. Unknown encodings are ignored.
// Invalid bytes become U+FFFD, as often as in browsers; that is no error.
func Decode(body []byte, contentType string) (text string, name string, err error) {
	decoded, name, err := Bytes(body, contentType)
	return string(decoded), name, err
}

// Bytes is Decode for a caller that reads bytes. A body that is UTF-8 already is not
// copied: text is then part of body.
func Bytes(body []byte, contentType string) (text []byte, name string, err error) {
	name, mark := BOM(body)
	if name == "" {
		name = FromContentType(contentType)
	}
	whole := false // the body is known to be UTF-8
	if name == "" {
		name = wide(body)
	}
	if name == "" {
		valid, foreign, end := looksUTF8(body)
		whole = valid && end == len(body)
		if valid && foreign {
			name = "utf-8"
		} else if name = Declared(body); name == "" {
			name = guess(body, valid)
		}
	}
	body = body[mark:]
	if name == "utf-8" && (whole || utf8.Valid(body)) { // many times as fast as looking for what to replace
		return body, name, nil
	}
	enc, _ := lookup(name)
	decoded, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return nil, name, fmt.Errorf("decoding %s: %w", name, err)
	}
	return decoded, name, nil
}

// BOM names the encoding of the byte order mark that body begins with and the
// mark's length in bytes; "" and 0 where there is none.
func BOM(body []byte) (name string, length int) {
	// UTF-32's little-endian mark begins with UTF-16's.
	for _, m := range []struct{ mark, name string }{
		{"\xef\xbb\xbf", "utf-8"},
		{"\xff\xfe\x00\x00", "utf-32le"},
		{"\x00\x00\xfe\xff", "utf-32be"},
		{"\xff\xfe", "utf-16le"},
		{"\xfe\xff", "utf-16be"},
	} {
		if bytes.HasPrefix(body, []byte(m.mark)) {
			return m.name, len(m.mark)
		}
	}
	return "", 0
}

// wide names the UTF-16 of a body whose first two characters are ASCII and have a NUL each,
// which no other encoding's text has (XML, appendix F.1).
func wide(body []byte) string {
	switch {
	case len(body) < 4:
	case text(body[0]) && body[1] == 0 && text(body[2]) && body[3] == 0:
		return "utf-16le"
	case body[0] == 0 && text(body[1]) && body[2] == 0 && text(body[3]):
		return "utf-16be"
	}
	return ""
}

// text reports whether a byte is of an ASCII text.
func text(c byte) bool { return ' ' <= c && c < 0x7f || c == '\n' || c == '\r' || c == '\t' }

// Label is the WHATWG name of an encoding label, "" for one that is not known.
// Labels outside the standard that the web uses are known too: cp949, latin-1,
// the IANA names of the DOS code pages, UTF-32.
func Label(label string) string {
	_, name := lookup(label)
	return name
}

func lookup(label string) (encoding.Encoding, string) {
	label = strings.ToLower(strings.Trim(label, " \t\r\n\f"))
	switch label {
	case "cp949", "ms949", "uhc", "x-windows-949":
		return korean.EUCKR, "euc-kr" // WHATWG's euc-kr is the superset CP949
	case "latin-1":
		label = "latin1"
	case "utf-32", "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "utf-32be"
	case "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "utf-32le"
	case "utf-16be":
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "utf-16be"
	case "utf-16le", "utf-16":
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "utf-16le"
	}
	if enc, name := charset.Lookup(label); enc != nil && enc != encoding.Replacement {
		return enc, name
	}
	if enc, err := ianaindex.IANA.Encoding(label); err == nil && enc != nil {
		if name, err := ianaindex.IANA.Name(enc); err == nil {
			return enc, strings.ToLower(name)
		}
	}
	return nil, ""
}

// FromContentType names the encoding of a Content-Type header value, "" where it
// has no charset parameter, a malformed one (RFC 9110 section 5.6.6), or one
// that is not known.
func FromContentType(value string) string {
	for {
		i := strings.IndexByte(value, ';')
		if i < 0 {
			// A header without media type is accepted: "charset=utf-8".
			if p, v, rest := parameter(value); p == "charset" && rest == "" {
				return Label(v)
			}
			return ""
		}
		var name, v string
		name, v, value = parameter(value[i+1:])
		if name == "charset" {
			if value != "" && value[0] != ';' && value[0] != ',' {
				return ""
			}
			return Label(v)
		}
	}
}

// parameter reads name=value, the value a token or a quoted string, and returns
// what follows it, without the space before. The name is lower case.
func parameter(s string) (name, value, rest string) {
	s = strings.TrimLeft(s, " \t")
	n := tokenLength(s)
	name = strings.ToLower(s[:n])
	s, ok := strings.CutPrefix(strings.TrimLeft(s[n:], " \t"), "=")
	if !ok {
		return "", "", s
	}
	s = strings.TrimLeft(s, " \t")
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		end := strings.IndexByte(quoted, '"')
		if end < 0 {
			return name, "", ""
		}
		value, s = quoted[:end], quoted[end+1:]
	} else {
		n = tokenLength(s)
		value, s = s[:n], s[n:]
	}
	return name, value, strings.TrimLeft(s, " \t")
}

// tokenLength is the length of the token (RFC 9110 section 5.6.2) s begins with.
func tokenLength(s string) int {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return i
		}
	}
	return len(s)
}

// Declared names the encoding that an XML declaration or a meta element near the
// start of body declares, "" where none does or it is not known. A declaration
// that can be read byte by byte cannot be UTF-16, so that name means UTF-8, as
// in the HTML standard.
func Declared(body []byte) string {
	body = body[:min(len(body), prescan)]
	name := Label(xmlEncoding(body))
	if name == "" {
		name = Label(metaCharset(body))
	}
	if strings.HasPrefix(name, "utf-16") || strings.HasPrefix(name, "utf-32") {
		return "utf-8"
	}
	return name
}

func xmlEncoding(body []byte) string {
	body, ok := bytes.CutPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("<?xml"))
	end := bytes.Index(body, []byte("?>"))
	if !ok || end < 0 {
		return ""
	}
	_, after, ok := bytes.Cut(body[:end], []byte("encoding"))
	if !ok {
		return ""
	}
	after, ok = bytes.CutPrefix(bytes.TrimLeft(after, " \t\r\n"), []byte("="))
	after = bytes.TrimLeft(after, " \t\r\n")
	if !ok || len(after) == 0 || after[0] != '"' && after[0] != '\'' {
		return ""
	}
	label, _, ok := bytes.Cut(after[1:], after[:1])
	if !ok {
		return ""
	}
	return string(label)
}

func metaCharset(body []byte) string {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return "" // the end of what is searched, or of what can be read
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			if string(name) != "meta" {
				continue
			}
			var label, content string
			for more {
				var key, value []byte
				key, value, more = z.TagAttr()
				switch string(key) {
				case "charset":
					label = string(value)
				case "content":
					content = string(value)
				}
			}
			// http-equiv is not required: a meta that names a charset in its
			// content means it, and w3lib and browsers of old agree.
			if label == "" {
				label = contentCharset(content)
			}
			if Label(label) != "" {
				return label
			}
		}
	}
}

// contentCharset finds the charset in a meta element's content, by the HTML
// standard's looser rule: anywhere, quoted or up to a space or semicolon.
func contentCharset(content string) string {
	i := strings.Index(strings.ToLower(content), "charset")
	if i < 0 || i+len("charset") > len(content) {
		return ""
	}
	s, ok := strings.CutPrefix(strings.TrimLeft(content[i+len("charset"):], " \t\r\n\f"), "=")
	if !ok {
		return ""
	}
	s = strings.TrimLeft(s, " \t\r\n\f")
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		label, _, _ := strings.Cut(s[1:], s[:1])
		return label
	}
	if end := strings.IndexAny(s, " \t\r\n\f;"); end >= 0 {
		s = s[:end]
	}
	return s
}

// looksUTF8 reports whether body is UTF-8 up to end, and whether it has anything outside
// ASCII. The last character may be incomplete, as a size limit leaves it.
func looksUTF8(body []byte) (valid, foreign bool, end int) {
	end = len(body)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(body[i]) && !utf8.FullRune(body[i:]) {
			end = i
			break
		}
	}
	if ascii(body[:end]) {
		return end == len(body), false, end
	}
	valid = utf8.Valid(body[:end])
	return valid, valid, end
}

// ascii looks at eight bytes at once: bodies of tens of megabytes are often all ASCII.
func ascii(body []byte) bool {
	const high = 0x8080808080808080
	for ; len(body) >= 8; body = body[8:] {
		if binary.LittleEndian.Uint64(body)&high != 0 {
			return false
		}
	}
	for _, c := range body {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// guess names the encoding of a body that nothing declares.
func guess(body []byte, valid bool) string {
	if valid && !escapes(body) || !valid && mostlyUTF8(body) {
		return "utf-8"
	}
	return detect(body)
}

// mostlyUTF8 distinguishes UTF-8 with a few invalid characters from a legacy encoding, in
// which whole multi-byte sequences are rare accidents.
func mostlyUTF8(body []byte) bool {
	whole, broken := 0, 0
	for len(body) > 0 {
		r, n := utf8.DecodeRune(body)
		switch {
		case r == utf8.RuneError && n == 1:
			broken++
		case n > 1:
			whole++
		}
		body = body[n:]
	}
	return whole >= 10*broken
}

// korean949 recognises CP949, the superset of EUC-KR that WHATWG calls euc-kr. Korean
// text is mostly Hangul syllables, which have lead bytes B0–C8 with trail bytes
// from A1. Bytes of Western text are seldom pairs of CP949 at all, and Chinese and
// Japanese text has pairs outside that block about as often as inside.
func korean949(body []byte) bool {
	var counts [symbol949 + 1]int
	for i := 0; i < len(body); i++ {
		if body[i] < 0x80 {
			continue
		}
		if i+1 == len(body) {
			break // an incomplete character
		}
		kind := classify949(body[i], body[i+1])
		counts[kind]++
		if kind != invalid949 {
			i++
		}
	}
	hangul := counts[hangul949]
	return hangul >= 4*counts[other949] && hangul >= 50*counts[invalid949] && hangul > 2
}

// pair949 is the kind of a lead byte and a trail byte in CP949.
type pair949 int

const (
	invalid949 pair949 = iota
	hangul949          // a common Hangul syllable
	other949           // a rare syllable, a single letter, a Chinese character
	symbol949          // punctuation, which says nothing about the language
)

func classify949(lead, trail byte) pair949 {
	if trail >= 0xa1 && trail != 0xff { // the block of EUC-KR
		switch {
		case lead >= 0xb0 && lead <= 0xc8:
			return hangul949
		case lead == 0xa4 || lead == 0xa5: // single letters; the kana of Japanese EUC
			return other949
		case lead >= 0xa1 && lead <= 0xaf:
			return symbol949
		case lead >= 0xca && lead <= 0xfd:
			return other949
		}
		return invalid949
	}
	extended := trail >= 'A' && trail <= 'Z' || trail >= 'a' && trail <= 'z' || trail >= 0x81 && trail <= 0xa0
	if extended && lead >= 0x81 && lead <= 0xc6 {
		return other949
	}
	return invalid949
}
