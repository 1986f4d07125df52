package language_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/text/unicode/norm"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/parse/language"
)

func TestOf(t *testing.T) {
	for text, want := range cases.Table[map[string]string](t, "languages.yaml") {
		assert.Equal(t, want, language.Of(text), text)
		assert.Equal(t, want, language.Of(norm.NFD.String(text)), "%s, its marks apart from the letters", text)
	}
}

// What a page declares counts, unless its text is plainly in another language.
func TestPage(t *testing.T) {
	german := strings.Repeat("Der Rat des Hafens hat beschlossen, was vor dem Abend niemand erwartet hatte. ", 4)
	danish := strings.Repeat("Havnens råd har besluttet, hvad ingen havde ventet, før aftenen begyndte, og det var ikke første gang. ", 4)
	for _, c := range []struct{ declared, text, want string }{
		{"", german, "de"}, {"de-AT", german, "de-AT"}, {"en", german, "de"}, {"en", "Der Rat hat es nicht gesagt", "en"},
		{"nb", danish, "nb"}, {"en-US", "12345", "en-US"}, {"", "", ""}, {"ko_KR", strings.Repeat("항만 위원회는 결정을 내렸다. ", 20), "ko_KR"},
	} {
		assert.Equal(t, c.want, language.Page(c.declared, c.text), "%s: %.20s", c.declared, c.text)
	}
}

// The shared news pages say their language.
func TestCases(t *testing.T) {
	type row struct {
		ID     string
		Expect struct{ Body, Lang string }
	}
	right, all := 0, 0
	for _, r := range cases.Rows[row](t, "extraction/cases.jsonl") {
		want, _, _ := strings.Cut(strings.ToLower(r.Expect.Lang), "-")
		if want == "" || len(r.Expect.Body) < 200 || strings.HasPrefix(r.Expect.Body, "Lorem ipsum") {
			continue
		}
		if want == "nb" || want == "nn" {
			want = "no"
		}
		all++
		if got := language.Of(r.Expect.Body); got == want {
			right++
		} else {
			t.Logf("%s: %q instead of %q: %.80s", r.ID, got, want, r.Expect.Body)
		}
	}
	t.Logf("%d of %d", right, all)
	assert.Equal(t, all, right)
}

func FuzzOf(f *testing.F) {
	f.Add("The council of the harbour")
	f.Add("항만 위원회는 \xff")
	f.Fuzz(func(t *testing.T, text string) { _ = language.Of(text) })
}
