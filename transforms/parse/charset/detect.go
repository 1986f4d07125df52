package charset

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding/charmap"
)

// maxSample is the maximum length of foreign text that is examined.
const maxSample = 4 << 10

// detect names the encoding of a body that declares none and is not UTF-8;
// windows-1252 where there is no sign of another.
func detect(body []byte) string {
	if escapes(body) {
		return "iso-2022-jp"
	}
	sample := foreignText(body)
	if len(sample) == 0 {
		return "windows-1252"
	}
	if korean949(sample) {
		return "euc-kr"
	}
	if name := alphabet(sample); name != "" {
		return name
	}
	found, err := chardet.NewTextDetector().DetectAll(sample)
	if err != nil {
		return "windows-1252" // nothing was found
	}
	best, name := leastConfidence, ""
	for _, f := range found {
		n := detected[f.Charset]
		// Of encodings with equal confidence the first by name, because the detector's order is random.
		if n != "" && (f.Confidence > best || f.Confidence == best && n < name) && reads(sample, n) {
			best, name = f.Confidence, n
		}
	}
	if name == "" || western(sample, name) {
		return "windows-1252"
	}
	return name
}

// western says that sample is the same text in an encoding and in windows-1252,
// as one without Turkish letters is in windows-1254.
func western(sample []byte, name string) bool {
	enc, _ := lookup(name)
	text, err := enc.NewDecoder().Bytes(sample)
	if err != nil {
		return true
	}
	same, err := charmap.Windows1252.NewDecoder().Bytes(sample)
	return err == nil && bytes.Equal(text, same)
}

// leastConfidence is the detector's confidence for a few words of Western text, which
// are a little like any language.
const leastConfidence = 12

// escapes reports whether body is ASCII with the escape sequences of Japanese encodings.
func escapes(body []byte) bool {
	return bytes.Contains(body, []byte("\x1b$B")) || bytes.Contains(body, []byte("\x1b$@"))
}

// detected are the encodings that the detector may choose, by its names for them. Texts
// of other alphabets were recognised before.
var detected = map[string]string{
	"Big5": "big5", "EUC-JP": "euc-jp", "EUC-KR": "euc-kr", "GB18030": "gb18030", "GB-18030": "gb18030", "Shift_JIS": "shift_jis",
	"ISO-8859-1": "windows-1252", "windows-1252": "windows-1252", "ISO-8859-2": "iso-8859-2", "windows-1250": "windows-1250",
	"ISO-8859-9": "windows-1254", "windows-1254": "windows-1254", "ISO-8859-5": "iso-8859-5",
}

// reads reports whether nearly all of sample is valid in an encoding.
func reads(sample []byte, name string) bool {
	enc, _ := lookup(name)
	text, err := enc.NewDecoder().Bytes(sample)
	if err != nil {
		return false
	}
	return bytes.Count(text, []byte("\ufffd"))*50 <= utf8.RuneCount(text)
}

// foreignText is the part of a page that shows its encoding: the parts
// between tags, scripts and styles with more than ASCII. No encoding of
// bytes that this package knows uses < or > inside a character.
func foreignText(body []byte) []byte {
	var out []byte
	for len(body) > 0 && len(out) < maxSample {
		end := bytes.IndexByte(body, '<')
		text := body
		if end >= 0 {
			text = body[:end]
		}
		if foreign(text) {
			if len(out) > 0 {
				out = append(out, '\n')
			}
			out = append(out, text...)
		}
		if end < 0 {
			break
		}
		body = body[end:]
		if end = bytes.IndexByte(body, '>'); end < 0 {
			break
		}
		body = body[end+1:]
	}
	return out[:min(len(out), maxSample)]
}

