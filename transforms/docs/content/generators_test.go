package content_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What generators put around and between the text of a page: search boxes, trails, switches,
// and words for screen readers.
func TestGenerators(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"Starlight": {`<main><h1 id="_top">Images</h1><div class="sl-heading-wrapper level-h2"><h2 id="rotate">rotate</h2><a class="sl-anchor-link" href="#rotate"><span aria-hidden="true" class="sl-anchor-icon"><svg></svg></span><span class="sr-only" data-pagefind-ignore>Section titled “rotate”</span></a></div><p>Turns it.</p>
			<div class="expressive-code"><figure class="frame is-terminal"><figcaption class="header"><span class="title"></span><span class="sr-only">Terminal window</span></figcaption><pre data-language="bash"><code><div class="ec-line"><div class="code"><span>npm</span> <span>install</span></div></div><div class="ec-line"><div class="code">npm start</div></div></code></pre></figure></div></main>`,
			"# Images\n\n## rotate\n\nTurns it.\n\n```bash\nnpm install\nnpm start\n```"},
		"Starlight's table": {`<main><p>What there is:</p><table><tr><th>Name</th><th>There</th></tr><tr><td>a</td><td><svg></svg><span class="sr-only">Yes</span></td></tr></table></main>`,
			"What there is:\n\n| Name | There |\n| --- | --- |\n| a | Yes |"},
		"a title for screen readers": {`<main><h1 class="visually-hidden">Limits</h1><p>There are some.</p></main>`, "# Limits\n\nThere are some."},
		"ExDoc": {`<main class="content page-module" id="main"><div id="content" class="content-inner"><div class="top-search"><form class="search-bar" action="search.html"><label class="search-label"><span class="sr-only">Search documentation of demo</span><input name="q"></label></form></div>
			<div class="heading-with-actions top-heading"><h1><span>Demo.Agent</span> <small class="app-vsn">(demo v0.1.0)</small></h1><a href="https://example.com/x.ex#L1" title="View Source" class="icon-action" rel="help"><i class="ri-code" aria-hidden="true"></i><span class="sr-only">View Source</span></a></div><p>Helps.</p></div></main>`,
			"# Demo.Agent (demo v0.1.0)\n\nHelps."},
		"HonKit": {`<div class="page-wrapper" role="main"><div class="page-inner"><div id="book-search-results"><div class="search-noresults"><section class="normal markdown-section"><h1 id="intro">Intro</h1><p>Begin.</p></section></div><div class="search-results"><div class="has-results"><h1 class="search-results-title"><span class="search-results-count"></span> results matching "<span class="search-query"></span>"</h1><ul class="search-results-list"></ul></div><div class="no-results"><h1 class="search-results-title">No results matching "<span class="search-query"></span>"</h1></div></div></div></div></div>`,
			"# Intro\n\nBegin."},
		"Nextra": {`<article class="nextra-content"><div class="nextra-breadcrumb"><a href="/docs">Docs</a><svg></svg><span>Setup</span></div><main><h1>Setup</h1><p>Do it.</p></main></article>`, "# Setup\n\nDo it."},
		"Dokka": {`<div class="main-content" id="content"><div class="breadcrumbs"><a href="../index.html">demo</a><span class="delimiter">/</span><span class="current">Bus</span></div><div class="cover"><h1 class="cover"><span><span>Bus</span></span></h1></div><p class="paragraph">Carries.</p><h2>Constructors</h2>
			<div class="table-row"><div class="main-subrow keyValue"><div><span class="inline-flex"><div><a href="-bus.html">Bus</a></div><span class="anchor-wrapper"><span class="anchor-icon"></span><div class="copy-popup-wrapper "><span class="copy-popup-icon"></span><span>Link copied to clipboard</span></div></span></span></div></div></div></div>`,
			"# Bus\n\nCarries.\n\n## Constructors\n\nBus"},
		"YARD": {`<div id="content"><h1>Class: Demo</h1><h2>Class Method Summary <small><a href="#" class="summary_toggle">collapse</a></small></h2><ul class="summary"><li>perform</li></ul></div>`,
			"# Class: Demo\n\n## Class Method Summary\n\n- perform"},
		"TypeDoc": {`<div class="container container-main"><div class="col-content"><div class="tsd-page-title"><ul class="tsd-breadcrumb" aria-label="Breadcrumb"><li><a href="../index.html">Demo</a></li></ul><h1>Demo</h1></div>
			<details class="tsd-panel-group" open><summary><svg></svg><h2 id="classes">Classes<a href="#classes" aria-label="Permalink"><svg></svg></a></h2></summary><dl class="tsd-member-summaries"><dt><span><svg></svg><a href="classes/Bus.html">Bus</a><a href="#bus" aria-label="Permalink"><svg></svg></a></span></dt><dd></dd></dl></details>
			<pre><code class="ts"><span class="hl-0">const</span> b = 1;</code><button type="button">Copy</button></pre></div>
			<div class="col-sidebar"><div class="page-menu"><div class="tsd-navigation settings"><details><summary><h3>Settings</h3></summary><span class="settings-label">Theme</span></details></div></div></div></div>`,
			"# Demo\n\n## Classes\n\nBus\n\n```ts\nconst b = 1;\n```"},
		"Scaladoc": {`<div id="content" class="body"><div id="definition"><div class="big-circle class">c</div><h1>MetaData<span class="permalink"><a href="../x/MetaData.html" title="Permalink"><i class="material-icons">&#xE157;</i></a></span></h1></div><p>One.</p><div id="mbrsel"><div id="filterby"><div id="order"><span class="filtertype">Ordering</span><ol><li>Alphabetic</li></ol></div></div></div><p>Two.</p></div>`,
			"# MetaData\n\nOne.\n\nTwo."},
		"an icon font's sign": {"<main><p>Save \ue161 it <i class=fa>\uf00c</i> now.</p></main>", "Save it now."},
		"Asciidoctor": {`<div id="header"><h1>Guide</h1></div><div id="content"><div id="preamble"><div class="sectionbody"><div class="paragraph"><p>Intro.</p></div></div></div><div class="sect1"><h2 id="_install">Install</h2><div class="sectionbody">
			<div class="listingblock"><div class="content"><pre class="highlight"><code class="language-bash" data-lang="bash">npm i demo</code></pre></div></div>
			<div class="paragraph"><p>That is all.</p></div><div class="exampleblock"><div class="content"><p>With what you have now, all the rest can begin, one after the other.</p></div></div><div class="admonitionblock warning"><table><tr><td class="icon"><i class="fa icon-warning" title="Warning"></i></td><td class="content">Careful.</td></tr></table></div></div></div></div>`,
			"# Guide\n\nIntro.\n\n## Install\n\n```bash\nnpm i demo\n```\n\nThat is all.\n\nWith what you have now, all the rest can begin, one after the other.\n\n**Warning:**\n\nCareful."},
		"Asciidoctor's footnotes": {`<div id="content"><div class="sect1"><h2>Install</h2><p>Do it.<sup class="footnote">[<a id="_footnoteref_1" class="footnote" href="#_footnotedef_1">1</a>]</sup></p></div></div><div id="footnotes"><hr><div class="footnote" id="_footnotedef_1"><a href="#_footnoteref_1">1</a>. A note.</div></div><div id="footer">Last updated</div>`,
			"## Install\n\nDo it.[1]\n\n---\n\n1. A note."},
		"DocFX": {`<article class="content wrap"><h3 id="methods">Methods</h3><span class="small pull-right mobile-hide"><span class="divider">|</span><a href="https://example.com/new">Improve this Doc</a></span><span class="small pull-right mobile-hide"><a href="https://example.com/x.cs#L1">View Source</a></span><h4>Do()</h4><p>See <a href="/s">View source</a> there.</p></article>`,
			"### Methods\n\n#### Do()\n\nSee View source there."},
		"GitBook": {`<main><h1>Setup</h1><pre><code><span class="highlight-line"><span class="highlight-line-content">const a = 1</span></span><span class="highlight-line"><span class="highlight-line-content">const b = 2
</span></span><span class="highlight-line"><span class="highlight-line-content">const c = 3</span></span></code></pre></main>`,
			"# Setup\n\n```\nconst a = 1\nconst b = 2\nconst c = 3\n```"},
		"Asciidoctor with one note": {`<div id="header"><h1>Guide</h1></div><div id="content"><div class="sect1"><h2 id="_install">Install</h2><div class="sectionbody"><div class="paragraph"><p>What to do first is to read this, all of it, and then to start.</p></div>
			<div class="admonitionblock note"><table><tr><td class="icon"><div class="title">Note</div></td><td class="content">Be careful when you start it, because it is hot.</td></tr></table></div></div></div></div>`,
			"# Guide\n\n## Install\n\nWhat to do first is to read this, all of it, and then to start.\n\n**Note:**\n\nBe careful when you start it, because it is hot."},
		"sphinx-design": {`<main><div class="sd-card"><p>Card text.</p><a class="sd-stretched-link sd-hide-link-text reference internal" href="api.html"><span class="doc">api</span></a></div></main>`, "Card text."},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, markdownOf(t, c.html)) })
	}
}
