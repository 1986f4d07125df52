package pdf

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// Document is a document of text.
type Document struct {
	Title, Language string
	Pages           [][]Text
	Outline         []Entry
	// Extra is added to the trailer, Objects to the objects; the first of them has the
	// number FirstObject.
	Extra   string
	Objects []string
}

// Text is a line of text, its beginning in points from the page's left and bottom. A page
// is 612 wide and 792 high.
type Text struct {
	X, Y, Size float64
	Font       Font
	Text       string
}

// Font is one of the fonts that every reader has.
type Font string

// The fonts.
const (
	Regular Font = "Helvetica"
	Bold    Font = "Helvetica-Bold"
	Fixed   Font = "Courier"
)

// Entry is an entry of the outline; Page counts from 1.
type Entry struct {
	Title string
	Page  int
	Below []Entry
}

// FirstObject is the number of the first of Document.Objects.
const FirstObject = 10_000

// Bytes is the document as a file.
func (d Document) Bytes() []byte {
	w := writer{}
	w.line("%PDF-1.7")
	kids := make([]string, len(d.Pages))
	for i := range d.Pages {
		kids[i] = fmt.Sprintf("%d 0 R", 10+2*i)
	}
	outlines := ""
	if len(d.Outline) > 0 {
		w.next = 10 + 2*len(d.Pages)
		first, last := w.entries(d.Outline, 3)
		w.object(3, fmt.Sprintf("<< /Type /Outlines /First %d 0 R /Last %d 0 R >>", first, last))
		outlines = " /Outlines 3 0 R"
	}
	w.object(1, fmt.Sprintf("<< /Type /Catalog /Pages 2 0 R /Lang %s%s >>", quote(d.Language), outlines))
	w.object(2, fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(kids), strings.Join(kids, " ")))
	w.object(4, "<< /Title "+quote(d.Title)+" >>")
	for i, f := range []Font{Regular, Bold, Fixed} {
		w.object(5+i, fmt.Sprintf("<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>", f))
	}
	names := map[Font]string{Regular: "R", Bold: "B", Fixed: "F"}
	for i, p := range d.Pages {
		w.object(10+2*i, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /R 5 0 R /B 6 0 R /F 7 0 R >> >> /Contents %d 0 R >>", 11+2*i))
		var b strings.Builder
		for _, t := range p {
			fmt.Fprintf(&b, "BT /%s %g Tf 1 0 0 1 %g %g Tm %s Tj ET\n", names[t.Font], t.Size, t.X, t.Y, quote(t.Text))
		}
		w.object(11+2*i, Stream("", b.String()))
	}
	for i, o := range d.Objects {
		w.object(FirstObject+i, o)
	}
	w.line("trailer << /Root 1 0 R /Info 4 0 R /Size 20000 " + d.Extra + " >>")
	w.line("%%EOF")
	return w.Bytes()
}

// Stream is an object with data; dictionary says what they are.
func Stream(dictionary, data string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(data), dictionary, data)
}

// writer writes objects. There is no table of their places: readers find them by
// themselves, as in a damaged file.
type writer struct {
	bytes.Buffer
	next int // the number of the next entry of the outline
}

func (w *writer) line(s string) { w.WriteString(s + "\n") }

func (w *writer) object(n int, s string) { w.line(fmt.Sprintf("%d 0 obj\n%s\nendobj", n, s)) }

// entries writes the entries below an object.
func (w *writer) entries(of []Entry, parent int) (first, last int) {
	first = w.next
	w.next += len(of)
	for i, e := range of {
		n := first + i
		s := fmt.Sprintf("<< /Title %s /Parent %d 0 R /Dest [%d 0 R /Fit]", quote(e.Title), parent, 8+2*e.Page)
		if i > 0 {
			s += fmt.Sprintf(" /Prev %d 0 R", n-1)
		}
		if i < len(of)-1 {
			s += fmt.Sprintf(" /Next %d 0 R", n+1)
		}
		if len(e.Below) > 0 {
			below, end := w.entries(e.Below, n)
			s += fmt.Sprintf(" /First %d 0 R /Last %d 0 R", below, end)
		}
		w.object(n, s+" >>")
	}
	return first, first + len(of) - 1
}

// quote is a string in Windows-1252; other characters are a question mark.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('(')
	for _, r := range s {
		c, ok := charmap.Windows1252.EncodeRune(r)
		if !ok {
			c = '?'
		}
		if c == '(' || c == ')' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	b.WriteByte(')')
	return b.String()
}

// Write sets lines one below the other from the top of pages, each size*1.2 below the one
// before it. A text that begins with "# " or "## " is a heading, with four spaces it is
// code; an empty one is a gap. Long lines are broken.
func Write(lines ...string) (pages [][]Text) {
	const left, top, bottom, size, letters = 72.0, 720.0, 72.0, 10.0, 85
	y := top
	put := func(t Text, above float64) {
		if y -= above; len(pages) == 0 || y < bottom {
			pages, y = append(pages, nil), top
		}
		t.X += left
		t.Y = y
		pages[len(pages)-1] = append(pages[len(pages)-1], t)
	}
	gap := 0.0
	for _, l := range lines {
		text := strings.TrimLeft(l, "# ")
		switch {
		case l == "":
			gap = size
			continue
		case strings.HasPrefix(l, "# "):
			put(Text{Size: 20, Font: Bold, Text: text}, 40)
		case strings.HasPrefix(l, "## "):
			put(Text{Size: 14, Font: Bold, Text: text}, 28)
		case strings.HasPrefix(l, "    "):
			put(Text{X: 20 + .6*size*float64(len(l)-len(text)-4), Size: size, Font: Fixed, Text: text}, gap+1.2*size)
		default:
			for i, part := range broken(l, letters) {
				if i > 0 {
					gap = 0
				}
				put(Text{Size: size, Font: Regular, Text: part}, gap+1.2*size)
			}
		}
		if gap = 0; strings.HasPrefix(l, "#") {
			gap = size
		}
	}
	return pages
}

// broken cuts a text into lines.
func broken(text string, letters int) (out []string) {
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > letters {
			out = append(out, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+w, " ")
	}
	return append(out, line)
}
