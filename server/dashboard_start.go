package server

import (
	"context"
	"net/http"
	"net/url"
)

// startPage is the data of the page that starts runs.
type startPage struct {
	Forms []jobForm
	Jobs  []string
	Job   string // the one whose form alone is shown
}

// jobForm is the form that starts a run of a job.
type jobForm struct {
	job
	Busy   string // the id of its active run
	Values url.Values
}

// Value is a field's value that the URL gives, so that a link can fill in the form.
func (f jobForm) Value(name string) string { return f.Values.Get(name) }

// startForms is the page with the forms of all jobs, or of the one in the URL.
func (p *pages) startForms(w http.ResponseWriter, r *http.Request) {
	q, started := r.URL.Query(), p.server.jobs.started()
	v := startPage{Jobs: started.names(), Job: q.Get("job")}
	if _, ok := started.named(v.Job); v.Job != "" && !ok {
		p.server.fail(w, r, refuse("job: use %s", started.or()))
		return
	}
	busy := map[string]string{}
	for _, e := range p.server.board.runs() {
		if e.Active() {
			busy[e.Run.Job] = e.Run.RunID
		}
	}
	for _, j := range started {
		f := jobForm{job: j, Busy: busy[j.Name]}
		if v.Job == j.Name {
			f.Values = q
		}
		if v.Job == "" || v.Job == j.Name {
			v.Forms = append(v.Forms, f)
		}
	}
	page := p.view(r, "Start a run", "front", v)
	page.Live = false // it would empty a form that somebody fills in
	b, err := p.render("start", page)
	p.send(w, r, b, err)
}

// start starts a run from the form of a job.
func (p *pages) start(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, formError(err))
		return
	}
	j, ok := p.server.jobs.started().named(r.PostForm.Get("job"))
	if !ok {
		p.server.fail(w, r, refuse("there is no such job"))
		return
	}
	flags, err := j.flagsOf(formValues(r.PostForm, j))
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
