package server

import "net/url"

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

// startForms are the forms of all jobs, or of the one in the URL.
func (p *pages) startForms(c *call) (any, error) {
	started := p.server.jobs.started()
	v := startPage{Jobs: started.names(), Job: c.in.Get("job")}
	if _, ok := started.named(v.Job); v.Job != "" && !ok {
		return nil, refuse("job: use %s", started.or())
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
			f.Values = c.in
		}
		if v.Job == "" || v.Job == j.Name {
			v.Forms = append(v.Forms, f)
		}
	}
	return v, nil
}
