package face

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"sync"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
	"github.com/newsfork/seed-engine/server/schedule"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

//go:embed page
var files embed.FS

// pages renders HTML pages that work without scripts.
type pages struct {
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
	Out     bool // nobody is signed in, so that no link leads anywhere
	Data    any
}

var funcs = template.FuncMap{
	"when": when,
	"zones": func() []string {
		return []string{"UTC", "America/Los_Angeles", "America/New_York", "Asia/Seoul", "Asia/Singapore", "Asia/Tokyo", "Europe/Berlin", "Europe/London"}
	},
	"took":  known.FormatSeconds,
	"words": known.Words,
	"title": policyfile.Title,
	"shown": shown,
	"cell":  cellText,
	"value": valueOf,
	"strip": stripOf,
	"fresh": fresh,
	"late":  lateText,
	"in":    func(v schedule.View) string { return until(v.Next.Sub(v.Now)) },
	"price": lastPrice,
	"line":  linePlot,
	"prose": seriesText,
	"num":   ledger.FormatCount,
	"size":  ledger.FormatBytes,
	"cut":   cut,
	"percent": func(part, of int64) string {
		if of == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(of))
	},
}

// cut shortens a text for a line of a table.
func cut(text string) string { return known.Cut(text, 90) }

func (p *pages) parse() {
	p.templates, p.version = map[string]*template.Template{}, -1
	for _, name := range []string{"front", "start", "runs", "confirm", "run", "log", "dead-letters", "dead-letter", "schedules", "providers",
		"provider", "removals", "alerts", "audit", "reports", "explore", "found", "error", "login"} {
		p.templates[name] = template.Must(template.New("").Funcs(funcs).ParseFS(files, "page/layout.html", "page/cost.html",
			"page/run-parts.html", "page/provider-parts.html", "page/"+name+".html"))
	}
}

// view is a page that shows something.
type view struct {
	At, Template, Section, Title string
	Still                        bool // it is not loaded again at each event: its Data reads the store, or a person fills in its form
	// Data is what the template shows. A later is called in its place once for all who look at the page of call.key.
	Data doing
}

// later is data that is read when the page is rendered. Other requests may wait for the same page, so its context does not end with
// the request.
type later func(context.Context) (any, error)

// show answers with the page of a view.
func (f *Face) show(v view, code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, head: w.Header(), form: true, in: r.URL.Query(), layout: layout{Title: v.Title, Section: v.Section,
			Live: !v.Still, Token: f.Guard.Token != "", May: people.MayAct(r), Alerts: f.Alarm.Firing()}}
		b, err := f.renderView(c, v)
		if err != nil {
			f.Fail(w, r, err)
			return
		}
		f.send(w, r, code, b, nil)
	}
}

func (f *Face) renderView(c *call, v view) (b []byte, err error) {
	if c.Data, err = v.Data(c); err != nil {
		return nil, err
	}
	render := func() ([]byte, error) {
		l := c.layout
		if read, ok := l.Data.(later); ok {
			if l.Data, err = read(context.WithoutCancel(c.Context())); err != nil {
				return nil, err
			}
		}
		return f.render(v.Template, l)
	}
	if c.key == "" {
		return render()
	}
	return f.pages.once(f.Board.Version.Load(), fmt.Sprint(c.May, " ", c.key), render)
}

// file answers with bytes that never change.
func file(kind string, b []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(b) // a client that is gone needs no answer
	}
}

func asset(name, kind string) http.HandlerFunc {
	b, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		file(kind, b)(w, r)
	}
}

// render renders a page completely, so that an error can still change the answer.
func (f *Face) render(name string, l layout) ([]byte, error) {
	var b bytes.Buffer
	l.Demo = f.Board.Demo() || f.Runner.Option("web") == "demo" // before the first run too
	if err := f.pages.templates[name].ExecuteTemplate(&b, "layout", l); err != nil {
		return nil, fmt.Errorf("rendering the page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

func (f *Face) send(w http.ResponseWriter, r *http.Request, code int, b []byte, err error) {
	if err != nil {
		f.Log.Error("page_not_rendered", "path", r.URL.Path, "error", err)
		http.Error(w, known.ErrInternal.Message, known.ErrInternal.Code)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(inZone(b, zoneOf(r))) // a client that is gone needs no answer
}

// message sends a page with a message.
func (f *Face) message(w http.ResponseWriter, r *http.Request, code int, name, title, message string) {
	b, err := f.render(name, layout{Title: title, Message: message, Out: name == "login"})
	f.send(w, r, code, b, err)
}

// SignInPage sends the form for the token.
func (f *Face) SignInPage(w http.ResponseWriter, r *http.Request, code int, message string) {
	f.message(w, r, code, "login", "Sign in", message)
}

// maxSharedPages is how many rendered pages are kept in memory.
const maxSharedPages = 100

// once renders a page once for each version of the board and each key, which has the role. Concurrent requests wait for it and share it.
func (p *pages) once(version int64, key string, render func() ([]byte, error)) ([]byte, error) {
	p.mu.Lock()
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
