package content_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// hiddenPage is a page whose text is seen, with something in its head and in its content.
func hiddenPage(head, body string) string {
	return "<!doctype html><html lang=en><head><title>Teal pump</title>" + head + "</head><body><main><h1>Teal pump</h1><p>" +
		strings.Repeat("The pump is started in two steps, which people see. ", 6) + "</p>" + body + "</main></body></html>"
}

// What a page hides from people is not in its Markdown.
func TestHidden(t *testing.T) {
	for _, page := range []string{
		hiddenPage("", `<p style="display:none">KEEPOUT</p>`),
		hiddenPage("", `<div style="DISPLAY : None !important"><p>KEEPOUT</p></div>`),
		hiddenPage("", `<p style="color:red;/* x */display:/**/none">KEEPOUT</p>`),
		hiddenPage("", `<p>seen <span style="visibility:hidden">KEEPOUT</span></p>`),
		hiddenPage("", `<p hidden>KEEPOUT</p>`),
		hiddenPage("", `<p aria-hidden="true">KEEPOUT</p>`),
		hiddenPage("", `<p style="font-size:0">KEEPOUT</p>`),
		hiddenPage("", `<div style="font-size:0px"><p>KEEPOUT <b style="font-size:2em">KEEPOUT</b></p></div>`),
		hiddenPage("", `<p style="font-size:1px">KEEPOUT</p>`),
		hiddenPage("", `<p style="font-size:0.01em">KEEPOUT</p>`),
		hiddenPage("", `<p style="opacity:0">KEEPOUT</p>`),
		hiddenPage("", `<p style="opacity:0.01">KEEPOUT</p>`),
		hiddenPage("", `<ul style="position:absolute;left:-9999px"><li>KEEPOUT</li></ul>`),
		hiddenPage("", `<p style="position:fixed; top:-200vh">KEEPOUT</p>`),
		hiddenPage("", `<p style="text-indent:-9999px">KEEPOUT</p>`),
		hiddenPage("", `<p style="margin-left:-9999px">KEEPOUT</p>`),
		hiddenPage("", `<p style="transform:translateX(-9999px)">KEEPOUT</p>`),
		hiddenPage("", `<p style="transform: scale(0)">KEEPOUT</p>`),
		hiddenPage("", `<p style="position:absolute;clip:rect(0 0 0 0)">KEEPOUT</p>`),
		hiddenPage("", `<p style="clip-path:inset(50%)">KEEPOUT</p>`),
		hiddenPage("", `<p style="height:0;overflow:hidden">KEEPOUT</p>`),
		hiddenPage("", `<p style="color:#fff;background-color:white">KEEPOUT</p>`),
		hiddenPage("", `<div style="background:#FFF none"><p style="color:rgb(255, 255, 255)">KEEPOUT</p></div>`),
		hiddenPage("", `<p style="color:transparent">KEEPOUT</p>`),
		hiddenPage("", `<p style="color:rgba(0,0,0,0)">KEEPOUT</p>`),
		hiddenPage("", `<table bgcolor="#ffffff"><tr><td><font color="white">KEEPOUT</font></td></tr></table>`),
		hiddenPage("<style>.x9{display:none}</style>", `<p class="a x9">KEEPOUT</p>`),
		hiddenPage("<style>@charset 'utf-8';p.a , .b > i{color:red}\n#gone, .b i { visibility : hidden }</style>", `<p id=gone>KEEPOUT</p><p class=b><i>KEEPOUT</i></p>`),
		hiddenPage("<style>.s{font-size:0}.o{opacity:0}.l{position:absolute;left:-10000px}</style>", `<p class=s>KEEPOUT</p><p class=o>KEEPOUT</p><div class=l>KEEPOUT</div>`),
		hiddenPage("<style>p{display:block}.x{display:none}p{display:block}</style>", `<p class=x>KEEPOUT</p>`),
		hiddenPage("<style>@media (min-width:1px){.x{display:none}}@media print{.y{display:block}}.y{display:none}</style>", `<p class=y>KEEPOUT</p>`),
		hiddenPage("", `<h2 style="display:none">KEEPOUT</h2><pre style="display:none"><code>KEEPOUT</code></pre>`),
		hiddenPage("", `<h1 style="display:none">KEEPOUT</h1><img alt="KEEPOUT" style="display:none" src="a.png">`),
		hiddenPage("", `<article style="display:none"><h1>KEEPOUT</h1></article>`),
		hiddenPage("", `<p style="visibility:hidden">KEEPOUT <b style="visibility:visible">seen</b></p>`),
		hiddenPage("", "<p>use it."+strings.Map(func(c rune) rune { return 0xE0000 + c }, "ignore")+"&#x202e;&#x1b;[1m</p>"),
	} {
		p, err := content.Extract([]byte(page), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		assert.NotContains(t, p.Markdown+p.Title, "KEEPOUT", page)
		assert.Contains(t, p.Markdown, "in two steps, which people see")
		assert.False(t, strings.ContainsFunc(p.Markdown, func(c rune) bool { return c == 0x1b || c == 0x202e || c >= 0xE0000 }), page)
		if strings.Contains(page, "seen</b>") {
			assert.Contains(t, p.Markdown, "**seen**")
		}
	}
}

// What a person can open or another window shows stays, and so does a page that scripts show.
func TestShown(t *testing.T) {
	for _, page := range []string{
		hiddenPage("", `<div role="tablist"><button role="tab" aria-controls="a">A</button><button role="tab" aria-controls="b">B</button></div><div role="tabpanel" id="a">one</div><div role="tabpanel" id="b" hidden aria-hidden="true" style="display:none">STAYS</div>`),
		hiddenPage("<style>.tabcontent{display:none}</style>", `<button onclick="openTab(event, 'Java')">Java</button><div id="Java" class="tabcontent"><p>STAYS</p></div>`),
		hiddenPage("", `<a data-toggle="tab" href="#java">Java</a><div id="java" style="display:none">STAYS</div>`),
		hiddenPage("", `<button data-bs-target="#more">More</button><div id="more" style="display:none">STAYS</div>`),
		hiddenPage("<style>.panel{display:none} .panel.active{display:block}</style>", `<div class="panel active">one</div><div class="panel">STAYS</div>`),
		hiddenPage("<style>.panel{display:none} input:checked + .panel{display:block}</style>", `<input type=radio><div class="panel">STAYS</div>`),
		hiddenPage("<style>.tip .more{visibility:hidden} .tip:hover .more{visibility:visible}</style>", `<p class=tip>word <span class=more>STAYS</span></p>`),
		hiddenPage("<style>.hidden{display:none}@media (min-width:64em){.lg\\:block{display:block}}</style>", `<p class="hidden lg:block">STAYS</p>`),
		hiddenPage("<style>@media (max-width:10em){.x{display:none}}@media print{.y{display:none}}@keyframes a{from{opacity:0}}</style><style media=print>.y{display:none}</style>", `<p class="x y">STAYS</p>`),
		hiddenPage("<style>.x{display:none}p.x{display:block}</style>", `<p class="x">STAYS</p>`),
		hiddenPage("<style>.x{display:none}</style>", `<p class="x" style="display:block">STAYS</p>`),
		hiddenPage("<style>.x{display:block!important}#y{display:none}</style>", `<p class="x" id="y">STAYS</p>`),
		hiddenPage("<style>p:before{display:none;content:'}'}.xy{display:none}</style>", `<p class="x">STAYS</p>`),
		hiddenPage("", `<details><summary>More</summary><p>STAYS</p></details>`),
		hiddenPage("", `<div class="dynheader" onclick="return toggleVisibility(this)">More</div><div style="display:none">STAYS</div>`),
		hiddenPage("", `<p hidden="until-found">STAYS</p>`),
		hiddenPage("", `<div style="font-size:0"><span style="font-size:16px">STAYS</span></div>`),
		hiddenPage("", `<p style="color:white">STAYS</p><p style="color:#fff;background:#000">STAYS</p><p style="color:white;background:url(dark.png) white">S</p>`),
		hiddenPage("", `<p style="color:transparent;background-clip:text">STAYS</p>`),
		hiddenPage("", `<p style="opacity:.6;font-size:10px;left:-20px;position:absolute;margin-left:-15px">STAYS</p>`),
		hiddenPage("", `<p style="overflow:hidden;height:100%">STAYS</p>`),
		"<html><body style='opacity:0'><div style='visibility:hidden'><main style='display:none'><h1>Title</h1><p>STAYS with the page's text</p></main></div></body></html>",
		"<html><head><style>body{visibility:hidden}</style></head><body><div style='opacity:0'><h1>Title</h1><p>STAYS with the page's text</p></div></body></html>",
	} {
		p, err := content.Extract([]byte(page), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		assert.Contains(t, p.Markdown, "STAYS", page)
	}
	p, err := content.Extract([]byte(hiddenPage("", `<ul style="display:none"><li><a href="/next">KEEPOUT</a></li></ul>`)), "text/html", content.Options{Base: mustURL(t, "https://docs.example/")})
	require.NoError(t, err)
	assert.Equal(t, []string{"https://docs.example/next"}, p.Links, "a menu leads to pages")
	assert.NotContains(t, p.Markdown, "KEEPOUT")
}

// A hostile style sheet does not keep the program busy.
func TestHostileStyles(t *testing.T) {
	started := time.Now()
	for _, css := range []string{
		strings.Repeat("@media x{", 200_000), strings.Repeat("/*", 500_000), strings.Repeat("{", 1_000_000), strings.Repeat("a,", 500_000) + "a{display:none}",
		strings.Repeat("z * * * * * * b{display:none}z>b{opacity:0}z~b{opacity:0}z b:not(:has(i)){opacity:0}", 3000), strings.Repeat("z b{display:none}", 10_000),
	} {
		page := "<style>" + css + "</style><main><h1>Title</h1>" + strings.Repeat("<b>", 400) + strings.Repeat("<b>x</b>", 50_000) + "STAYS"
		p, err := content.Extract([]byte(page), "text/html", content.Options{})
		require.NoError(t, err)
		assert.Contains(t, p.Markdown, "STAYS")
	}
	assert.Less(t, time.Since(started), time.Minute)
}

func mustURL(t *testing.T, s string) *url.URL {
	u, err := url.Parse(s)
	require.NoError(t, err)
	return u
}
