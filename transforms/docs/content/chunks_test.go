package content_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
	"github.com/newsfork/seed-engine/transforms/parse/cases"

	"github.com/stretchr/testify/require"
)

// maxDangling is how many chunks of the shared pages may end with an introduction
// to what is in the next chunk, because both together are over the limit. It may
// only fall.
const maxDangling = 1

// TestChunksOfDocsPages cuts real pages. No chunk is over the limit, a line of code
// is cut only when it alone is over the limit, and each heading in a chunk is below
// the chunk's path.
func TestChunksOfDocsPages(t *testing.T) {
	var q chunk.Quality
	dangling, anchored := 0, 0
	for _, p := range docsPages(t) {
		page, err := content.Extract(p.body, "text/html; charset="+p.Encoding, content.Options{})
		require.NoError(t, err, p.ID)
		paths := headingPaths(page.Markdown)
		require.Len(t, page.Anchors, len(paths))
		chunks := chunk.Split(p.ID, page.Markdown, page.Anchors, chunk.Default)
		q.Add(chunks)
		var lines []string
		for _, c := range chunks {
			require.LessOrEqual(t, c.Tokens, chunk.Default.Max)
			lines = append(lines, codeLines(c.Text)...)
			if strings.HasSuffix(strings.TrimRight(c.Text, "*_ "), ":") {
				dangling++
				t.Logf("%s: chunk %d of %d tokens ends %q", p.ID, c.Ordinal, c.Tokens, c.Text[max(0, len(c.Text)-60):])
			}
			if c.Anchor != "" {
				anchored++
			}
			for range headingPaths(c.Text) {
				heading := paths[0]
				paths = paths[1:]
				n := min(len(heading), len(c.Path))
				if !slices.Equal(heading[:n], c.Path[:n]) {
					t.Errorf("%s: chunk %d of %q has the heading %q", p.ID, c.Ordinal, c.Path, heading)
				}
			}
		}
		require.Equal(t, codeLines(page.Markdown), lines)
	}
	t.Logf("%d pages, %d chunks of %d tokens, %d repeated; out of range: %v", q.Pages, q.Chunks, q.Tokens, q.Duplicate, q.Outside())
	t.Logf("%d chunks end with an introduction, %d have an anchor", dangling, anchored)
	if q.Chunks == 0 || anchored < q.Chunks*9/10 || dangling > maxDangling {
		t.Errorf("of %d chunks %d have an anchor, %d end with an introduction", q.Chunks, anchored, dangling)
	}
}

// headingPaths returns the paths of Markdown's headings, each with the heading itself as the last.
func headingPaths(markdown string) [][]string {
	var all [][]string
	var last []string
	for _, b := range chunk.Blocks(markdown) {
		ended := len(b.Path) < len(last) && slices.Equal(b.Path, last[:len(b.Path)]) // what a signature declares
		if !ended && !slices.Equal(b.Path, last) {
			all = append(all, b.Path)
		}
		last = b.Path
	}
	return all
}

