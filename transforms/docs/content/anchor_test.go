package content_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

func TestAnchors(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"an id":                    {`<h2 id="setup">Set up</h2>`, "setup"},
		"a permalink before an id": {`<h2 id="old">Set up<a class="headerlink" href="#set-up">¶</a></h2>`, "set-up"},
		"an encoded permalink":     {`<h2>설치<a href="#%EC%84%A4%EC%B9%98" aria-label="link">#</a></h2>`, "설치"},
		"a permalink elsewhere":    {`<h2 id="a">See <a href="/b#c">this page</a></h2>`, "a"},
		"something in it":          {`<h2><span id="in">Set up</span></h2>`, "in"},
		"an old name":              {`<h2><a name="old"></a>Set up</h2>`, "old"},
		"an anchor before it":      {`<p>x</p><a id="before"></a> <h2>Set up</h2>`, "before"},
		"its section":              {`<section id="s"><h2>Set up</h2></section>`, "s"},
		"a header of its section":  {`<section id="s"><header><h2>Set up</h2></header></section>`, "s"},
		"not first in its section": {`<section id="s"><p>x</p><h2>Set up</h2></section>`, ""},
		"none":                     {`<h2>Set up</h2>`, ""},
		"one that is no fragment":  {`<h2 id="a b">Set up</h2>`, ""},
		"one that is too long":     {`<h2 id="` + strings.Repeat("x", 201) + `">Set up</h2>`, ""},
		"a heading without text":   {`<h2 id="none"> </h2><h2 id="setup">Set up</h2>`, "setup"},
		"a heading in a list":      {`<ul><li><h3 id="no">In a list</h3></li></ul><h2 id="setup">Set up</h2>`, "setup"},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := content.Extract([]byte("<main>"+c.html+"<p>text</p></main>"), "text/html; charset=utf-8", content.Options{})
			require.NoError(t, err)
			require.Equal(t, []string{c.want}, page.Anchors, page.Markdown)
		})
	}
}
