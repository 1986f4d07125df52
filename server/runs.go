package server

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

// runRow is a run in the list.
type runRow struct {
	RunID      string         `json:"run_id"`
	Job        string         `json:"job"`
	Runner     string         `json:"runner"`
	State      string         `json:"state"`
	StartedAt  time.Time      `json:"started_at"`
	FinishedAt *time.Time     `json:"finished_at"`
	Duration   float64        `json:"duration_s"`
	Error      string         `json:"error,omitempty"`
	Options    map[string]any `json:"options"`
}

// runDetail is a run with its report.
type runDetail struct {
	ledger.Report
	State string `json:"state"` // as in runRow
}

func rowOf(e *runs.Entry) runRow {
	r := runRow{RunID: e.Run.RunID, Job: e.Run.Job, Runner: e.Run.Runner, State: e.State(), StartedAt: e.Run.StartedAt, Options: e.Run.Options,
		Duration: e.Report.Duration, Error: e.Error()}
	if !e.Run.FinishedAt.IsZero() {
		r.FinishedAt = &e.Run.FinishedAt
	}
	if r.Options == nil {
		r.Options = map[string]any{}
	}
	return r
}

type runList struct {
	Runs []runRow `json:"runs"`
	Next string   `json:"next,omitempty"` // the parameter before of the next page
}

const defaultLimit, maxLimit = 50, 1000

// runActions are what can be asked about runs.
func (s *Server) runActions() []action {
	const one, noRun, over = "/api/v1/runs/{id}", "404 NoRun", "404 NoRun, 409 Over"
	const stored = "202 Controlled The request is stored; the run's workers read it every two seconds."
	limit := option.Option{Name: "limit", Kind: option.Number, Default: strconv.Itoa(defaultLimit)}
	rows := []action{
		{At: "GET /api/v1/runs", ID: "listRuns", About: "The newest 1,000 runs, newest first, by pages",
			In: append(runs.FilterParameters(s.jobs.Started()), *limit.Range(1, maxLimit)), Out: "200 Runs The runs.", Do: s.listRuns},
		{At: "GET " + one, ID: "showRun", About: "One run: live counters, lanes and, after its end, its report", Out: "200 Report The run.",
			Fails: noRun, Do: s.showRun},
		{At: "GET " + one + "/log", Do: s.runLog},
		{At: "POST " + one + "/cancel", ID: "cancelRun",
			About: "Cancel a run: it begins nothing new, finishes what is in flight, and writes its report",
			Out:   stored, Fails: over, Do: s.control(ledger.ActionCancel), Form: "/runs/{id}/cancel", Next: "/runs/{id}", Confirm: s.confirmCancel},
		{At: "POST " + one + "/pause", ID: "pauseRun", About: "Pause a run: it begins nothing new until it is resumed",
			Out: stored, Fails: over, Do: s.control(ledger.ActionPause), Form: "/runs/{id}/pause", Next: "/runs/{id}"},
		{At: "POST " + one + "/resume", ID: "resumeRun", About: "Resume a paused run",
			Out: stored, Fails: over, Do: s.control(ledger.ActionRun), Form: "/runs/{id}/resume", Next: "/runs/{id}"},
		{Form: "/runs", Do: s.startForm},
		{Form: "/runs/{id}/again", Do: s.runAgain},
	}
	for _, j := range s.jobs.Started() {
		rows = append(rows, action{At: "POST " + j.Path, ID: cmp.Or(j.Operation, "start"+strings.TrimSuffix(j.Request(), "Request")),
			tag:   "trigger",
			About: "Start a run of the " + j.Name + " job", Body: j.Request(), In: j.Fields(), Raw: true, Example: j.ExampleBody(),
			Out: "202 Started The run is being started.", Fails: "409 Active",
			Do: func(c *call) (any, error) {
				flags, err := j.Flags(c.body)
				if err != nil {
					return nil, err
				}
				return s.startFor(c, j, flags, "http")
			}})
	}
	return grouped("runs", "runs", rows...)
}

// startFor starts a run for the sender of a request.
func (s *Server) startFor(c *call, j known.Job, flags []string, by string) (startResponse, error) {
	id, err := s.startNow(c.Context(), j.Name, flags, by)
	return c.started(id), err
}

