package untrusted_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/untrusted"
)

func TestText(t *testing.T) {
	f := func(in string, maxBytes int, want string) {
		t.Helper()
		assert.Equal(t, want, untrusted.Text(in, maxBytes))
	}
	f("", 0, "")
	f("한국은행\n금리\t동결\r\n", 0, "한국은행\n금리\t동결\r\n")
	f("a\x00b\x1b[31mc\x07\x7f\u009b", 0, "ab[31mc")
	f("a\xff\xfeb\xed\xa0\x80", 0, "a\uFFFDb\uFFFD")
	f("한국은행", 7, "한국")
	f("한국은행", 2, "")
	f(strings.Repeat("\x00", 100)+"abc", 2, "ab")
	f("שלום \u200fעולם", 0, "שלום \u200fעולם") // marks of direction belong to the text
	f(strings.Repeat("\xff", 3)+"abc", 4, "\uFFFDa")
}

func TestLine(t *testing.T) {
	f := func(in string, maxBytes int, want string) {
		t.Helper()
		assert.Equal(t, want, untrusted.Line(in, maxBytes))
	}
	f(" a\x00 \n b\u00a0c\v", 0, "a b c")
	f("ab cd", 3, "ab")
	f("\x00 \x1b", 0, "")
}

func TestKey(t *testing.T) {
	assert.NoError(t, untrusted.Key("https://demo.example/"+strings.Repeat("a", untrusted.MaxKey-21)))
	assert.ErrorIs(t, untrusted.Key("https://demo.example/"+strings.Repeat("a", untrusted.MaxKey-20)), untrusted.ErrTooLong)
	assert.ErrorIs(t, untrusted.Key("a\x00b"), untrusted.ErrUnclean)
	assert.ErrorIs(t, untrusted.Key("a\xffb"), untrusted.ErrUnclean)
	assert.NoError(t, untrusted.Key("기사-12"))
}

// Whatever comes in, what goes out is what its contract says.
func FuzzText(f *testing.F) {
	f.Add("a\x00b\xff", 3)
	f.Add("한국은행", 7)
	f.Fuzz(func(t *testing.T, s string, maxBytes int) {
		maxBytes %= 10_000
		for _, got := range []string{untrusted.Text(s, maxBytes), untrusted.Line(s, maxBytes)} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }) {
				t.Fatalf("%q is not clean", got)
			}
			if maxBytes > 0 && len(got) > maxBytes {
				t.Fatalf("%d bytes, want at most %d", len(got), maxBytes)
			}
		}
		if untrusted.Key(s) == nil && untrusted.Text(s, 0) != s {
			t.Fatalf("%q is taken as a key and is not clean", s)
		}
	})
}
