package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/md5" //nolint:gosec // the format's
	"crypto/rc4" //nolint:gosec // the format's
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

func markdown(t *testing.T, d Document) content.Page {
	t.Helper()
	p, err := Read(t.Context(), d.Bytes())
	require.NoError(t, err)
	return p
}

const prose = "The service answers with the state of the order, and it keeps what it was asked for a day, so that a second try with the same key does nothing new."

func TestHeadingsByTheirSize(t *testing.T) {
	t.Parallel()
	p := markdown(t, Document{Language: "en_us", Pages: Write("# Orders", prose, "", prose+" More.", "## How to cancel", prose, "    curl -X POST \\", "        /orders/1", "after it *this* is_not <b> code_.")})
	assert.Equal(t, "Orders", p.Title)
	assert.Equal(t, "en-US", p.Language)
	assert.Equal(t, "# Orders\n\n"+prose+"\n\n"+prose+" More.\n\n## How to cancel\n\n"+prose+"\n\n```\ncurl -X POST \\\n    /orders/1\n```\n\nafter it \\*this\\* is_not \\<b> code\\_.", p.Markdown)
	assert.Equal(t, []int{0}, p.Pages)
}

func TestHeadingsByTheOutline(t *testing.T) {
	t.Parallel()
	pages := Write("# 1 Orders", prose, "## 1.1 How to cancel", prose, "Fees", prose, "## Not in the outline", prose)
	p := markdown(t, Document{Title: "The guide", Pages: pages, Outline: []Entry{
		{Title: "Orders", Page: 1, Below: []Entry{{Title: "Cancelling", Page: 1, Below: []Entry{{Title: "How to cancel", Page: 1}, {Title: "Fees", Page: 1}}}}}}})
	assert.Equal(t, "The guide", p.Title)
	assert.Equal(t, "# 1 Orders\n\n"+prose+"\n\n### 1.1 How to cancel\n\n"+prose+"\n\n### Fees\n\n"+prose+"\n\n### Not in the outline\n\n"+prose, p.Markdown)
}

// An outline that names nothing of the text says nothing of its headings, and one that is
// a circle ends.
func TestStrangeOutlines(t *testing.T) {
	t.Parallel()
	pages := Write("# Orders", prose, "## Fees", prose)
	want := markdown(t, Document{Pages: pages}).Markdown
	assert.Equal(t, want, markdown(t, Document{Pages: pages, Outline: []Entry{{Title: "One", Page: 1}, {Title: "Two", Page: 1}, {Title: "Fees", Page: 1}}}).Markdown)
	circle := Document{Pages: pages, Outline: []Entry{{Title: "One", Page: 1}, {Title: "Two", Page: 1}}}
	body := bytes.ReplaceAll(circle.Bytes(), []byte("/Prev 12 0 R"), []byte("/Next 12 0 R /First 12 0 R"))
	p, err := Read(t.Context(), body)
	require.NoError(t, err)
	assert.Equal(t, want, p.Markdown)
}

func TestRunningHeadsAndPageNumbers(t *testing.T) {
	t.Parallel()
	var pages [][]Text
	var want []string
	for i := range 8 {
		body := fmt.Sprintf("On page %s there is a sentence about %s alone, and it ends in 2%d", strings.Repeat("x", i+1), strings.Repeat("y", i+1), i*i)
		page := Write(body + ".")[0]
		chapter := []string{"Chapter 1: Orders", "Chapter 2: Fees"}[i/4]
		page = append([]Text{{X: 72, Y: 750, Size: 9, Font: Regular, Text: chapter}, {X: 500, Y: 750, Size: 9, Font: Regular, Text: fmt.Sprint(i + 11)}}, page...)
		pages = append(pages, append(page, Text{X: 72, Y: 40, Size: 9, Font: Regular, Text: "Example Ltd, all rights reserved"}))
		want = append(want, body+".")
	}
	assert.Equal(t, strings.Join(want, "\n\n"), markdown(t, Document{Pages: pages}).Markdown)
}

