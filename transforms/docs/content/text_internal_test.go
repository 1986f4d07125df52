package content

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is written without the library is what the library writes.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", " ", "a", "a b", " a", "a ", "a  b", "a\tb", "\"\\", "<&>", "\x7f", "한글\u2028\u00a0x", "\xff", "a\x1fb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want strings.Builder
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		err := e.Encode(s)
		if got := appendString(nil, s); err != nil || string(got)+"\n" != want.String() {
			t.Errorf("%q is written %s, want %s (%v)", s, got, want.String(), err)
		}
		if got, want := oneLine(s), strings.Join(strings.Fields(s), " "); got != want {
			t.Errorf("%q in one line is %q, want %q", s, got, want)
		}
	})
}

func TestAppendJSON(t *testing.T) {
	const text = `{"z":[],"a":{},"a":[1.50,-0,1e9,"x",true,false,null,{"<":"\u00e9"}]}`
	v, err := readObject(text)
	require.NoError(t, err)
	const want = `{"z":[],"a":{},"a":[1.50,-0,1e9,"x",true,false,null,{"<":"é"}]}`
	require.Equal(t, want, string(appendJSON(nil, v)))
}

// Fenced code is left as it is: a fence behind a list's marker opens it, a fence with an info string does not close it.
func TestLinksInCode(t *testing.T) {
	for markdown, want := range map[string]string{
		"```md\n[a](b)\n```go\n[c](d)\n```\n[e](f)":  "```md\n[a](b)\n```go\n[c](d)\n```\ne",
		"- ```sh\n  [a](b)\n  ```\n- [c](d)":         "- ```sh\n  [a](b)\n  ```\n- c",
		"~~~\n```\n[a](b)\n~~~\n[c](d)":              "~~~\n```\n[a](b)\n~~~\nc",
		"```\n[a](b)\n```\n```\n[c](d)\n```\n[e](f)": "```\n[a](b)\n```\n```\n[c](d)\n```\ne",
		"`` [a](b) ` ``[c](d)":                       "`` [a](b) ` ``c",
	} {
		require.Equal(t, want, plainMarkdown(markdown), markdown)
	}
	var of sections
	of.prose("~~~~\n```\n# no heading", 2)
	require.Equal(t, "~~~~\n```\n# no heading\n~~~~\n\n", of.b.String())
}