// started is the answer about a run that is being started.
func (c *call) started(id string) startResponse {
	c.next = "/runs/" + id
	c.head.Set("Location", "/api/v1/runs/"+id)
	return startResponse{id}
}

func (s *Server) listRuns(c *call) (any, error) {
	f, err := runs.ReadFilter(c.in, s.jobs.Started())
	limit, _ := strconv.Atoi(cmp.Or(c.in.Get("limit"), strconv.Itoa(defaultLimit))) // it is checked
	list := runList{Runs: []runRow{}}
	found, more := f.Page(s.board.Runs(), limit)
	for _, e := range found {
		list.Runs = append(list.Runs, rowOf(e))
	}
	if more {
		list.Next = found[limit-1].Run.RunID
	}
	return list, err
}

// run finds the run that the path names.
func (s *Server) run(r *http.Request) (*runs.Entry, error) {
	id := r.PathValue("id")
	if !ledger.IsName(id) {
		return nil, errNoRun
	}
	e, err := s.board.Find(r.Context(), id, s.now())
	if errors.Is(err, store.ErrNotExist) {
		return nil, errNoRun
	}
	return e, err
}

func (s *Server) showRun(c *call) (any, error) {
	e, err := s.run(c.Request)
	if err != nil {
		return nil, err
	}
	page := runDetail{e.Report, e.State()}
	page.Error = e.Error()
	page.Workers, err = ledger.ReadWorkers(c.Context(), s.store, e.Run.RunID)
	return page, err
}

var errNoLog = &known.AnswerError{Code: http.StatusNotFound,
	Message: "this run has no log: it ended before it logged anything, or its log was removed because of its age"}

func (s *Server) runLog(c *call) (any, error) {
	e, err := s.run(c.Request)
	if err != nil {
		return nil, err
	}
	b, err := ledger.ReadLog(c.Context(), s.store, e.Run.RunID)
	if errors.Is(err, store.ErrNotExist) {
		err = errNoLog
	}
	return b, err
}

type controlResponse struct {
	RunID  string `json:"run_id"`
	Action string `json:"action"`
}

// control pauses, resumes or cancels a run. Its workers read the control object
// every two seconds.
func (s *Server) control(action ledger.Action) func(*call) (any, error) {
	return func(c *call) (any, error) {
		e, err := s.run(c.Request)
		if err == nil {
			err = s.setControl(c.Context(), e, action)
		}
		if err != nil {
			return nil, err
		}
		return controlResponse{e.Run.RunID, string(action)}, nil
	}
}

// overError says that a run is over and cannot be controlled.
type overError struct{ runID, state string }

func (e *overError) OfRun() string { return e.runID }
func (e *overError) Error() string { return "run " + e.runID + " is over (" + e.state + ")" }

func (s *Server) setControl(ctx context.Context, e *runs.Entry, action ledger.Action) error {
	if !e.Active() {
		return &overError{e.Run.RunID, e.State()}
	}
	name := map[ledger.Action]string{ledger.ActionRun: "run_resume", ledger.ActionPause: "run_pause",
		ledger.ActionCancel: "run_cancel"}[action]
	if err := s.audited(ctx, name, e.Run.RunID, ""); err != nil {
		return err
	}
	err := ledger.WriteControl(ctx, s.store, e.Run.RunID, ledger.Control{Action: action, At: s.now(), By: "server"})
	if errors.Is(err, ledger.ErrCancelled) {
		return &overError{e.Run.RunID, "it was cancelled"}
	}
	if err != nil {
		return err
	}
	s.log.Info("run_asked", "run_id", e.Run.RunID, "action", action)
	return s.board.RefreshRun(ctx, e, s.now())
}

// confirmCancel asks before a run is cancelled.
func (s *Server) confirmCancel(c *call) (confirmation, error) {
	e, err := s.run(c.Request)
	if err == nil && !e.Active() {
		err = &overError{e.Run.RunID, e.State()}
	}
	if err != nil {
		return confirmation{}, err
	}
	return confirmation{Title: "Cancel run " + e.Run.RunID + "?", Button: "Cancel the run", Danger: true, Back: "/runs/" + e.Run.RunID,
		Text: "A cancelled run cannot be resumed. What it has stored stays, and the next run of " + e.Run.Job + " does the rest. " +
			"To continue it later, pause it instead."}, nil
}

