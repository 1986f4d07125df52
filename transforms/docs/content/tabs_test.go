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
		"the selected panel alone":  {`<div><ul role="tablist"><li role="tab" aria-selected="false">npm</li><li role="tab" aria-selected="true">yarn</li></ul><div role="tabpanel">one</div></div>`, "**yarn**\n\none"},
		"one panel for all tabs":    {`<div role="tablist"><button role="tab" aria-controls="p" aria-selected="true">All</button><button role="tab" aria-controls="p" aria-selected="false">Static</button></div><div role="tabpanel" id="p">one</div>`, "one"},
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

// What KaTeX draws where a site has left its MathML out (output: "html").
func TestDrawnMath(t *testing.T) {
	for html, want := range map[string]string{
		`<span class="katex"><span class="katex-html" aria-hidden="true"><span class="katex-base"><span class="mord"><span class="mord mathnormal">x</span><span class="msupsub"><span class="vlist-t"><span class="vlist-r"><span class="vlist"><span><span class="katex-sizing reset-size6 size3 mtight"><span class="mord mtight">2</span></span></span></span></span></span></span></span><span class="mspace"></span><span class="mbin">+</span><span class="mspace"></span></span><span class="katex-base"><span class="mord"><span class="mord mathnormal">y</span><span class="msupsub"><span class="vlist-t vlist-t2"><span class="vlist-r"><span class="vlist"><span><span class="katex-sizing reset-size6 size3 mtight"><span class="mord mtight"><span class="mord mathnormal mtight">i</span><span class="mbin mtight">+</span><span class="mord mtight">1</span></span></span></span></span><span class="vlist-s">&#8203;</span></span><span class="vlist-r"><span class="vlist"><span></span></span></span></span></span></span></span></span></span>`:                                                                                                                                                                                                                                                                                                     "so `x^2 + y_(i+1)` is",
		`<span class="katex"><span class="katex-html" aria-hidden="true"><span class="katex-base"><span class="mord"><span class="mopen nulldelimiter"></span><span class="mfrac"><span class="vlist-t vlist-t2"><span class="vlist-r"><span class="vlist"><span><span class="katex-sizing reset-size6 size3 mtight"><span class="mord mtight"><span class="mord mathnormal mtight">b</span><span class="mbin mtight">+</span><span class="mord mathnormal mtight">c</span></span></span></span><span><span class="frac-line"></span></span><span><span class="katex-sizing reset-size6 size3 mtight"><span class="mord mtight"><span class="mord mathnormal mtight">a</span></span></span></span></span><span class="vlist-s">&#8203;</span></span><span class="vlist-r"><span class="vlist"><span></span></span></span></span></span><span class="mclose nulldelimiter"></span></span></span></span></span>`:                                                                                                                                                                                                                                                                                                                                                                                                                                                            "so `a/(b+c)` is",
		`<span class="katex"><span class="katex-html" aria-hidden="true"><span class="katex-base"><span class="mop"><span class="mop op-symbol small-op">∑</span><span class="msupsub"><span class="vlist-t vlist-t2"><span class="vlist-r"><span class="vlist"><span><span class="katex-sizing reset-size6 size3 mtight"><span class="mord mtight"><span class="mord mathnormal mtight">i</span><span class="mrel mtight">=</span><span class="mord mtight">0</span></span></span></span><span><span class="katex-sizing reset-size6 size3 mtight"><span class="mord mathnormal mtight">n</span></span></span></span><span class="vlist-s">&#8203;</span></span><span class="vlist-r"><span class="vlist"><span></span></span></span></span></span></span><span class="mspace"></span><span class="mord sqrt"><span class="vlist-t vlist-t2"><span class="vlist-r"><span class="vlist"><span class="svg-align"><span class="mord"><span class="mord mathnormal">i</span></span></span><span><span class="hide-tail"><svg></svg></span></span></span><span class="vlist-s">&#8203;</span></span><span class="vlist-r"><span class="vlist"><span></span></span></span></span></span></span></span></span>`:                                                                                                                                                                 "so `∑_(i=0)^n √i` is",
		`<span class="katex"><span class="katex-html" aria-hidden="true"><span class="katex-base"><span class="mord sqrt"><span class="katex-root"><span class="vlist-t"><span class="vlist-r"><span class="vlist"><span><span class="katex-sizing reset-size6 size1 mtight"><span class="mord mtight"><span class="mord mtight">3</span></span></span></span></span></span></span></span><span class="vlist-t vlist-t2"><span class="vlist-r"><span class="vlist"><span class="svg-align"><span class="mord"><span class="mord mathnormal">x</span></span></span><span><span class="hide-tail"><svg></svg></span></span></span><span class="vlist-s">&#8203;</span></span><span class="vlist-r"><span class="vlist"><span></span></span></span></span></span><span class="mord text"><span class="mord"> or </span></span><span class="mord"><span class="mord mathnormal">y</span><span class="msupsub"><span class="vlist-t vlist-t2"><span class="vlist-r"><span class="vlist"><span><span class="katex-sizing reset-size6 size3 mtight"><span class="mord mtight">1</span></span></span><span><span class="katex-sizing reset-size6 size3 mtight"><span class="mord mtight">2</span></span></span></span><span class="vlist-s">&#8203;</span></span><span class="vlist-r"><span class="vlist"><span></span></span></span></span></span></span></span></span></span>`: "so `3√x or y_1^2` is",
	} {
		require.Equal(t, want, markdownOf(t, "<main><p>so "+html+" is</p></main>"))
	}
}

// The first cell of a table that is no grid begins a line.
func TestFlatTableIsNoMark(t *testing.T) {
	require.Equal(t, "\\# | Name\n1\\. | a | b\n\\> | \\* | #", markdownOf(t,
		`<main><table><tr><th>#</th><th colspan="2">Name</th></tr><tr><td>1.</td><td>a</td><td>b</td></tr><tr><td>></td><td>*</td><td>#</td></tr></table></main>`))
}
