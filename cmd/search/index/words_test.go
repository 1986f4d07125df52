package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"How do I open a File?":   "open file",
		"os.path.join(a, b)":      "os path join ospathjoin b",
		"max_retries=3":           "max retries maxretries 3",
		"결제를 취소":                  "결제 제를 취소",
		"API를 호출":                 "api 를 호출",
		"ｆｕｌｌ width":              "full width",
		"-- ... __init__":         "init",
		strings.Repeat("x", 65):   "",
		"naïve café":              "naïve café",
		"日本":                      "日本",
		"\x00 \xff \u202e letter": "letter",
	} {
		assert.Equal(t, want, strings.Join(words(text), " "), "%q", text)
	}
	assert.Equal(t, []string{"card", "number"}, terms("a card number, the Card"))
	assert.Equal(t, "a1 b2 c3", bag("c3 a1 b2"))
	assert.Len(t, terms(fmt.Sprint(func() (all []int) {
		for i := range 100 {
			all = append(all, i)
		}
		return all
	}())), maxTerms)
}

func FuzzWords(f *testing.F) {
	for _, text := range []string{"os.path.join", "결제API를", "a\x00b\xff", "\"' OR NOT *", "ǅ ß ı̇"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := words(text)
		for _, w := range all {
			require.False(t, w == "" || len(w) > maxWord || strings.ContainsAny(w, "\"'()*:^- \t\n\x00"), "%q has the word %q", text, w)
		}
		require.True(t, slices.IsSorted(strings.Fields(bag(text))), "%q: %q", text, bag(text))
	})
}
