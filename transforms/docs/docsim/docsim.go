// Package docsim is demo data: simulated documentation sites of the fifteen
// providers in package policies. Hosts, paths and selectors are the real ones, and
// the HTML is like that of each site's generator; the text is invented. No content
// comes from a provider. No promise: see docs/library.md.
package docsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"
)

// Page is a page of a simulated site. Links are written unchanged into its main
// content; the navigation and footer around it link to all pages one level below
// the site's seed URLs.
type Page struct {
	Title    string
	Sections []section
	Links    []string
	// Kind is the Content-Type when it is not HTML; then Body is the answer.
	Kind string
	Body string
	// Status is the response's status where it is not 200; Header is added to the response.
	Status int
	Header http.Header
}

// section is a heading with the content below it.
type section struct {
	Heading    string
	Text       string
	Code, Lang string
	Table      [][]string // the first row is its head
}

// Site is one simulated site. It may be changed while it answers.
type Site struct {
	Host   string
	Seed   string // path of the page that a crawl begins with
	Robots string // body of robots.txt; "": 404

	page  string // how the site's generator wraps a page
	mu    sync.Mutex
	pages map[string]kept
	now   time.Time // Last-Modified of pages set from now on
}

type kept struct {
	page     Page
	modified time.Time
}

// published is when the first edition's pages were last changed, in their world.
var published = time.Date(2026, 2, 16, 3, 0, 0, 0, time.UTC)

// Set puts a page under a path, a new one or in place of another, with a new
// Last-Modified.
func (s *Site) Set(path string, p Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = kept{p, s.now}
}

// Page returns the page of a path, and whether there is one.
func (s *Site) Page(path string) (Page, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.pages[path]
	return k.page, ok
}

// Remove removes a page: it is 404 from now on. Links to it stay.
func (s *Site) Remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, path)
}

// Paths lists the site's pages.
func (s *Site) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.pages))
}

// Later moves the site's time by a week: pages set from now on have a later Last-Modified.
func (s *Site) Later() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.AddDate(0, 0, 7)
}

// ServeHTTP answers as the site would, with ETag and Last-Modified.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" && s.Robots != "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(s.Robots)) // it fails only when the client has closed the connection
		return
	}
	path := strings.TrimRight(r.URL.Path, "/")
	if path == "" {
		path = "/"
	}
	s.mu.Lock()
	k, ok := s.pages[path]
	s.mu.Unlock()
	if !ok {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, "<!doctype html><title>Not found</title><h1>Page not found</h1>")
		return
	}
	for name, values := range k.page.Header {
		w.Header()[name] = values
	}
	body, kind := k.page.Body, k.page.Kind
	if kind == "" {
		body, kind = s.render(path, k.page), "text/html; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	if k.page.Status != 0 {
		w.WriteHeader(k.page.Status)
		_, _ = fmt.Fprint(w, body)
		return
	}
	sum := sha256.Sum256([]byte(body))
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	http.ServeContent(w, r, "", k.modified, bytes.NewReader([]byte(body)))
}

// Sites are the fifteen by host.
type Sites map[string]*Site

// Install adds the fifteen sites; handle is webtest.Web's Handle. In edition 2, a week later, each site has one page more, one changed in
// its last section, and one gone.
func Install(handle func(host string, h http.Handler), edition int) Sites {
	sites := Sites{}
	for _, p := range providers {
		s := p.site()
		if edition > 1 {
			s.nextWeek(p)
		}
		sites[s.Host] = s
		handle(s.Host, s)
	}
	return sites
}

// ID is the fragment of the section.
func (s section) ID() string { return strings.ReplaceAll(strings.ToLower(s.Heading), " ", "-") }

// parts are the main content of a page, and its table of contents.
var parts = template.Must(template.New("").Funcs(template.FuncMap{"last": func(link string) string {
	link = strings.TrimRight(link, "/")
	return link[strings.LastIndexByte(link, '/')+1:]
}}).Parse(read("pages/main.tmpl")))

// render writes a page as the site's generator does.
func (s *Site) render(path string, p Page) string {
	part := func(name string) string {
		var b strings.Builder
		if err := parts.ExecuteTemplate(&b, name, p); err != nil {
			return err.Error() // the template and its data are ours
		}
		return b.String()
	}
	page := s.page
	for place, text := range map[string]string{"TITLE": html.EscapeString(p.Title), "SEED": s.Seed, "MAIN": part("main"), "TOC": part("toc"), "PATH": html.EscapeString(path)} {
		page = strings.ReplaceAll(page, "{{"+place+"}}", text)
	}
	return page
}
