package yamltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/hostile"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Shapes that real descriptions of APIs have, each of which some reader refuses.
func TestDocument(t *testing.T) {
	type m = yamltext.Mapping
	for text, want := range map[string]any{
		"": nil,
		"a: 1.0\nb: 2020-01-01\nc: yes\nd: true\ne: ~\nf: '1'\ng: 0x10\nh: 007\n": m{{"a", yamltext.Number("1.0")}, {"b", "2020-01-01"}, {"c", "yes"}, {"d", true}, {"e", nil}, {"f", "1"}, {"g", "0x10"}, {"h", "007"}},
		"a: 1\na: 2\n":                                                m{{"a", yamltext.Number("1")}, {"a", yamltext.Number("2")}},
		"200: a\n'200': b\n":                                          m{{"200", "a"}, {"200", "b"}},
		"a: |\n\nb: >-\n\n\nc: x":                                     m{{"a", ""}, {"b", ""}, {"c", "x"}},
		"a: |\n# c\nb: x\n":                                           m{{"a", ""}, {"b", "x"}},
		"a: &e |\n  {\n  [[[\nb: *e\nc: {d: *e}\n":                    m{{"a", "{\n[[[\n"}, {"b", "{\n[[[\n"}, {"c", m{{"d", "{\n[[[\n"}}}},
		"a: &x {b: c, d: e}\nf:\n  <<: *x\n  d: own\n":                m{{"a", m{{"b", "c"}, {"d", "e"}}}, {"f", m{{"d", "own"}, {"b", "c"}}}},
		"a: {b: c}\nf:\n  <<: [{b: 1}, {b: 2, c: 3}]\n":               m{{"a", m{{"b", "c"}}}, {"f", m{{"b", yamltext.Number("1")}, {"c", yamltext.Number("3")}}}},
		"%YAML 1.2\n---\na: b\n...\n":                                 m{{"a", "b"}},
		"\ufeffa: b\r\nc: |\r\n  x\r\n  y\r\nd:\r\n- e\r\n":           m{{"a", "b"}, {"c", "x\ny\n"}, {"d", []any{"e"}}},
		"a: \"\\u00e9\\x41\\ud83d\\ude00 \\/ \\\\/\"\nb: x #c\nd: -1": m{{"a", "éA😀 / \\/"}, {"b", "x"}, {"d", yamltext.Number("-1")}},
	} {
		got, err := yamltext.Document([]byte(text))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
	for text, says := range map[string]string{
		"a: [":                       "line 1: did not find expected node content",
		"a: &a [*a]\n":               "nested too deep",
		"---\na: b\n---\n# c\n\nd\n": "more than one document",
		"a: *b\n":                    "unknown anchor",
		"? [a]\n: b\n":               "line 1: a key of the YAML is not plain text",
		"a:\n" + laughs(10, 10):      "too many values",
		"a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300): "line 1: the YAML is nested too deep (over 200 levels)",
	} {
		_, err := yamltext.Document([]byte(text))
		require.ErrorContains(t, err, says)
	}
}

// laughs is a text whose aliases unfold to width to the power of depth.
func laughs(depth, width int) string {
	var b strings.Builder
	b.WriteString("  k0: &k0 [x]\n")
	for i := 1; i <= depth; i++ {
		fmt.Fprintf(&b, "  k%d: &k%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*k%d,", i-1), width), ","))
	}
	return b.String()
}

// What a parser takes long over is read, or refused, in seconds.
func TestDocumentOfAnySize(t *testing.T) {
	keys := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, line, i)
		}
		return b.String()
	}
	for name, tt := range map[string]struct{ text, says string }{
		"keys":       {keys(200_000, "k%d: v\n"), ""},
		"row":        {"a: {" + keys(200_000, "k%d: v, ") + "}\n", ""},
		"examples":   {keys(50_000, "k%d: |\n  data: {\"a\": [{\n"), ""}, // brackets in text that nothing closes
		"long line":  {"a: \"" + strings.Repeat("x ", 1<<20) + "\"\n", ""},
		"comments":   {"a:\n" + strings.Repeat("  - b # x\n  # y\n\n", 100_000), ""},
		"brackets":   {"a: " + strings.Repeat("[", 5<<20), "exceeded max depth"},
		"dashes":     {"a:\n " + strings.Repeat("- ", 2<<20), "exceeded max depth"},
		"documents":  {"a: b\n" + strings.Repeat("---\na: b\n", 500_000), "more than one document"},
		"values":     {"a: [" + strings.Repeat("1,", 2<<20) + "]\n", "too many values"},
		"directives": {keys(200_000, "%%TAG !a%d! b\n") + "---\na: b\n", "more than 16 directives"},
		"percents":   {"a: |\n" + strings.Repeat("  x\n%\n", 10), "directive name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := hostile.Parse(t, func() error {
				_, err := yamltext.Document([]byte(tt.text))
				return err
			})
			if tt.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.says)
			}
		})
	}
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte("a: &x {b: [1, ~]}\n<<: *x\nc: |\n\nd: *x\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? [a]\n: !!null x\n"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = yamltext.Document(text) // any answer but a panic
	})
}