func foreign(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// A script is an alphabet other than Latin, with its single-byte encodings on the web.
type script struct {
	table  *unicode.RangeTable
	common string // the letters that make up about two thirds of a text
	last   string // letters that only end words
	first  string // letters that another one follows
	in     []codePage
}

type codePage struct {
	name  string
	runes [256]rune
}

// alphabets are in the order in which equals are preferred: the strictest first.
var alphabets = []script{
	{unicode.Hebrew, "יוהלאברתשמנ", "ךםןףץ", "", []codePage{page("windows-1255", charmap.Windows1255)}},
	{unicode.Greek, "αοιετσνηυρκάέήίόύώς", "ς", "", []codePage{page("windows-1253", charmap.Windows1253), page("iso-8859-7", charmap.ISO8859_7)}},
	{unicode.Thai, "านรกเองมยลวดทสตะ่้ัิี", "", "เแโใไ", []codePage{page("windows-874", charmap.Windows874)}},
	{unicode.Arabic, "المينوترهبدعسفةی", "ةى", "", []codePage{page("windows-1256", charmap.Windows1256)}},
	{unicode.Cyrillic, "оеаинтсрвліку", "", "", []codePage{page("windows-1251", charmap.Windows1251), page("koi8-u", charmap.KOI8U)}},
}

func page(name string, of *charmap.Charmap) codePage {
	p := codePage{name: name}
	for b := range p.runes {
		p.runes[b] = of.DecodeByte(byte(b))
	}
	return p
}

// leastFit is what a text of an alphabet reaches in its own encoding and hardly
// any other does.
const leastFit = 0.5

// alphabet names the encoding in which the sample is text of a non-Latin alphabet, ""
// where none fits.
func alphabet(sample []byte) string {
	words := slices.DeleteFunc(bytes.FieldsFunc(sample, separates), func(w []byte) bool { return !foreign(w) })
	best, name := leastFit, ""
	for i := range alphabets {
		for k := range alphabets[i].in {
			if f := alphabets[i].fit(words, &alphabets[i].in[k]); f > best {
				best, name = f, alphabets[i].in[k].name
			}
		}
	}
	return name
}

// fit is 1 for a text of common letters alone, and below 0 for one that is hardly
// of the script.
func (s *script) fit(words [][]byte, p *codePage) float64 {
	n, value := 0, 0.0
	var word []rune
	for _, w := range words {
		word = word[:0]
		for _, b := range w {
			word = append(word, p.runes[b])
		}
		if word = trim(word); len(word) > 1 { // one letter says nothing: the Italian è
			judged, v := s.judge(word)
			n, value = n+judged, value+v
		}
	}
	return value / float64(max(n, 1))
}

// judge returns the number of a word's foreign characters and their
// worth: letters of the script alone, capitals at the beginning or throughout,
// marks behind letters, and the common letters common.
func (s *script) judge(word []rune) (n int, value float64) {
	const bad = -2
	var before rune
	capitals := 0
	for _, r := range word {
		switch {
		case before != 0 && (r < utf8.RuneSelf) != (before < utf8.RuneSelf):
			value += bad // Latin and other letters in one word
		case r < utf8.RuneSelf:
		case !unicode.Is(s.table, r):
			value += bad
		case unicode.IsMark(r) && (before == 0 || strings.ContainsRune(s.first, before)),
			strings.ContainsRune(s.first, r) && strings.ContainsRune(s.first, before),
			unicode.IsDigit(r),
			unicode.IsUpper(r) && unicode.IsLower(before),
			strings.ContainsRune(s.last, before):
			value += bad
		case strings.ContainsRune(s.common, unicode.ToLower(r)):
			value++
		default:
			value += 0.3
		}
		if r >= utf8.RuneSelf {
			n++
		}
		if unicode.IsUpper(r) {
			capitals++
		}
		before = r
	}
	switch {
	case capitals == len(word):
		value -= 0.2 * float64(n) // words of capitals are the exception
	case capitals > 1:
		value += bad * float64(capitals-1)
	}
	return n, value
}

// trim removes quotation marks, dashes and spaces around a word.
func trim(word []rune) []rune {
	for len(word) > 0 && around(word[0]) {
		word = word[1:]
	}
	for len(word) > 0 && around(word[len(word)-1]) {
		word = word[:len(word)-1]
	}
	return word
}

func around(r rune) bool {
	return r == '\u00a0' || r == '…' || r == '•' || unicode.In(r, unicode.Pd, unicode.Pi, unicode.Pf, unicode.Ps)
}

// separates reports whether a byte is not part of a word in any encoding.
func separates(r rune) bool { return r < utf8.RuneSelf && !unicode.IsLetter(r) }
