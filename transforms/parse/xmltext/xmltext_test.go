package xmltext_test

import (
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/transforms/parse/xmltext"
)

func TestAttr(t *testing.T) {
	s := xmltext.Scanner{Text: `<a:b c rel=x d = "1&amp;2" data-href='no' href='&copy=1'  e="'" f=>`}
	if !s.Next() || s.Token.Prefix != "a" || s.Token.Local != "b" {
		t.Fatalf("%+v", s.Token)
	}
	for name, want := range map[string]string{"c": "", "rel": "x", "d": "1&2", "href": "&copy=1", "e": "'", "f": "", "none": ""} {
		if got := s.Token.Attr(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
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
		if got := xmltext.Unescape(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	f := func(body, want string, isXML bool) {
		t.Helper()
		if text, got, err := xmltext.Decode([]byte(body)); text != want || got != isXML || err != nil {
			t.Errorf("%q: %q %v (%v), want %q %v", body, text, got, err, want, isXML)
		}
	}
	f("\ufeff\ufeff\n<a/>", "<a/>", true)
	f("Notice: x <?xml version='1.0'?><a/>", "<?xml version='1.0'?><a/>", true)
	f(strings.Repeat(" x", 5000)+"<?xml version='1.0'?>", strings.TrimSpace(strings.Repeat(" x", 5000))+"<?xml version='1.0'?>", false)
	f("http://a.example/", "http://a.example/", false)
}
