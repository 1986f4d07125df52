package server

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
)

//go:embed page
var files embed.FS

// pages is the dashboard: HTML pages that work without scripts.
type pages struct {
	server    *Server
	templates map[string]*template.Template

	mu      sync.Mutex
	version int64 // of the board that the shared pages show
	shared  map[string]*sharedPage
}

// sharedPage is a page that is rendered once for all requests.
type sharedPage struct {
	once sync.Once
	b    []byte
	err  error
}

// layout is the data of every page.
type layout struct {
	Title   string
	Section string // of the navigation
	Message string
	Live    bool // it reloads at each event
	Token   bool
	May     bool // the person may change something
	Alerts  []alarm.Breach
	Demo    bool // the results in the store are invented
	Data    any
}

var funcs = template.FuncMap{
	"when": func(t time.Time) string {
		if t.IsZero() {
			return "–"
		}
		return t.UTC().Format("2006-01-02 15:04:05")
	},
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"took":  known.FormatSeconds,
	"words": known.Words,
	"shown": shown,
	"cell":  cellText,
	"value": valueOf,
	"num":   known.FormatCount,
	"size":  known.FormatBytes,
	"cut": func(text string) string {
		if r := []rune(text); len(r) > 90 {
			return string(r[:90]) + "…"
		}
		return text
	},
	"percent": func(part, of int64) string {
		if of == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(of))
	},
}

func newPages(s *Server) *pages {
	p := &pages{server: s, templates: map[string]*template.Template{}, version: -1}
	for _, name := range []string{"front", "start", "runs", "confirm", "run", "log", "dead-letters", "dead-letter", "schedules", "providers",
		"provider", "removals", "alerts", "audit", "reports", "explore", "found", "error", "login"} {
		p.templates[name] = template.Must(template.New("").Funcs(funcs).ParseFS(files, "page/layout.html", "page/cost.html", "page/run-parts.html", "page/provider-parts.html", "page/"+name+".html"))
	}
	return p
}

// view is a page that shows something.
type view struct {
	At, Template, Section, Title string
	Still                        bool // it is not loaded again at each event: its Data reads the store, or a person fills in its form
	// Data is what the template shows. A func() (any, error) is called in its place once for all who look at the page of call.key.
	Data func(*call) (any, error)
}

func (p *pages) views() []view {
	all := slices.Concat(p.runViews(), p.deadLetterViews(), p.scheduleViews(), p.alertViews(), p.providerViews(), p.exploreViews())
	for _, a := range p.server.actions() {
		if a.Confirm != nil {
			all = append(all, asks("GET "+a.Form, a.section, a.Confirm))
		}
	}
	return all
}

func (p *pages) routes() []route {
	s := p.server
	var all []route
	for _, v := range p.views() {
		all = append(all, route{v.At, p.show(v, http.StatusOK)})
	}
	for _, a := range s.actions() {
		if a.Form != "" {
			all = append(all, route{"POST " + a.Form, a.sent(s)})
		}
	}
	return slices.Concat(all, p.policyRoutes(), []route{
		{"GET /login", func(w http.ResponseWriter, r *http.Request) { p.write(w, r, http.StatusOK, "login", "") }},
		{"POST /login", s.signIn},
		{"POST /logout", s.signOut},
		{"GET /events", s.events},
		{"GET " + botPath, s.botPage},
		{"GET /style.css", asset("style.css", "text/css; charset=utf-8")},
		{"GET /favicon.svg", asset("favicon.svg", "image/svg+xml")},
		{"GET /live.js", asset("live.js", "text/javascript; charset=utf-8")},
	})
}

// show answers with the page of a view.
func (p *pages) show(v view, code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, head: w.Header(), form: true, in: r.URL.Query(), layout: layout{Title: v.Title, Section: v.Section,
			Live: !v.Still, Token: p.server.token != "", May: mayAct(r), Alerts: p.server.alarm.Firing()}}
		b, err := p.page(c, v)
		if err != nil {
			p.server.fail(w, r, err)
			return
		}
		p.send(w, r, code, b, nil)
	}
}

func (p *pages) page(c *call, v view) ([]byte, error) {
	data, err := v.Data(c)
	if err != nil {
		return nil, err
	}
	render := func() ([]byte, error) {
		f := c.layout
		f.Data = data
		if later, ok := data.(func() (any, error)); ok {
			if f.Data, err = later(); err != nil {
				return nil, err
			}
		}
		return p.render(v.Template, f)
	}
	if c.key != "" {
		return p.renderShared(c.Request, c.key, render)
	}
	return render()
}

func asset(name, kind string) http.HandlerFunc {
	b, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(b) // a client that is gone needs no answer
	}
}

// render renders a page completely, so that an error can still change the answer.
func (p *pages) render(name string, v layout) ([]byte, error) {
	var b bytes.Buffer
	v.Demo = p.server.demo.Load()
	if err := p.templates[name].ExecuteTemplate(&b, "layout", v); err != nil {
		return nil, fmt.Errorf("rendering the page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

func (p *pages) send(w http.ResponseWriter, r *http.Request, code int, b []byte, err error) {
	if err != nil {
		p.server.log.Error("page_not_rendered", "path", r.URL.Path, "error", err)
		http.Error(w, internalErrorText, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b) // a client that is gone needs no answer
}

// write sends a page with a message.
func (p *pages) write(w http.ResponseWriter, r *http.Request, code int, name, message string) {
	titles := map[string]string{"error": "That did not work", "login": "Sign in"}
	b, err := p.render(name, layout{Title: titles[name], Message: message})
	p.send(w, r, code, b, err)
}

// maxSharedPages is how many rendered pages are kept in memory.
const maxSharedPages = 100

// renderShared renders a page once for each version of the board and each role.
// Concurrent requests wait for it and share it.
func (p *pages) renderShared(r *http.Request, key string, render func() ([]byte, error)) ([]byte, error) {
	key = fmt.Sprint(mayAct(r), " ", key)
	p.mu.Lock()
	version := p.server.board.Version.Load()
	if p.version != version || len(p.shared) > maxSharedPages {
		p.version, p.shared = version, map[string]*sharedPage{}
	}
	page := p.shared[key]
	if page == nil {
		page = &sharedPage{}
		p.shared[key] = page
	}
	p.mu.Unlock()
	page.once.Do(func() {
		page.err = errors.New("rendering the page panicked") // replaced unless render panics
		page.b, page.err = render()
	})
	if page.err != nil { // the next request tries again
		p.mu.Lock()
		if p.shared[key] == page {
			delete(p.shared, key)
		}
		p.mu.Unlock()
	}
	return page.b, page.err
}