// startForm starts a run from the form of a job.
func (s *Server) startForm(c *call) (any, error) {
	j, ok := s.jobs.Started().Named(c.in.Get("job"))
	if !ok {
		return nil, known.Refuse("there is no such job")
	}
	flags, err := j.FlagsOf(formValues(c.in, j))
	if err != nil {
		return nil, err
	}
	return s.startFor(c, j, flags, "dashboard")
}

// runAgain starts a run with the options of another one.
func (s *Server) runAgain(c *call) (any, error) {
	e, err := s.run(c.Request)
	if err != nil {
		return nil, err
	}
	a := s.runner.AgainOf(e, s.config.runFlags[e.Run.Job])
	if a == nil {
		return nil, known.Refuse("only the command line starts a run of this job")
	}
	return s.startFor(c, e.Job, a.Flags, "dashboard")
}

// runsPage is the data of the list of runs.
type runsPage struct {
	runs.Filter
	Jobs    []string
	States  []string
	Runs    []*runs.Entry
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
	f, err := runs.ReadFilter(c.in, p.server.jobs.Started())
	c.key = f.URL(f.Before)
	return func() (any, error) { return p.runsPage(f), nil }, err
}

func (p *pages) runsPage(f runs.Filter) runsPage {
	v := runsPage{Filter: f, Jobs: p.server.jobs.Started().Names(), States: runs.States}
	var more bool
	if v.Runs, more = f.Page(p.server.board.Runs(), perPage); more {
		v.Older = f.URL(v.Runs[perPage-1].Run.RunID)
	}
	v.chart()
	return v
}

// chart draws the page's runs that are over.
func (v *runsPage) chart() {
	over := slices.DeleteFunc(slices.Clone(v.Runs), func(e *runs.Entry) bool { return e.Active() || e.Broken })
	over = over[:min(len(over), maxCharted)]
	slices.Reverse(over)
	var work, answers, fails []runs.Column
	for _, e := range over {
		label := e.Run.StartedAt.UTC().Format("01-02 15:04")
		work = append(work, runs.Column{Label: label, Parts: []runs.Part{{Class: "good", V: e.PerSecond()}}})
		r := e.Report
		answers = append(answers, runs.Column{Label: label, Parts: []runs.Part{{Class: "good", V: float64(r.HTTP.Class('2'))}, {Class: "calm",
			V: float64(r.HTTP.Class('3'))},
			{Class: "warn", V: float64(r.HTTP.Class('4'))}, {Class: "bad", V: float64(r.HTTP.Class('5'))}}})
		fails = append(fails, runs.Column{Label: label, Parts: []runs.Part{{Class: "bad", V: float64(r.HTTP.Unanswered())}}})
	}
	v.Charted = len(over)
	v.Work = runs.ColumnChart("Requests a second", work)
	v.Answers = runs.ColumnChart("Answers by status", answers)
	v.Fails = runs.ColumnChart("Failed requests", fails)
}

// startPage is the data of the page that starts runs.
type startPage struct {
	Forms []jobForm
	Jobs  []string
	Job   string // the one whose form alone is shown
}

// jobForm is the form that starts a run of a job.
type jobForm struct {
	known.Job
	Busy   string // the id of its active run
	Values url.Values
}

// Value is a field's value that the URL gives, so that a link can fill in the form.
func (f jobForm) Value(name string) string { return f.Values.Get(name) }

// startForms are the forms of all jobs, or of the one in the URL.
func (p *pages) startForms(c *call) (any, error) {
	started := p.server.jobs.Started()
	v := startPage{Jobs: started.Names(), Job: c.in.Get("job")}
	if _, ok := started.Named(v.Job); v.Job != "" && !ok {
		return nil, known.Refuse("job: use %s", started.Or())
	}
	busy := map[string]string{}
	for _, e := range p.server.board.Runs() {
		if e.Active() {
			busy[e.Run.Job] = e.Run.RunID
		}
	}
	for _, j := range started {
		f := jobForm{Job: j, Busy: busy[j.Name]}
		if v.Job == j.Name {
			f.Values = c.in
		}
		if v.Job == "" || v.Job == j.Name {
			v.Forms = append(v.Forms, f)
		}
	}
	return v, nil
}