// What declares a function, class or option in a reference is a step of the path and the anchor of what it says.
func TestSignaturesOfChunks(t *testing.T) {
	long := strings.Repeat("It does what it says, and a little more. ", 8)
	of := func(name, id, about string) string {
		return `<dt class="sig sig-object py" id="` + id + `"><span class="sig-name">` + name + `</span>()<a class="headerlink" href="#` + id + `">¶</a></dt><dd>` + about + `</dd>`
	}
	haddock := func(name, more string) string {
		return `<div class="top"><p class="src"><a id="v:` + name + `" class="def">` + name + `</a> :: a -&gt; b <a href="src/D.html" class="link">Source</a> <a href="#v:` + name + `" class="selflink">#</a></p><div class="doc"><p>` + long + `</p></div>` + more + `</div>`
	}
	type step struct {
		Path   []string
		Anchor string
	}
	for name, c := range map[string]struct {
		html string
		want []step
	}{
		"Sphinx": {`<section id="m"><h1>m<a class="headerlink" href="#m">¶</a></h1><p>` + long + `</p><dl class="py function">` + of("f", "m.f", "<p>"+long+"</p>") + `</dl><dl class="py class">` +
			of("C", "m.C", "<p>"+long+`</p><dl class="py method">`+of("g", "m.C.g", "<p>"+long+"</p>")+`</dl>`) + `</dl><p>After all: ` + long + `</p></section>`,
			[]step{{[]string{"m"}, "m"}, {[]string{"m", "f()"}, "m.f"}, {[]string{"m", "C()"}, "m.C"}, {[]string{"m", "C()", "g()"}, "m.C.g"}, {[]string{"m"}, "m"}}},
		"Sphinx, a long description": {`<section id="m"><h2>m</h2><dl class="py function">` + of("f", "m.f", "<p>"+strings.Repeat(long, 5)+"</p><p>"+strings.Repeat(long, 5)+"</p>") + `</dl></section>`,
			[]step{{[]string{"m", "f()"}, "m.f"}, {[]string{"m", "f()"}, "m.f"}}},
		"Sphinx, two forms": {`<section id="m"><h2>m</h2><p>` + long + `</p><dl class="py function"><dt class="sig sig-object" id="m.a">a(x)</dt><dt class="sig sig-object">a(x, y)</dt><dd><p>` + long + `</p></dd></dl></section>`,
			[]step{{[]string{"m"}, "m"}, {[]string{"m", "a(x)"}, "m.a"}}},
		"Haddock": {`<div id="content"><div id="interface"><h1>Documentation</h1>` + haddock("foldr", "") + haddock("C", `<div class="subs methods"><p class="caption">Methods</p><p class="src"><a id="v:m1" class="def">m1</a> :: a <a href="#v:m1" class="selflink">#</a></p><div class="doc"><p>`+long+`</p></div></div>`) + `</div></div>`,
			[]step{{[]string{"Documentation", "foldr :: a -> b"}, "v:foldr"}, {[]string{"Documentation", "C :: a -> b"}, "v:C"}, {[]string{"Documentation", "C :: a -> b", "m1 :: a"}, "v:m1"}}},
		"odoc": {`<main><h1>List</h1><div class="odoc-spec"><div class="spec value anchored" id="val-map"><a href="#val-map" class="anchor"></a><code><span>val</span> map : int</code></div><div class="spec-doc"><p>` + long + `</p></div></div><p>` + long + `</p></main>`,
			[]step{{[]string{"List", "val map : int"}, "val-map"}, {[]string{"List"}, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := content.Extract([]byte("<body>"+c.html+"</body>"), "text/html", content.Options{})
			require.NoError(t, err)
			var got []step
			for _, c := range chunk.Split("p", page.Markdown, page.Anchors, chunk.Default) {
				got = append(got, step{c.Path, c.Anchor})
			}
			require.Equal(t, c.want, got, page.Markdown)
		})
	}
}

// Each chunk of a reference says whose description it has: the name of what is described is in its path or its text. In
// a member's shape NAME stands for the name, and ABOUT for its description.
func TestChunksNameWhatTheyDescribe(t *testing.T) {
	about := "<p>" + strings.Repeat("It opens what it is given, reads as much as it may, and closes it. ", 60) + "</p>"
	for _, c := range cases.Table[[]testCase](t, "members.yaml") {
		page := "<!doctype html><html><body><main><h1>Files</h1><p>" + strings.Repeat("What this module is for. ", 20) + "</p>"
		for _, name := range []string{"acquire_one", "bring_two", "carry_three"} {
			page += strings.NewReplacer("NAME", name, "ABOUT", strings.ReplaceAll(about, "opens", "opens "+strings.ToUpper(name[:1]))).Replace(c.In)
		}
		got, err := content.Extract([]byte(page+"</main></body></html>"), "text/html", content.Options{})
		require.NoError(t, err)
		chunks, without := chunk.Split("p", got.Markdown, got.Anchors, chunk.Default), 0
		for _, k := range chunks {
			for _, name := range []string{"acquire_one", "bring_two", "carry_three"} {
				if strings.Contains(k.Text, "opens "+strings.ToUpper(name[:1])) && !strings.Contains(strings.ReplaceAll(strings.Join(k.Path, " ")+k.Text, `\`, ""), name) {
					without++
				}
			}
		}
		require.Zero(t, without, "%s, of %d chunks", c.Name, len(chunks))
	}
}
