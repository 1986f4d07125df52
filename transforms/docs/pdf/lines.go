package pdf

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// line is a line of text on a page. Where its end is hyphenated the next line of the
// page belongs to it, with hyphen between them.
type line struct {
	text        string
	left, right float64 // in points from the page's left
	top, bottom float64 // its baselines, in points from the page's bottom; they differ where lines were joined
	font        font
}

// font is how a line is set.
type font struct {
	size  float64 // in points, 0 when PDFium does not know it
	bold  bool
	fixed bool // all letters have the same width
}

// hyphen is what PDFium writes for a hyphen at the end of a line and the break after it.
const hyphen = '\uFFFE'

// file is what a document says.
type file struct {
	title, language string
	pages           [][]line
	outline         []entry
}

// lines cuts a page's text into lines and looks up where and how they are set.
func (d *document) lines(page references.FPDF_TEXTPAGE, text string) (out []line, err error) {
	units := 0
	for raw := range strings.SplitSeq(text, "\n") {
		l := line{text: strings.Trim(raw, "\r \x00")}
		first, last := spans(raw)
		if first >= 0 {
			if err := d.place(page, &l, units+first, units+last); err != nil {
				return nil, err
			}
			out = append(out, l)
		}
		units += length(raw) + 1
	}
	return out, nil
}

// length is the length of a text in UTF-16.
func length(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// spans finds the first and the last character that is no space, -1 when there is none.
func spans(s string) (first, last int) {
	first, n := -1, 0
	for _, r := range s {
		if !unicode.IsSpace(r) && r != 0 && r != hyphen {
			if last = n; first < 0 {
				first = n
			}
		}
		n += utf16.RuneLen(r)
	}
	return first, last
}

// place fills in where a line is and how it is set. What PDFium does not know of a
// character stays zero.
func (d *document) place(page references.FPDF_TEXTPAGE, l *line, first, last int) error {
	var at [3]int
	for i, n := range []int{first, (first + last) / 2, last} {
		c, err := d.in.FPDFText_GetCharIndexFromTextIndex(&requests.FPDFText_GetCharIndexFromTextIndex{TextPage: page, NTextIndex: n})
		if err != nil {
			return err
		}
		at[i] = c.CharIndex
	}
	if o, err := d.in.FPDFText_GetCharOrigin(&requests.FPDFText_GetCharOrigin{TextPage: page, Index: at[0]}); err == nil {
		l.left, l.top, l.bottom = finite(o.X), finite(o.Y), finite(o.Y)
	}
	if b, err := d.in.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: page, Index: at[2]}); err == nil {
		l.right = finite(b.Right)
	}
	if strings.ContainsRune(l.text, hyphen) {
		if o, err := d.in.FPDFText_GetCharOrigin(&requests.FPDFText_GetCharOrigin{TextPage: page, Index: at[2]}); err == nil {
			l.bottom = finite(o.Y)
		}
	}
	l.font = d.font(page, at[0])
	for _, i := range at[1:] {
		f := d.font(page, i)
		if f.size == 0 {
			continue
		}
		// A line is bold or has a fixed width when all of it has.
		l.font.size = max(l.font.size, f.size)
		l.font.bold, l.font.fixed = l.font.bold && f.bold, l.font.fixed && f.fixed
	}
	return nil
}

func finite(n float64) float64 {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// font looks up the font of a character.
func (d *document) font(page references.FPDF_TEXTPAGE, i int) (f font) {
	size, err := d.in.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: page, Index: i})
	if err != nil {
		return f
	}
	f.size = finite(size.FontSize)
	if m, err := d.in.FPDFText_GetMatrix(&requests.FPDFText_GetMatrix{TextPage: page, Index: i}); err == nil {
		f.size *= math.Hypot(finite(float64(m.Matrix.C)), finite(float64(m.Matrix.D)))
	}
	f.size = math.Round(f.size*10) / 10
	info, err := d.in.FPDFText_GetFontInfo(&requests.FPDFText_GetFontInfo{TextPage: page, Index: i})
	if err != nil {
		return f
	}
	name := strings.ToLower(info.FontName)
	f.fixed = info.Flags&fixedPitch != 0 || containsAny(name, "mono", "courier", "consol", "menlo", "cmtt", "sltt", "sftt", "typewriter")
	f.bold = info.Flags&forceBold != 0 || containsAny(name, "bold", "black", "heavy", "semib", "cmbx", "sfbx", "-medi")
	if w, err := d.in.FPDFText_GetFontWeight(&requests.FPDFText_GetFontWeight{TextPage: page, Index: i}); err == nil && w.FontWeight >= 600 {
		f.bold = true
	}
	return f
}

// Flags of a font's descriptor (ISO 32000-1, table 123).
const (
	fixedPitch = 1 << 0
	forceBold  = 1 << 18
)

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
