package content_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefinitions(t *testing.T) {
	for html, want := range map[string]string{
		`<dl><dt>A</dt><dd>One</dd><dt>B</dt><dd>Two</dd></dl>`:           "A\n: One\n\nB\n: Two",
		`<dl><div><dt>A</dt><dd><p>One</p><p>More</p></dd></div></dl>`:    "A\n: One\n\n  More",
		`<dl><dt>A</dt><dt>B</dt><dd>Both</dd><dd>Or this</dd></dl>`:      "A\nB\n: Both\n\n: Or this",
		`<dl><dt>A</dt><dd><ul><li>x</li><li>y</li></ul></dd></dl>`:       "A\n: - x\n  - y",
		`<dl><dt>A</dt><dd><p>One</p><pre>a&#10; b</pre></dd></dl>`:       "A\n: One\n\n  ```\n  a\n   b\n  ```",
		`<dl><dt>A</dt><dd><dl><dt>B</dt><dd>Two</dd></dl></dd></dl>`:     "A\n: B\n  : Two",
		`<dl><dt>A</dt><dd></dd><dt>B</dt><dd>Two</dd></dl>`:              "A\n\nB\n: Two",
		`<dl><dt>A</dt><dd><h3>Part</h3><p>One</p></dd></dl>`:             "A\n\n### Part\n\nOne",
		`<table><tr><th>x<th>y<tr><td><dl><dt>A<dd>One</dl><td>2</table>`: "| x | y |\n| --- | --- |\n| A One | 2 |",
		`<ul><li><p>Item</p><dl><dt>A</dt><dd>One</dd></dl></li></ul>`:    "- Item\n\n  A\n  : One",
	} {
		require.Equal(t, "Before.\n\n"+want, markdownOf(t, "<main><p>Before.</p>"+html+"</main>"), html)
	}
}
