package charset_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	html "golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/newsfork/seed-engine/transforms/parse/charset"
)

func TestDecode(t *testing.T) {
	f := func(body, contentType, text, name string) {
		t.Helper()
		got, gotName, err := charset.Decode([]byte(body), contentType)
		if err != nil || got != text || gotName != name {
			t.Errorf("%q with %q: %q in %s (%v), want %q in %s", body, contentType, got, gotName, err, text, name)
		}
	}
	f("", "", "", "utf-8")
	f("plain", "", "plain", "utf-8")
	f("\xef\xbb\xbfhi", "text/html; charset=euc-kr", "hi", "utf-8")
	f("\xff\xfeh\x00i\x00", "", "hi", "utf-16le")
	f("\xb3\xe2", "text/html; charset=EUC-KR", "년", "euc-kr")
	f("\xb3\xe2", "text/html; charset=cp949", "년", "euc-kr")
	f("h\x00i\x00", "text/xml; charset=utf-16", "hi", "utf-16le")
	f("caf\xe9 ol\xe9", "", "café olé", "windows-1252")
	f("caf\xe9", "text/html; charset=x-nonsense", "café", "windows-1252")
	f("한글 cut \xed\x95", "", "한글 cut \ufffd", "utf-8")
	f("a\x80\x80\xf0\x9f\x98b\xe5\x97\xe6", "text/html; charset=utf-8", "a\ufffd\ufffd\ufffdb\ufffd\ufffd", "utf-8")
	f("<\x00h\x00>\x00\x00\xae", "", "<h>글", "utf-16le")
	f("\x00<\x00h\x00>\xae\x00", "", "<h>글", "utf-16be")
	f("a\x00\x00b", "", "a\x00\x00b", "utf-8")
	f(strings.Repeat("한글", 10)+"\xe9.", "", strings.Repeat("한글", 10)+"\ufffd.", "utf-8")
	f(`<?xml version="1.0" encoding="iso-8859-2"?>`+"\xb1", "", `<?xml version="1.0" encoding="iso-8859-2"?>ą`, "iso-8859-2")
	f("<?xml version='1.0' encoding = 'IBM437'?>\x80", "", "<?xml version='1.0' encoding = 'IBM437'?>Ç", "ibm437")
	f(`<meta charset="utf-16">x`, "", `<meta charset="utf-16">x`, "utf-8")
	f(`<meta charset="euc-kr">한글`, "", `<meta charset="euc-kr">한글`, "utf-8")
}

func TestGuess(t *testing.T) {
	f := func(body []byte, err error, want string) {
		t.Helper()
		_, got, decodeErr := charset.Decode(body, "")
		assert.True(t, err == nil && decodeErr == nil && got == want, "%q: %s, want %s (%v, %v)", body, got, want, err, decodeErr)
	}
	ko, err := korean.EUCKR.NewEncoder().Bytes([]byte("대한민국 헌법 제1조: 모든 국민은 법 앞에 평등하다. 똠방각하"))
	f(ko, err, "euc-kr")
	f(ko[:len(ko)-1], err, "euc-kr") // cut in the middle of a syllable
	zh, err := simplifiedchinese.GBK.NewEncoder().Bytes([]byte("第一条 中华人民共和国是工人阶级领导的社会主义国家"))
	f(zh, err, "gb18030")
	ja, err := japanese.EUCJP.NewEncoder().Bytes([]byte("すべて国民は、法の下に平等であって"))
	f(ja, err, "euc-jp")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("<meta charset=euc-kr>\xb3\xe2"), "text/html")
	f.Add([]byte("<?xml encoding='utf-16'?>\xff"), "a;charset=\"x")
	f.Add([]byte("\x00\x00\xfe\xff\x00"), ";")
	for _, n := range notices {
		for name := range strings.FieldsSeq(n.in) {
			enc, _ := html.Lookup(name)
			body, err := enc.NewEncoder().Bytes([]byte("<p>" + n.heading + "</p>" + n.text))
			require.NoError(f, err)
			f.Add(body, "")
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		text, name, err := charset.Decode(body, contentType)
		require.NoError(t, err, "decoding as %s", name)
		assert.True(t, utf8.ValidString(text), "text from %s is not UTF-8", name)
		again, as, _ := charset.Decode(body, contentType)
		assert.True(t, again == text && as == name, "read as %s, and again as %s", name, as)
		if charset.Label(name) != name {
			t.Errorf("the name %q does not name itself: %q", name, charset.Label(name))
		}
	})
}

// A page that is UTF-8 is not copied.
func TestBytesShares(t *testing.T) {
	for _, c := range []struct {
		body   string
		shared bool
	}{{"<p>text</p>", true}, {"<p>한국어</p>", true}, {"\ufeff<p>한국어</p>", true}, {"<p>한국어\xff</p>", false}} {
		body := []byte(c.body)
		text, _, err := charset.Bytes(body, "text/html; charset=utf-8")
		require.True(t, err == nil && len(text) != 0, "%q: %q, %v", c.body, text, err)
		shared := &text[len(text)-1] == &body[len(body)-1]
		assert.Equal(t, c.shared, shared, "%q: shared %v", c.body, shared)
		want, _, _ := charset.Decode(body, "text/html; charset=utf-8")
		assert.Equal(t, want, string(text), "%q: %q, want %q", c.body, text, want)
	}
}