func TestParagraphs(t *testing.T) {
	t.Parallel()
	at := func(x, y float64, text string) Text {
		return Text{X: x, Y: y, Size: 10, Font: Regular, Text: text}
	}
	full := "The lines of this paragraph are as wide as its column is, so that they are one and "
	for name, tt := range map[string]struct {
		pages [][]Text
		want  string
	}{
		"a word that is cut": {[][]Text{{at(72, 700, full+"are joined, as the or-"), at(72, 688, "der of its words says. Its well-known end is here.")}},
			full + "are joined, as the order of its words says. Its well-known end is here."},
		"a hyphen that stays": {[][]Text{{at(72, 700, full+"are joined as is well-known and is well-"), at(72, 688, "known to all.")}},
			full + "are joined as is well-known and is well-known to all."},
		"it continues on the next page": {[][]Text{{at(72, 700, full+"continue at the top of")}, {at(72, 700, "the next page.")}}, full + "continue at the top of the next page."},
		"it ends with its page":         {[][]Text{{at(72, 700, full+"end.")}, {at(72, 700, "the next page.")}}, full + "end.\n\nthe next page."},
		"a first line that is indented": {[][]Text{{at(72, 700, full+"are not indented at"), at(72, 688, full+"are not either, so,"), at(90, 676, full+"are indented.")}},
			full + "are not indented at " + full + "are not either, so,\n\n" + full + "are indented."},
		"a line that ends early": {[][]Text{{at(72, 700, full+"are not short"), at(72, 688, "This one is"), at(72, 676, full+"are not short")}},
			full + "are not short This one is\n\n" + full + "are not short"},
		"items": {[][]Text{{at(72, 700, "\u00b7 one"), at(72, 688, "\u00b7 two and what is"), at(80, 676, "below it"), at(72, 664, "1. first"), at(72, 652, "2. second")}},
			"- one\n- two and what is below it\n\n1. first\n\n2. second"},
		"a table": {[][]Text{{at(72, 700, "Code"), at(200, 700, "Meaning"), at(400, 700, "Since"), at(72, 688, "404"), at(200, 688, "Not found"), at(400, 688, "1.0"), at(72, 660, full)}},
			"Code Meaning Since  \n404 Not found 1.0\n\n" + strings.TrimSpace(full)},
		"a table of contents": {[][]Text{{{X: 72, Y: 740, Size: 20, Font: Bold, Text: "Contents"}, at(72, 700, "1 Orders . . . . . . . . . . . 3"), at(72, 688, "2 Fees ............... 12"), at(72, 640, full+"end.")}},
			full + "end."},
		"an address": {[][]Text{{at(72, 700, "Write to somebody@example.com about it.")}}, "Write to [email] about it."},
	} {
		assert.Equal(t, tt.want, markdown(t, Document{Pages: tt.pages}).Markdown, name)
	}
}

func TestTitles(t *testing.T) {
	t.Parallel()
	f, err := read(t.Context(), Document{Title: "The API guide", Pages: Write("# Orders", prose)}.Bytes(), usual)
	require.NoError(t, err)
	require.Equal(t, "The API guide", f.title)
	for title, want := range map[string]string{"": "Orders", "Untitled 1": "Orders", "Microsoft Word - a.doc": "Orders", "guide.dvi": "Orders", "2026": "Orders", "The API guide": "The API guide"} {
		f.title = title // one document for all: to start PDFium takes longer than the rest
		p, err := f.page()
		require.NoError(t, err)
		assert.Equal(t, want, p.Title, title)
	}
}

// A chunk's page is the page on which it begins.
func TestPagesBeginWhereTheirTextBegins(t *testing.T) {
	t.Parallel()
	var pages [][]Text
	for i := range 5 {
		if i != 2 { // an empty one
			pages = append(pages, Write("# Part "+strings.Repeat("I", i+1), prose[i:])[0])
		} else {
			pages = append(pages, nil)
		}
	}
	p := markdown(t, Document{Pages: pages})
	require.Len(t, p.Pages, 5)
	for i, at := range p.Pages {
		if i != 2 {
			assert.True(t, strings.HasPrefix(strings.TrimLeft(p.Markdown[at:], "\n"), "# Part "+strings.Repeat("I", i+1)+"\n"), i)
		}
	}
}

