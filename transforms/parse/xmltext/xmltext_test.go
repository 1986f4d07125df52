package xmltext_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/xmltext"
)

func TestAttr(t *testing.T) {
	s := xmltext.Scanner{Text: `<a:b c rel=x d = "1&amp;2" data-href='no' href='&copy=1'  e="'" f=>`}
	require.True(t, s.Next() && s.Token.Prefix == "a" && s.Token.Local == "b", "%+v", s.Token)
	for name, want := range map[string]string{"c": "", "rel": "x", "d": "1&2", "href": "&copy=1", "e": "'", "f": "", "none": ""} {
		got := s.Token.Attr(name)
		assert.Equal(t, want, got, name)
	}
}

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                              "plain",
		"&amp;&lt;&#65;&#x41;":               "&<AA",
		"&amp;amp; &amp;copy;":               "&amp; &copy;", // each once
		"a=1&copy=2&lt&reg":                  "a=1&copy=2&lt&reg",
		"&own; &no-name; & &; &":             " &no-name; & &; &",
		"&semi;":                             ";",
		"&" + strings.Repeat("a", 99) + ";b": "b",
	} {
		got := xmltext.Unescape(text)
		assert.Equal(t, want, got, text)
	}
}

func TestDecode(t *testing.T) {
	f := func(body, want string, isXML bool) {
		t.Helper()
		text, got, err := xmltext.Decode([]byte(body))
		assert.True(t, text == want && got == isXML && err == nil, "%q: %q %v (%v), want %q %v", body, text, got, err, want, isXML)
	}
	f("\ufeff\ufeff\n<a/>", "<a/>", true)
	f("Notice: x <?xml version='1.0'?><a/>", "<?xml version='1.0'?><a/>", true)
	f(strings.Repeat(" x", 5000)+"<?xml version='1.0'?>", strings.TrimSpace(strings.Repeat(" x", 5000))+"<?xml version='1.0'?>", false)
	f("http://a.example/", "http://a.example/", false)
}
