package face

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
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
	Schedule   string         `json:"schedule,omitempty"`
	StartedBy  string         `json:"started_by,omitempty"`
}

// runDetail is a run with its report.
type runDetail struct {
	ledger.Report
	State string `json:"state"` // as in runRow
}

func rowOf(e *runs.Entry) runRow {
	r := runRow{RunID: e.Run.RunID, Job: e.Run.Job, Runner: e.Run.Runner, State: e.State(), StartedAt: e.Run.StartedAt, Options: e.Run.Options,
		Duration: e.Report.Duration, Error: e.Error(), Schedule: e.Run.Schedule, StartedBy: e.Run.StartedBy}
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

// runRows are about runs.
type runRows struct{ *Face }

func (f runRows) rows() ([]action, []view) {
	const one, noRun, over = "/api/v1/runs/{id}", "404 NoRun", "404 NoRun, 409 Over"
	const stored = "202 Controlled The request is stored; the run's workers read it every two seconds."
	limit := option.Option{Name: "limit", Kind: option.Number, Default: strconv.Itoa(defaultLimit)}
	actions := []action{
		{At: "GET /api/v1/runs", ID: "listRuns", About: "The newest 1,000 runs, newest first, by pages",
			In:  append(runs.FilterParameters(f.Jobs.Started()), *limit.Range(1, maxLimit)),
			Out: "200 Runs The runs.", Do: f.list},
		{At: "GET " + one, ID: "showRun", About: "One run: live counters, lanes and, after its end, its report", Out: "200 Report The run.",
			Fails: noRun, Do: f.ofRun(f.report)},
		{At: "GET " + one + "/log", Do: f.ofRun(f.logText)},
		{At: "POST " + one + "/cancel", ID: "cancelRun",
			About: "Cancel a run: it begins nothing new, finishes what is in flight, and writes its report",
			Out:   stored, Fails: over, Do: f.control(ledger.ActionCancel, "run_cancel"), Form: "/runs/{id}/cancel", Next: "/runs/{id}",
			Confirm: f.ofRun(f.confirmCancel)},
		{At: "POST " + one + "/pause", ID: "pauseRun", About: "Pause a run: it begins nothing new until it is resumed",
			Out: stored, Fails: over, Do: f.control(ledger.ActionPause, "run_pause"), Form: "/runs/{id}/pause", Next: "/runs/{id}"},
		{At: "POST " + one + "/resume", ID: "resumeRun", About: "Resume a paused run",
			Out: stored, Fails: over, Do: f.control(ledger.ActionRun, "run_resume"), Form: "/runs/{id}/resume", Next: "/runs/{id}"},
		{Form: "/runs", Do: f.startForm, Redo: f.startAgain},
		{Form: "/runs/{id}/again", Do: f.ofRun(f.again)},
	}
	for _, j := range f.Jobs.Started() {
		actions = append(actions, action{At: "POST " + j.Path, tag: "trigger",
			ID:    cmp.Or(j.Operation, "start"+strings.TrimSuffix(j.Request(), "Request")),
			About: "Start a run of the " + j.Name + " job", Body: j.Request(), In: j.Fields(), Raw: true, Example: j.ExampleBody(),
			Out: "202 Started The run is being started.", Fails: "409 Active",
			Do: func(c *call) (any, error) {
				flags, err := j.Flags(c.body)
				if err != nil {
					return nil, err
				}
				return f.startFor(c, ledger.Run{Job: j.Name}, flags, "http")
			}})
	}
	return grouped("runs", "runs", actions...), []view{
		{At: "GET /{$}", Template: "front", Section: "front", Title: "Overview", Data: f.front},
		{At: "GET /start", Template: "start", Section: "start", Title: startTitle, Still: true, Data: f.startForms},
		{At: "GET /runs", Template: "runs", Section: "runs", Title: "Runs", Data: f.listPage},
		{At: "GET /runs/{id}", Template: "run", Section: "runs", Data: f.ofRun(f.page)},
		{At: "GET /runs/{id}/log", Template: "log", Section: "runs", Data: f.ofRun(f.log)},
		{At: "GET /reports", Template: "reports", Section: "reports", Title: "Reports", Data: f.reports},
	}
}

var errNoRun = known.Answer(http.StatusNotFound, "there is no such run; GET /api/v1/runs lists them")

// ofRun does something with the run that the path names.
func (f *Face) ofRun(do func(*call, *runs.Entry) (any, error)) doing {
	return func(c *call) (any, error) {
		id := c.PathValue("id")
		if !ledger.IsName(id) {
			return nil, errNoRun
		}
		e, err := f.Board.Find(c.Context(), id, f.Now())
		if errors.Is(err, store.ErrNotExist) {
			err = errNoRun
		}
		if err != nil {
			return nil, err
		}
		return do(c, e)
	}
}

type startResponse struct {
	RunID string `json:"run_id"`
}

// startFor starts a run for the sender of a request. It does not end with the request.
func (f *Face) startFor(c *call, run ledger.Run, flags []string, by string) (any, error) {
	if c.form {
		run.StartedBy = ledger.Person
	}
	id, err := f.Start(context.WithoutCancel(c.Context()), run, flags, by)
	c.next = "/runs/" + id
	c.head.Set("Location", "/api/v1/runs/"+id)
	return startResponse{id}, err
}

func (f runRows) list(c *call) (any, error) {
	filter, err := runs.ReadFilter(c.in, f.Jobs.Started())
	limit, _ := strconv.Atoi(cmp.Or(c.in.Get("limit"), strconv.Itoa(defaultLimit))) // it is checked
	list := runList{Runs: []runRow{}}
	found, more := filter.Page(f.Board.Runs(), limit)
	for _, e := range found {
		list.Runs = append(list.Runs, rowOf(e))
	}
	if more {
		list.Next = found[limit-1].Run.RunID
	}
	return list, err
}

func (f runRows) report(c *call, e *runs.Entry) (any, error) {
	page := runDetail{e.Report, e.State()}
	page.Error = e.Error()
	logs, err := ledger.ReadLogs(c.Context(), f.Store, e.Run.RunID)
	page.Workers = ledger.Warnings(logs)
	return page, err
}

func (f runRows) logText(c *call, e *runs.Entry) (any, error) {
	b, err := ledger.ReadLog(c.Context(), f.Store, e.Run.RunID)
	if errors.Is(err, store.ErrNotExist) {
		err = known.Answer(http.StatusNotFound,
			"this run has no log: it ended before it logged anything, or its log was removed because of its age")
	}
	return b, err
}

type controlResponse struct {
	RunID  string `json:"run_id"`
	Action string `json:"action"`
}

// control pauses, resumes or cancels a run. Its workers read the control object
// every two seconds.
func (f runRows) control(action ledger.Action, name string) doing {
	return f.ofRun(func(c *call, e *runs.Entry) (any, error) {
		if !e.Active() {
			return nil, isOver(e, e.State())
		}
		ctx, id := c.Context(), e.Run.RunID
		if err := f.Guard.Note(ctx, name, id, ""); err != nil {
			return nil, err
		}
		err := ledger.WriteControl(ctx, f.Store, id, ledger.Control{Action: action, At: f.Now(), By: "server"})
		if errors.Is(err, ledger.ErrCancelled) {
			err = isOver(e, "it was cancelled")
		}
		if err != nil {
			return nil, err
		}
		f.Log.Info("run_asked", "run_id", id, "action", action)
		return controlResponse{id, string(action)}, f.Board.RefreshRun(ctx, e, f.Now())
	})
}

// isOver says that a run is over and cannot be controlled.
func isOver(e *runs.Entry, state string) error {
	return &known.AnswerError{Code: http.StatusConflict, Message: "run " + e.Run.RunID + " is over (" + state + ")", RunID: e.Run.RunID}
}

// confirmCancel asks before a run is cancelled.
func (f runRows) confirmCancel(_ *call, e *runs.Entry) (any, error) {
	if !e.Active() {
		return nil, isOver(e, e.State())
	}
	return confirmation{Title: "Cancel run " + e.Run.RunID + "?", Button: "Cancel the run", Danger: true, Back: "/runs/" + e.Run.RunID,
		Text: "A cancelled run cannot be resumed. What it has stored stays, and the next run of " + e.Run.Job + " does the rest. " +
			"To continue it later, pause it instead."}, nil
}

// again starts a run with the options of another one.
func (f runRows) again(c *call, e *runs.Entry) (any, error) {
	a := f.Runner.AgainOf(e, f.RunFlags[e.Run.Job])
	if a == nil {
		return nil, known.Refuse("only the command line starts a run of this job")
	}
	return f.startFor(c, ledger.Run{Job: e.Job.Name}, a.Flags, "dashboard")
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

// listPage is the list of runs.
func (f runRows) listPage(c *call) (any, error) {
	filter, err := runs.ReadFilter(c.in, f.Jobs.Started())
	c.key = filter.URL(filter.Before)
	return later(func(context.Context) (any, error) {
		v := runsPage{Filter: filter, Jobs: f.Jobs.Started().Names(), States: runs.States}
		var more bool
		if v.Runs, more = filter.Page(f.Board.Runs(), perPage); more {
			v.Older = filter.URL(v.Runs[perPage-1].Run.RunID)
		}
		v.chart()
		return v, nil
	}), err
}

// chart draws the page's runs that are over.
func (v *runsPage) chart() {
	over := slices.DeleteFunc(slices.Clone(v.Runs), func(e *runs.Entry) bool { return e.Active() || e.Broken })
	over = over[:min(len(over), maxCharted)]
	slices.Reverse(over)
	var work, answers, fails []runs.Column
	for _, e := range over {
		at := e.Run.StartedAt
		work = append(work, runs.Column{At: at, Parts: []runs.Part{{Class: "good", V: e.PerSecond()}}})
		r := e.Report
		answers = append(answers, runs.Column{At: at, Parts: []runs.Part{{Class: "good", V: float64(r.HTTP.Class('2'))}, {Class: "calm",
			V: float64(r.HTTP.Class('3'))},
			{Class: "warn", V: float64(r.HTTP.Class('4'))}, {Class: "bad", V: float64(r.HTTP.Class('5'))}}})
		fails = append(fails, runs.Column{At: at, Parts: []runs.Part{{Class: "bad", V: float64(r.HTTP.Unanswered())}}})
	}
	v.Charted = len(over)
	v.Work = runs.ColumnChart("Requests a second", work)
	v.Answers = runs.ColumnChart("Answers by status", answers)
	v.Fails = runs.ColumnChart("Failed requests", fails)
}
