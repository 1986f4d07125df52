package docsim

// style is how a generator wraps a page. {{MAIN}} is the content.
type style struct{ page string }

const label = "<!-- demo data: a simulated site -->\n"

// devsite is Google's: ai.google.dev and firebase.google.com.
var devsite = style{`<!doctype html>
<html lang="en" dir="ltr"><head><title>{{TITLE}} | Demo</title><meta charset="utf-8"><link rel="canonical" href="{{PATH}}"></head>
<body class="" template="page" theme="devsite">` + label + `
<devsite-header role="banner"><div class="devsite-top-logo-row"><a href="{{SEED}}">Docs</a></div></devsite-header>
<div class="devsite-banner">Now in preview: try the new console.</div>
<section class="devsite-wrapper"><devsite-book-nav class="devsite-nav"><ul><li><a href="{{SEED}}">Overview</a></li></ul></devsite-book-nav>
<section id="gc-wrapper"><main role="main" class="devsite-main-content"><devsite-content>
<article class="devsite-article"><div class="devsite-article-meta nocontent" role="navigation"><ul class="devsite-breadcrumb-list"><li><a href="{{SEED}}">Home</a></li></ul></div>
<devsite-toc class="devsite-nav devsite-toc"><ul>{{TOC}}</ul></devsite-toc>
<article class="devsite-article-body clearfix">{{MAIN}}</article>
<devsite-thumb-rating class="feedback">Was this helpful?</devsite-thumb-rating></article></devsite-content></main></section></section>
<devsite-footer-linkboxes class="nocontent"><footer>Terms Privacy</footer></devsite-footer-linkboxes></body></html>`}

// mintlify, with Next.js around it.
var mintlify = style{`<!DOCTYPE html><html lang="en" class="dark"><head><meta charset="utf-8"/><title>{{TITLE}} - Demo</title><meta name="generator" content="Mintlify"/></head><body>` + label + `
<div id="__next"><main><div id="navbar" class="header-nav"><a href="{{SEED}}">Home</a><button>Search...</button></div>
<div id="sidebar" class="sidebar"><ul class="sidebar-group"><li><a href="{{SEED}}">Get started</a></li></ul></div>
<div id="content-area"><header id="header"><div class="eyebrow">Guides</div></header>
<article class="prose prose-gray dark:prose-invert mdx-content">{{MAIN}}</article>
<div class="feedback-toolbar">Was this page helpful? Yes No</div><div id="pagination" class="pagination"><a href="{{SEED}}">Previous</a></div>
<div id="table-of-contents" class="toc"><ul>{{TOC}}</ul></div></div></main></div></body></html>`}

// readme is ReadMe's hub.
var readme = style{`<!DOCTYPE html><html lang="en" class="useReactApp"><head><meta charset="utf-8"><title>{{TITLE}}</title><meta name="readme-deploy" content="5"></head><body class="body-none">` + label + `
<header class="rm-Header"><nav><a href="{{SEED}}">Guides</a></nav></header>
<div class="rm-Container"><nav class="rm-Sidebar sidebar"><ul><li><a href="{{SEED}}">Overview</a></li></ul></nav>
<article class="rm-Article">{{MAIN}}<div class="rm-Feedback">Did this page help you? Yes No</div></article>
<section class="content-toc rm-TableOfContents"><nav><ul>{{TOC}}</ul></nav></section></div></body></html>`}

// docusaurus writes "theme-doc-markdown markdown" and a hash link in each heading.
var docusaurus = style{`<!doctype html><html lang="en" dir="ltr" class="docs-wrapper plugin-docs docs-version-current"><head><meta charset="UTF-8"><meta name="generator" content="Docusaurus v3.5.2"><title>{{TITLE}} | Demo</title></head><body class="navigation-with-keyboard">` + label + `
<div role="region" aria-label="Skip to main content"><a href="#__docusaurus_skipToContent_fallback">Skip to main content</a></div>
<nav aria-label="Main" class="navbar navbar--fixed-top"><a class="navbar__brand" href="/">Demo</a></nav>
<div id="__docusaurus_skipToContent_fallback" class="main-wrapper"><aside class="theme-doc-sidebar-container sidebar"><ul class="menu__list"><li><a href="{{SEED}}">Introduction</a></li></ul></aside>
<main class="docMainContainer"><div class="row"><div class="col"><nav class="theme-doc-breadcrumbs breadcrumb"><ul><li><a href="/">Home</a></li></ul></nav>
<article class="docs-content"><div class="theme-doc-markdown markdown">{{MAIN}}</div></article><nav class="pagination-nav pagination" aria-label="Docs pages"><a href="{{SEED}}">Previous</a></nav></div>
<div class="col col--3"><div class="tableOfContents toc"><ul>{{TOC}}</ul></div></div></div></main></div><footer class="footer">Copyright Demo</footer></body></html>`}

// hugo is qdrant.tech's.
var hugo = style{`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="generator" content="Hugo 0.139.0"><title>{{TITLE}} - Demo</title></head><body>` + label + `
<header class="header"><nav><a href="/">Home</a></nav></header><section class="documentation"><aside class="sidebar"><a href="{{SEED}}">Documentation</a></aside>
<div class="breadcrumb"><a href="{{SEED}}">Documentation</a></div><article class="docs-content documentation-article">{{MAIN}}</article>
<aside class="toc"><ul>{{TOC}}</ul></aside></section><div class="docs-feedback feedback">Was this page useful?</div><footer>Ready to get started?</footer></body></html>`}

// awsdocs is docs.aws.amazon.com's.
var awsdocs = style{`<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" lang="en-US"><head><meta http-equiv="Content-Type" content="text/html; charset=UTF-8" /><title>{{TITLE}} - Demo</title></head><body class="awsdocs awsui">` + label + `
<div class="awsdocs-container"><awsdocs-header></awsdocs-header><awsui-app-layout><div id="guide-toc"><awsdocs-toc id="left-nav"><a href="{{SEED}}">Guide</a></awsdocs-toc></div>
<div id="main-column"><awsdocs-view><div id="awsdocs-content"><div class="breadcrumb" id="breadcrumbs"><a href="/">Documentation</a></div>
<div id="main-content" class="awsui-util-container"><div id="main-col-body">{{MAIN}}</div><div id="feedback">Did this page help you?</div></div></div></awsdocs-view></div>
<div id="page-toc-src"><ul>{{TOC}}</ul></div></awsui-app-layout></div></body></html>`}

// nextjs is a site of its own making on Next.js: open and close wrap the content.
func nextjs(lang, before, open, end string) style {
	return style{`<!DOCTYPE html><html lang="` + lang + `"><head><meta charSet="utf-8"/><title>{{TITLE}}</title></head><body>` + label + `
<div id="__next"><header class="nav-header gnb leftNav"><nav><a href="{{SEED}}">Documentation</a><a href="/login">Sign in</a></nav></header>
<aside class="sidebar"><ul><li><a href="{{SEED}}">Introduction</a></li></ul></aside>` + before + open + `{{MAIN}}<div class="feedback feedback-widget feedback-section">Was this page helpful?</div>` + end + `
<aside class="toc"><ul>{{TOC}}</ul></aside><footer>© Demo</footer></div><script id="__NEXT_DATA__" type="application/json">{"props":{}}</script></body></html>`}
}
