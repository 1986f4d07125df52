package orchestrator

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"github.com/newsfork/seed-engine/io/ledger"
)

//go:embed page
var files embed.FS

// pages is the dashboard: HTML from templates, which works without a script.
type pages struct {
	server    *Server
	templates map[string]*template.Template

	mu      sync.Mutex
	version int64 // of the board that the rendered pages show
	ready   map[string]*rendered
}

// rendered is a page that is rendered once for all who ask.
type rendered struct {
	once sync.Once
	b    []byte
	err  error
}

// view is what every page has.
type view struct {
	Title   string
	Section string // of the navigation
	Message string
	Live    bool // events make it read itself anew
	Token   bool
	Alerts  []breach
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
	"took":  took,
	"words": words,
	"num":   grouped,
	"size":  size,
	"percent": func(part, of int64) string {
		if of == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(of))
	},
}

func newPages(s *Server) *pages {
	p := &pages{server: s, templates: map[string]*template.Template{}, version: -1}
	for _, name := range []string{"front", "run", "schedules", "reports", "error", "login"} {
		p.templates[name] = template.Must(template.New("").Funcs(funcs).ParseFS(files, "page/layout.html", "page/"+name+".html"))
	}
	return p
}

func (p *pages) routes() []route {
	s := p.server
	return []route{
		{"GET /{$}", p.list},
		{"POST /runs", p.start},
		{"GET /runs/{id}", p.run},
		{"POST /runs/{id}/cancel", p.steer(ledger.ActionCancel)},
		{"POST /runs/{id}/pause", p.steer(ledger.ActionPause)},
		{"POST /runs/{id}/resume", p.steer(ledger.ActionRun)},
		{"POST /runs/{id}/dead-letters/replay", p.replay},
		{"GET /schedules", p.schedules},
		{"GET /reports", p.reports},
		{"GET /login", func(w http.ResponseWriter, r *http.Request) { p.write(w, r, http.StatusOK, "login", "") }},
		{"POST /login", s.signIn},
		{"GET /events", s.events},
		{"GET /style.css", asset("style.css", "text/css; charset=utf-8")},
		{"GET /live.js", asset("live.js", "text/javascript; charset=utf-8")},
	}
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

// render makes a page whole before a byte of it is sent.
func (p *pages) render(name string, v view) ([]byte, error) {
	var b bytes.Buffer
	if err := p.templates[name].ExecuteTemplate(&b, "layout", v); err != nil {
		return nil, fmt.Errorf("rendering the page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

func (p *pages) send(w http.ResponseWriter, r *http.Request, b []byte, err error) {
	if err != nil {
		p.server.log.Error("page_not_rendered", "path", r.URL.Path, "error", err)
		http.Error(w, troubleText, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b) // a client that is gone needs no answer
}

// write sends a page that is a message.
func (p *pages) write(w http.ResponseWriter, r *http.Request, code int, name, message string) {
	titles := map[string]string{"error": "That did not work", "login": "Sign in"}
	b, err := p.render(name, view{Title: titles[name], Message: message})
	if err == nil {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(code)
	}
	p.send(w, r, b, err)
}

func (p *pages) view(title, section string, data any) view {
	return view{Title: title, Section: section, Live: true, Token: p.server.token != "", Alerts: p.server.alarm.firing(), Data: data}
}

// frontPage is the list of runs and what stands around it.
type frontPage struct {
	Jobs    []jobForm
	Active  []*entry
	Runs    []*entry
	Job     string // the one filtered by
	Before  string
	Next    string
	Plans   []plan
	Work    template.HTML
	Answers template.HTML
	Fails   template.HTML
	Charted []*entry // oldest first, as the table says what the charts show
}

type jobForm struct {
	job
	Busy string // a run of it that is active
}

const (
	perPage = 50
	charted = 30
)

// list is the status page.
func (p *pages) list(w http.ResponseWriter, r *http.Request) {
	name, before := r.URL.Query().Get("job"), r.URL.Query().Get("before")
	if _, ok := jobNamed(name); name != "" && !ok || before != "" && !idForm.MatchString(before) {
		p.server.fail(w, r, refuse("there is no such list of runs"))
		return
	}
	b, err := p.shared("front "+name+" "+before, func() ([]byte, error) {
		return p.render("front", p.view("Runs", "runs", p.frontPage(name, before)))
	})
	p.send(w, r, b, err)
}

// keptPages are held ready; people look at few.
const keptPages = 100

// shared renders a page once for each state of the board: those who ask for it
// meanwhile wait, and share it.
func (p *pages) shared(key string, render func() ([]byte, error)) ([]byte, error) {
	p.mu.Lock()
	version := p.server.board.version.Load()
	if p.version != version || len(p.ready) > keptPages {
		p.version, p.ready = version, map[string]*rendered{}
	}
	r := p.ready[key]
	if r == nil {
		r = &rendered{}
		p.ready[key] = r
	}
	p.mu.Unlock()
	r.once.Do(func() {
		r.err = errors.New("rendering the page broke off") // should render panic
		r.b, r.err = render()
	})
	if r.err != nil { // the next one tries again
		p.mu.Lock()
		if p.ready[key] == r {
			delete(p.ready, key)
		}
		p.mu.Unlock()
	}
	return r.b, r.err
}

func (p *pages) frontPage(name, before string) frontPage {
	f := frontPage{Job: name, Before: before, Plans: p.server.plans.plans(p.server.now())}
	busy := map[string]string{}
	var shown []*entry
	for _, e := range p.server.board.runs() {
		if e.Active() {
			f.Active = append(f.Active, e)
			busy[e.Run.Job] = e.Run.RunID
		}
		if name == "" || e.Run.Job == name {
			shown = append(shown, e)
		}
	}
	for _, j := range jobs {
		f.Jobs = append(f.Jobs, jobForm{j, busy[j.Name]})
	}
	for _, e := range shown {
		if len(f.Charted) < charted && !e.Active() && !e.Broken {
			f.Charted = append(f.Charted, e)
		}
		if before != "" && e.Run.RunID >= before {
			continue
		}
		if len(f.Runs) == perPage {
			f.Next = f.Runs[perPage-1].Run.RunID
			break
		}
		f.Runs = append(f.Runs, e)
	}
	slices.Reverse(f.Charted)
	var work, answers, fails []column
	for _, e := range f.Charted {
		label := e.Run.StartedAt.UTC().Format("01-02 15:04")
		work = append(work, column{label, []part{{"good", e.PerSecond()}}})
		r := e.Report
		answers = append(answers, column{label, []part{{"good", float64(classOf(r, '2'))}, {"calm", float64(classOf(r, '3'))},
			{"warn", float64(classOf(r, '4'))}, {"bad", float64(classOf(r, '5'))}}})
		fails = append(fails, column{label, []part{{"bad", float64(failuresBelow(r))}}})
	}
	f.Work = columnChart("Requests a second", work)
	f.Answers = columnChart("Answers by status", answers)
	f.Fails = columnChart("Failed requests", fails)
	return f
}

// runView is the page of one run.
type runView struct {
	*entry
	What      job
	Hosts     int64
	HostsDone int64
	Share     float64 // percent
	Progress  template.HTML
	Requests  template.HTML
	Failing   template.HTML
	Counts    []bar
	Statuses  []bar
	Failures  []bar
	Letters   letterList
	Providers table
	Options   []option
	Replayed  string
}

type option struct{ Name, Value string }

// table is a job's own rows, one a provider.
type table struct {
	Head []string
	Rows [][]cell
}

type cell struct {
	Text   string
	Number bool
}

// firstColumns are those that a person looks for; others follow by name.
var firstColumns = []string{"provider", "site", "name", "state", "reason", "total_pages", "new", "updated", "unchanged", "deleted", "failed", "requests"}

// providers makes a table of the single values of a report's rows.
func providers(r ledger.Report) table {
	rows := rowsOf[map[string]any](r)
	named := map[string]bool{}
	for _, row := range rows {
		for name, v := range row {
			switch v.(type) {
			case string, float64, bool:
				named[name] = true
			}
		}
	}
	var t table
	for _, name := range slices.Concat(firstColumns, slices.Sorted(maps.Keys(named))) {
		if named[name] && !slices.Contains(t.Head, name) {
			t.Head = append(t.Head, name)
		}
	}
	for _, row := range rows {
		var cells []cell
		for _, name := range t.Head {
			switch v := row[name].(type) {
			case float64:
				cells = append(cells, cell{english.Sprint(number.Decimal(v, number.MaxFractionDigits(2))), true})
			case string:
				cells = append(cells, cell{v, false})
			case bool:
				cells = append(cells, cell{fmt.Sprint(v), false})
			default:
				cells = append(cells, cell{"–", false})
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// PerSecond is how many requests a second the run makes on average.
func (e *entry) PerSecond() float64 {
	if e.Report.Duration <= 0 {
		return 0
	}
	return float64(e.Report.HTTP.Requests) / e.Report.Duration
}

// Failed are the run's requests that got no answer.
func (e *entry) Failed() int64 { return failuresBelow(e.Report) }

// Done is the count of what came out well, with its name.
func (e *entry) Done() string {
	j, _ := jobNamed(e.Run.Job)
	if j.done == "" {
		return ""
	}
	return grouped(e.Report.Counts[j.done]) + " " + words(j.done)
}

func (p *pages) run(w http.ResponseWriter, r *http.Request) {
	e, err := p.server.run(r)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	ctx := context.WithoutCancel(r.Context()) // others may wait for the same page
	render := func() ([]byte, error) {
		v, err := p.runView(ctx, e)
		if err != nil {
			return nil, err
		}
		v.Replayed = r.URL.Query().Get("replayed")
		page := p.view("Run "+e.Run.RunID, "runs", v)
		page.Live = e.Active()
		return p.render("run", page)
	}
	var b []byte
	if e.Active() && r.URL.RawQuery == "" { // pages that read themselves anew
		b, err = p.shared("run "+e.Run.RunID, render)
	} else {
		b, err = render()
	}
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	p.send(w, r, b, nil)
}

func (p *pages) runView(ctx context.Context, e *entry) (runView, error) {
	v := runView{entry: e}
	v.What, _ = jobNamed(e.Run.Job)
	for _, l := range e.Report.Lanes {
		v.Hosts += l.Hosts
		v.HostsDone += l.HostsDone
	}
	v.Share = 100 * float64(v.HostsDone) / float64(max(v.Hosts, 1))
	v.Progress = lineChart("Hosts done a second", "hosts a second", "good", rates(e.Samples, func(s sample) int64 { return s.Done }))
	v.Requests = lineChart("Requests a second", "requests a second", "calm", rates(e.Samples, func(s sample) int64 { return s.Requests }))
	v.Failing = lineChart("Failed requests a second", "failures a second", "bad", rates(e.Samples, func(s sample) int64 { return s.Failures }))
	r := e.Report
	v.Statuses = bars(r.HTTP.ByStatus, statusClass, true)
	v.Failures = bars(r.HTTP.Failures, func(string) string { return "bad" }, true)
	named := ledger.JobCounts(e.Run.Job)
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		if !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	for _, name := range named {
		v.Counts = append(v.Counts, bar{Name: name, N: r.Counts[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(e.Run.Options)) {
		v.Options = append(v.Options, option{name, fmt.Sprint(e.Run.Options[name])})
	}
	v.Providers = providers(r)
	var err error
	v.Letters, err = p.server.lettersOf(ctx, e.Run)
	return v, err
}

// start starts a run from the form of a job.
func (p *pages) start(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, asRefusal(err))
		return
	}
	j, ok := jobNamed(r.PostForm.Get("job"))
	if !ok {
		p.server.fail(w, r, refuse("there is no such job"))
		return
	}
	flags, err := j.settle(formValues(r.PostForm, j))
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	id, err := p.server.startNow(context.WithoutCancel(r.Context()), j.Name, flags, "dashboard")
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/runs/"+id, http.StatusSeeOther)
}

func (p *pages) steer(action ledger.Action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e, err := p.server.run(r)
		if err == nil {
			err = p.server.steer(r.Context(), e, action)
		}
		if err != nil {
			p.server.fail(w, r, err)
			return
		}
		http.Redirect(w, r, "/runs/"+e.Run.RunID, http.StatusSeeOther)
	}
}

func (p *pages) replay(w http.ResponseWriter, r *http.Request) {
	e, err := p.server.run(r)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, asRefusal(err))
		return
	}
	ids := r.PostForm["id"]
	for _, id := range ids {
		if !idForm.MatchString(id) {
			p.server.fail(w, r, refuse("that is no dead letter's id"))
			return
		}
	}
	n, err := p.server.replay(r.Context(), e, ids)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	http.Redirect(w, r, fmt.Sprintf("/runs/%s?replayed=%d#dead-letters", e.Run.RunID, n), http.StatusSeeOther)
}

func (p *pages) schedules(w http.ResponseWriter, r *http.Request) {
	b, err := p.render("schedules", p.view("Schedules", "schedules", p.server.plans.plans(p.server.now())))
	p.send(w, r, b, err)
}

// reportRow is one job in one day's or week's report.
type reportRow struct {
	Job  string
	What job
	JobSummary
	Failures int64
}

type reportView struct {
	Summary
	Rows []reportRow
}

func (p *pages) reports(w http.ResponseWriter, r *http.Request) {
	var all []reportView
	for _, s := range p.server.reports.all() {
		v := reportView{Summary: s}
		for _, name := range slices.Sorted(maps.Keys(s.Jobs)) {
			j, _ := jobNamed(name)
			v.Rows = append(v.Rows, reportRow{Job: name, What: j, JobSummary: s.Jobs[name], Failures: total(s.Jobs[name].HTTP.Failures)})
		}
		all = append(all, v)
	}
	b, err := p.render("reports", p.view("Reports", "reports", all))
	p.send(w, r, b, err)
}

// Good is the row's count of what came out well.
func (r reportRow) Good() string {
	if r.What.done == "" {
		return "–"
	}
	return grouped(r.Counts[r.What.done]) + " " + words(r.What.done)
}

// States are the row's runs in words.
func (r reportRow) States() string {
	var out []string
	for _, state := range slices.Sorted(maps.Keys(r.Runs)) {
		out = append(out, fmt.Sprintf("%d %s", r.Runs[state], state))
	}
	return strings.Join(out, ", ")
}

// Letters is how many dead letters there were.
func (r reportRow) Letters() int64 { return total(r.DeadLetters) }

// took writes seconds for a person.
func took(s float64) string {
	d := time.Duration(s * float64(time.Second))
	return d.Round(cmp.Or(map[bool]time.Duration{true: 100 * time.Millisecond}[d < time.Minute], time.Second)).String()
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string { return english.Sprintf("%d", n) }

var english = message.NewPrinter(language.English)

// size writes bytes in the unit that suits them.
func size(n int64) string {
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
