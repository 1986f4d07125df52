package content_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A panel begins with the label of its tab, where each tab has a panel.
func TestTabs(t *testing.T) {
	const panels = `<div><div role="tabpanel">one</div><div role="tabpanel" hidden>two</div></div>`
	for name, c := range map[string]struct{ html, want string }{
		"Docusaurus":                {`<div><ul role="tablist"><li role="tab">npm</li><li role="tab">a_b</li></ul>` + panels + `</div>`, "**npm**\n\none\n\n**a_b**\n\ntwo"},
		"MkDocs":                    {`<div class="tabbed-set"><input type="radio"><input type="radio"><div class="tabbed-labels"><label>C</label><label>C++</label></div><div class="tabbed-content"><div class="tabbed-block">one</div><div class="tabbed-block">two</div></div></div>`, "**C**\n\none\n\n**C++**\n\ntwo"},
		"one after another":         {`<div role="tablist"><b role="tab">a</b><b role="tab">b</b></div>` + panels + `<div role="tablist"><b role="tab">c</b><b role="tab">d</b></div>` + panels, "**a**\n\none\n\n**b**\n\ntwo\n\n**c**\n\none\n\n**d**\n\ntwo"},
		"tabs in a panel":           {`<div role="tablist"><b role="tab">out</b></div><div role="tabpanel"><div role="tablist"><b role="tab">a</b><b role="tab">b</b></div>` + panels + `</div>`, "**out**\n\n**a**\n\none\n\n**b**\n\ntwo"},
		"panels that are not there": {`<div role="tablist"><b role="tab">a</b><b role="tab">b</b></div><div role="tabpanel">one</div>`, "one"},
		"no panels":                 {`<div role="tablist"><b role="tab">a</b></div><p>text</p>`, "text"},
		"labels without panels":     {`<div class="tabs"><input type="radio"><label>npm</label><input type="radio"><label>yarn</label></div><pre>a</pre>`, "npm yarn\n\n```\na\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, markdownOf(t, "<main>"+c.html+"</main>"))
		})
	}
}

func TestMath(t *testing.T) {
	for html, want := range map[string]string{
		`<math><semantics><msup><mi>x</mi><mn>2</mn></msup><annotation encoding="application/x-tex">x^2 \le  y</annotation></semantics></math>`: "`x^2 \\le y`",
		`<math><msup><mi>x</mi><mn>10</mn></msup><mo>+</mo> <msub><mi>y</mi><mrow><mi>i</mi><mo>+</mo><mn>1</mn></mrow></msub></math>`:          "`x^10+y_(i+1)`",
		`<math><mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mi>c</mi></mrow></mfrac></math>`:                                                     "`a/(b+c)`",
		`<math><munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>0</mn></mrow><mi>n</mi></munderover><msqrt><mi>i</mi></msqrt></math>`:        "`∑_(i=0)^n√i`",
		`<math><mroot><mi>x</mi><mn>3</mn></mroot><mspace/><mtext>or</mtext></math>`:                                                            "`3√x or`",
		`<math><mtable><mtr><mtd>1</mtd><mtd>2</mtd></mtr><mtr><mtd>3</mtd><mtd>4</mtd></mtr></mtable></math>`:                                  "`(1, 2; 3, 4)`",
		`so <script type="math/tex; mode=display">E = mc^2</script><script>no()</script>`:                                                       "so `E = mc^2`",
	} {
		require.Equal(t, want, markdownOf(t, "<main><p>"+html+"</p></main>"))
	}
}

// The first cell of a table that is no grid begins a line.
func TestFlatTableIsNoMark(t *testing.T) {
	require.Equal(t, "\\# | Name\n1\\. | a | b\n\\> | * | #", markdownOf(t,
		`<main><table><tr><th>#</th><th colspan="2">Name</th></tr><tr><td>1.</td><td>a</td><td>b</td></tr><tr><td>></td><td>*</td><td>#</td></tr></table></main>`))
}
