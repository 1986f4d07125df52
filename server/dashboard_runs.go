package server

import (
	"html/template"
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

func (p *pages) runViews() []view {
	return []view{
		{At: "GET /{$}", Template: "front", Section: "front", Title: "Overview", Data: p.front},
		{At: "GET /start", Template: "start", Section: "front", Title: "Start a run", Still: true, Data: p.startForms},
		{At: "GET /runs", Template: "runs", Section: "runs", Title: "Runs", Data: p.runs},
		{At: "GET /runs/{id}", Template: "run", Section: "runs", Data: p.run},
		{At: "GET /runs/{id}/log", Template: "log", Section: "runs", Data: p.log},
		{At: "GET /reports", Template: "reports", Section: "reports", Title: "Reports", Data: p.reports},
	}
}

// runs is the list of runs.
func (p *pages) runs(c *call) (any, error) {
	f, err := readRunFilter(c.in, p.server.jobs.started())
	c.key = f.URL(f.Before)
	return func() (any, error) { return p.runsPage(f), nil }, err
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
