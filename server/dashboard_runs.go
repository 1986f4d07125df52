package server

import (
	"html/template"
	"net/http"
	"slices"
)

// runsPage is the data of the list of runs.
type runsPage struct {
	runFilter
	Jobs    []string
	States  []string
	Runs    []*entry
	Older   string // URL of the next page
	Work    template.HTML
	Answers template.HTML
	Fails   template.HTML
	Charted int // runs in the charts
}

const (
	perPage    = 50
	maxCharted = 30
)

// runs is the list of runs.
func (p *pages) runs(w http.ResponseWriter, r *http.Request) {
	f, err := readRunFilter(r.URL.Query(), p.server.jobs.started())
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	b, err := p.renderShared(r, f.URL(f.Before), func() ([]byte, error) {
		return p.render("runs", p.view(r, "Runs", "runs", p.runsPage(f)))
	})
	p.send(w, r, b, err)
}

func (p *pages) runsPage(f runFilter) runsPage {
	v := runsPage{runFilter: f, Jobs: p.server.jobs.started().names(), States: runStates}
	var more bool
	if v.Runs, more = f.page(p.server.board.runs(), perPage); more {
		v.Older = f.URL(v.Runs[perPage-1].Run.RunID)
	}
	v.chart()
	return v
}

// chart draws the page's runs that are over.
func (v *runsPage) chart() {
	over := slices.DeleteFunc(slices.Clone(v.Runs), func(e *entry) bool { return e.Active() || e.Broken })
	over = over[:min(len(over), maxCharted)]
	slices.Reverse(over)
	var work, answers, fails []column
	for _, e := range over {
		label := e.Run.StartedAt.UTC().Format("01-02 15:04")
		work = append(work, column{label, []part{{"good", e.PerSecond()}}})
		r := e.Report
		answers = append(answers, column{label, []part{{"good", float64(r.HTTP.Class('2'))}, {"calm", float64(r.HTTP.Class('3'))},
			{"warn", float64(r.HTTP.Class('4'))}, {"bad", float64(r.HTTP.Class('5'))}}})
		fails = append(fails, column{label, []part{{"bad", float64(r.HTTP.Unanswered())}}})
	}
	v.Charted = len(over)
	v.Work = columnChart("Requests a second", work)
	v.Answers = columnChart("Answers by status", answers)
	v.Fails = columnChart("Failed requests", fails)
}
