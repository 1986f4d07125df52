package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// schedulesPage is the data of the page of schedules.
type schedulesPage struct {
	Schedules []scheduleView
	Jobs      jobList
}

// Dated reports whether the schedule's runs can have a date.
func (p schedulesPage) Dated(name string) bool {
	j, _ := p.Jobs.named(name)
	return j.dateField() != ""
}

// Paused reports whether the schedule has no ticks at this time.
func (p *plan) Paused() bool { return p.kept.Paused }

// FileText is the file's definition, where another one counts.
func (p *plan) FileText() string {
	if p.Source() != "page_over_file" {
		return ""
	}
	return p.file.summary()
}

// Filling reports whether a backfill is at work.
func (v scheduleView) Filling() bool { return v.Backfill != nil && v.Backfill.State == "working" }

// New is the definition that the form for a new schedule shows.
func (p schedulesPage) New() *Schedule { return &Schedule{} }

// OptionLines are the options as lines of YAML.
func (s *Schedule) OptionLines() string {
	return strings.ReplaceAll(strings.Trim(optionsText(s.Options), "{}"), ", ", "\n")
}

func (p *pages) scheduleRoutes() []route {
	s := p.server
	return []route{
		{"GET /schedules", p.schedules},
		{"POST /schedules", p.defineSchedule},
		{"POST /schedules/{name}/pause", p.changeSchedule(s.pauseSchedule(true))},
		{"POST /schedules/{name}/resume", p.changeSchedule(s.pauseSchedule(false))},
		{"GET /schedules/{name}/remove", p.confirmRemove},
		{"POST /schedules/{name}/remove", p.changeSchedule(s.scheduler.remove)},
		{"POST /schedules/{name}/backfill/cancel", p.changeSchedule(s.scheduler.cancelBackfill)},
		{"POST /schedules/{name}/backfill", p.backfillSchedule},
		{"POST /schedules/{name}/run", p.runSchedule},
		{"GET /audit", p.auditLines},
	}
}

func (p *pages) schedules(w http.ResponseWriter, r *http.Request) {
	views, err := p.server.scheduleViews(r.Context())
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	b, err := p.render("schedules", p.view(r, "Schedules", "schedules", schedulesPage{views, p.server.jobs.started()}))
	p.send(w, r, b, err)
}

// done answers a form: with the page to go to, or with what is wrong.
func (p *pages) done(w http.ResponseWriter, r *http.Request, to string, err error) {
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (p *pages) changeSchedule(change func(ctx context.Context, name, who string, now time.Time) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.done(w, r, "/schedules", change(r.Context(), r.PathValue("name"), p.server.who(r), p.server.now()))
	}
}

// confirmRemove asks before a schedule, or what was changed of it, is removed.
func (p *pages) confirmRemove(w http.ResponseWriter, r *http.Request) {
	views, err := p.server.scheduleViews(r.Context())
	name := r.PathValue("name")
	i := slices.IndexFunc(views, func(v scheduleView) bool { return v.Name == name })
	switch {
	case err != nil:
	case i < 0:
		err = errNoSchedule
	case views[i].Source() == "file":
		err = errInFile
	}
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	c := confirmation{Title: "Remove schedule " + name + "?", Button: "Remove the schedule", Danger: true, Action: "/schedules/" + name + "/remove", Back: "/schedules",
		Text: "No run starts by it any more. Its runs and its ticks stay."}
	if text := views[i].FileText(); text != "" {
		c.Title, c.Button, c.Text = "Back to the file’s "+name+"?", "Use the file’s schedule", "What was changed here is dropped. The file says: "+text
	}
	p.confirm(w, r, "schedules", c)
}

func (p *pages) defineSchedule(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, formError(err))
		return
	}
	get := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	def := Schedule{Name: get("name"), Job: get("job"), Cron: get("cron"), TimeZone: get("timezone")}
	var err error
	if text := r.PostForm.Get("options"); strings.TrimSpace(text) != "" {
		if yerr := yamltext.Strict([]byte(text), &def.Options); yerr != nil {
			err = refuse("options: write one in each line, such as country: sg")
		}
	}
	if err == nil && get("new") != "" && slices.ContainsFunc(p.server.scheduler.all(), func(there plan) bool { return there.Name == def.Name }) {
		err = conflict("there is a schedule %s already; edit that one, or choose another name", def.Name)
	}
	if err == nil {
		err = p.server.scheduler.define(r.Context(), def, p.server.who(r), p.server.now())
	}
	p.done(w, r, "/schedules", err)
}

func (p *pages) backfillSchedule(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, formError(err))
		return
	}
	p.done(w, r, "/schedules", p.server.scheduler.backfill(r.Context(), r.PathValue("name"), r.PostForm.Get("from"), r.PostForm.Get("to"), p.server.who(r), p.server.now()))
}

func (p *pages) runSchedule(w http.ResponseWriter, r *http.Request) {
	id, err := p.server.runSchedule(r.Context(), r.PathValue("name"))
	p.done(w, r, "/runs/"+id, err)
}
