package server

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/newsfork/seed-engine/io/ledger"
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

// view is the data of every page.
type view struct {
	Title   string
	Section string // of the navigation
	Message string
	Live    bool // it reloads at each event
	Token   bool
	May     bool // the person may change something
	Alerts  []breach
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
	"took":  formatSeconds,
	"words": words,
	"shown": shown,
	"cell":  cellText,
	"value": valueOf,
	"num":   formatCount,
	"size":  formatBytes,
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
	for _, name := range []string{"front", "start", "runs", "confirm", "run", "log", "dead-letters", "dead-letter", "search", "schedules", "providers", "provider", "removals", "alerts", "audit", "reports", "explore", "found", "error", "login"} {
		p.templates[name] = template.Must(template.New("").Funcs(funcs).ParseFS(files, "page/layout.html", "page/cost.html", "page/run-parts.html", "page/provider-parts.html", "page/"+name+".html"))
	}
	return p
}

func (p *pages) routes() []route {
	s := p.server
	return slices.Concat(p.scheduleRoutes(), p.providerRoutes(), p.alertRoutes(), p.exploreRoutes(), []route{
		{"GET /{$}", p.front},
		{"GET /start", p.startForms},
		{"GET /runs", p.runs},
		{"POST /runs", p.start},
		{"GET /runs/{id}", p.run},
		{"GET /runs/{id}/cancel", p.confirmCancel},
		{"GET /runs/{id}/log", p.log},
		{"POST /runs/{id}/again", p.runAgain},
		{"POST /runs/{id}/cancel", p.setControl(ledger.ActionCancel)},
		{"POST /runs/{id}/pause", p.setControl(ledger.ActionPause)},
		{"POST /runs/{id}/resume", p.setControl(ledger.ActionRun)},
		{"GET /runs/{id}/dead-letters/replay", p.confirmReplay},
		{"POST /runs/{id}/dead-letters/replay", p.replay},
		{"GET /dead-letters", p.deadLetters},
		{"GET /dead-letters/replay", p.confirmReplayFound},
		{"POST /dead-letters/replay", p.replayFound},
		{"GET /dead-letters/{job}/{id}", p.letter},
		{"POST /dead-letters/{job}/{id}/dismiss", p.dismissLetter},
		{"POST /dead-letters/{job}/{id}/reopen", p.reopenLetter},
		{"POST /dead-letters/{job}/{id}/replay", p.replayLetter},
		{"GET /reports", p.reports},
		{"GET /search", p.search},
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
func (p *pages) render(name string, v view) ([]byte, error) {
	var b bytes.Buffer
	v.Demo = p.server.demo.Load()
	if err := p.templates[name].ExecuteTemplate(&b, "layout", v); err != nil {
		return nil, fmt.Errorf("rendering the page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

func (p *pages) send(w http.ResponseWriter, r *http.Request, b []byte, err error) {
	if err != nil {
		p.server.log.Error("page_not_rendered", "path", r.URL.Path, "error", err)
		http.Error(w, internalErrorText, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b) // a client that is gone needs no answer
}

// write sends a page with a message.
func (p *pages) write(w http.ResponseWriter, r *http.Request, code int, name, message string) {
	titles := map[string]string{"error": "That did not work", "login": "Sign in"}
	b, err := p.render(name, view{Title: titles[name], Message: message})
	if err == nil {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(code)
	}
	p.send(w, r, b, err)
}

func (p *pages) view(r *http.Request, title, section string, data any) view {
	return view{Title: title, Section: section, Live: true, Token: p.server.token != "", May: mayAct(r), Alerts: p.server.alarm.firing(), Data: data}
}

// maxSharedPages is how many rendered pages are kept in memory.
const maxSharedPages = 100

// renderShared renders a page once for each version of the board and each role.
// Concurrent requests wait for it and share it.
func (p *pages) renderShared(r *http.Request, key string, render func() ([]byte, error)) ([]byte, error) {
	key = fmt.Sprint(mayAct(r), " ", key)
	p.mu.Lock()
	version := p.server.board.version.Load()
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

// formatSeconds writes seconds like 1m30s.
func formatSeconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	return d.Round(cmp.Or(map[bool]time.Duration{true: 100 * time.Millisecond}[d < time.Minute], time.Second)).String()
}

// formatCount writes 1234567 as 1,234,567.
func formatCount(n int64) string { return english.Sprintf("%d", n) }

var english = message.NewPrinter(language.English)

// formatBytes writes bytes in a suitable unit.
func formatBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if f /= 1024; f < 1024 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", f/1024)
}