// What Chromium prints of a page has the page's words.
func TestPrintedByABrowser(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(filepath.Join("testdata", "printed.pdf"))
	require.NoError(t, err)
	p, err := Read(t.Context(), body)
	require.NoError(t, err)
	golden := filepath.Join("testdata", "printed.md")
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(p.Markdown+"\n"), 0o644)) //nolint:gosec // it is a file of the repository
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), p.Markdown+"\n")
}

// protected is a document that opens without a password, with these permissions, or with
// one.
func protected(permissions int32, password bool) Document {
	pad, _ := hex.DecodeString("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
	owner, id := strings.Repeat("o", 32), strings.Repeat("i", 16)
	sum := md5.Sum([]byte(string(pad) + owner + string([]byte{byte(permissions), byte(permissions >> 8), byte(permissions >> 16), byte(permissions >> 24)}) + id)) //nolint:gosec // the format's
	user := make([]byte, 32)
	if !password {
		c, _ := rc4.NewCipher(sum[:5]) //nolint:gosec // the format's
		c.XORKeyStream(user, pad)
	}
	return Document{Pages: Write(prose), Objects: []string{fmt.Sprintf("<< /Filter /Standard /V 1 /R 2 /O <%x> /U <%x> /P %d >>", owner, user, permissions)},
		Extra: fmt.Sprintf("/Encrypt %d 0 R /ID [<%x> <%x>]", FirstObject, id, id)}
}

func deflated(data []byte) string {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.String()
}

// shown is a document whose one page shows an object.
func shown(objects ...string) []byte {
	d := Document{Pages: [][]Text{nil}, Objects: objects}
	return bytes.ReplaceAll(d.Bytes(), []byte("/Contents 11 0 R"), fmt.Appendf(nil, "/Contents %d 0 R", FirstObject))
}

func TestHostile(t *testing.T) {
	t.Parallel()
	small := limits{pages: 3, text: 1 << 10, time: time.Minute}
	long := Document{Pages: make([][]Text, 4)}
	bomb := deflated(bytes.Repeat([]byte("BT /R 10 Tf 72 700 Td (x) Tj ET\n"), 3<<20))
	twice := deflated([]byte(deflated(make([]byte, 200<<20))))
	for name, tt := range map[string]struct {
		body []byte
		want error
	}{
		"a password":                {protected(-4, true).Bytes(), errEncrypted},
		"copying is not allowed":    {protected(-4&^copying, false).Bytes(), errNoCopying},
		"no PDF":                    {[]byte("%PDF-1.7 …"), errDamaged},
		"nothing":                   {nil, errDamaged},
		"cut":                       {Document{Pages: Write(prose)}.Bytes()[:60], errDamaged},
		"no pages":                  {Document{}.Bytes(), errDamaged},
		"pages without text":        {Document{Pages: make([][]Text, 3)}.Bytes(), errNoText},
		"too many pages":            {long.Bytes(), errTooLong},
		"too much text":             {Document{Pages: Write(strings.Repeat(prose+" ", 8))}.Bytes(), errTooLong},
		"a page that needs memory":  {shown(Stream("/Filter /FlateDecode", bomb)), errMemory},
		"compressed twice":          {shown(Stream("/Filter [/FlateDecode /FlateDecode]", twice)), errMemory},
		"a tree of pages in itself": {bytes.ReplaceAll(long.Bytes(), []byte("/Kids ["), []byte("/Kids [2 0 R ")), errTooLong},
	} {
		f, err := read(t.Context(), tt.body, small)
		if err == nil {
			_, err = f.page()
		}
		assert.ErrorIs(t, err, tt.want, name)
		assert.True(t, Refused(err), name)
	}
	p, err := Read(t.Context(), protected(-4, false).Bytes()) // its text is not encrypted as it says
	assert.True(t, err == nil || Refused(err), "%v %v", p, err)
}

// A page that takes long is left in the middle, and the next document is read as if
// nothing was.
func TestTooSlow(t *testing.T) {
	t.Parallel()
	const word = "BT /R 1 Tf %d.%d %d Td (a%d) Tj ET\n"
	var many strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&many, word, i%600, i/600%10, i/6000*10, i)
	}
	l := usual
	l.time = 300 * time.Millisecond // all of it takes seconds
	_, err := read(t.Context(), shown(Stream("", many.String())), l)
	require.ErrorIs(t, err, errTooSlow)
	assert.Equal(t, prose, markdown(t, Document{Pages: Write(prose)}).Markdown)
}

func TestItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Read(ctx, Document{Pages: Write(prose)}.Bytes())
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, Refused(err))
}

// checked is what holds for whatever was read.
func checked(t *testing.T, p content.Page, err error) {
	t.Helper()
	if err != nil {
		require.True(t, Refused(err), "%v", err)
		return
	}
	require.True(t, utf8.ValidString(p.Markdown) && utf8.ValidString(p.Title))
	at := 0
	for _, n := range p.Pages {
		require.True(t, at <= n && n <= len(p.Markdown), "%v", p.Pages)
		at = n
	}
}

func FuzzRead(f *testing.F) {
	for _, d := range []Document{{Title: "T", Pages: Write("# Orders", prose, "    code", "## Fees", prose), Outline: []Entry{{Title: "Orders", Page: 1, Below: []Entry{{Title: "Fees", Page: 1}}}}}, protected(-4, true), protected(-4, false)} {
		f.Add(d.Bytes())
	}
	f.Add(shown(Stream("/Filter /FlateDecode", deflated([]byte("BT /R 10 Tf 72 700 Td (x) Tj ET")))))
	_, err := Read(f.Context(), shown(Stream("", ""))) // to start PDFium takes longer than an input may
	require.ErrorIs(f, err, errNoText)
	f.Fuzz(func(t *testing.T, body []byte) {
		l := usual
		l.time = 5 * time.Second
		got, err := read(t.Context(), body, l)
		var p content.Page
		if err == nil {
			p, err = got.page()
		}
		checked(t, p, err)
	})
}

// Whatever lines there are, their words are written and nothing else.
func FuzzLayout(f *testing.F) {
	f.Add("Orders\nthe or\ufffeder of\n\f12\n- item\n1. item\n", []byte{10, 20, 1, 72, 0, 10, 12, 2})
	f.Add("Contents\nOne . . . . . 1\n\f\x00\ue000\n###### x\n```\n", []byte{255, 0, 4, 1})
	f.Add("text\nOne . . . . 1\n\f\x00s\nOne . . . .", []byte("\x9a\x9aent")) // the last heading is that of a table of contents
	f.Fuzz(func(t *testing.T, text string, numbers []byte) {
		next := func() (n float64) {
			if len(numbers) > 0 {
				n, numbers = float64(numbers[0]), append(numbers[1:], numbers[0])
			}
			return n
		}
		in := file{title: text}
		for page := range strings.SplitSeq(text, "\f") {
			var p []line
			for l := range strings.SplitSeq(page, "\n") {
				if strings.TrimSpace(l) == "" {
					continue
				}
				k := int(next())
				y := 4 * next()
				p = append(p, line{text: l, left: 2 * next(), right: 3 * next(), top: y, bottom: y - next()/16, font: font{size: next() / 8, bold: k&1 > 0, fixed: k&2 > 0}})
				if k&4 > 0 {
					in.outline = append(in.outline, entry{l, k >> 4, len(in.pages)})
				}
			}
			in.pages = append(in.pages, p)
		}
		n := len(in.pages)
		out, err := in.page()
		checked(t, out, err)
		if err == nil {
			require.Len(t, out.Pages, n)
			require.LessOrEqual(t, len(out.Markdown), 200*len(text)+100)
		}
	})
}
