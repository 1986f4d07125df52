package face

import (
	"context"
	"fmt"
	"html/template"
	"maps"
	"slices"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

// runView is the data of a run's page.
type runView struct {
	*runs.Entry
	Stages    []runs.StageView
	Hosts     int64
	HostsDone int64
	Share     float64 // percent
	Progress  template.HTML
	Requests  template.HTML
	Failing   template.HTML
	Counts    []runs.Bar
	Statuses  []runs.Bar
	Failures  []runs.FailureGroup
	Open      deadLetterList
	Providers table
	Differ    []runs.Setting
	Others    []runs.Setting
	Again     *runs.Again
	Workers   []runs.WorkerRow
	Warnings  []runs.WarningKind
	Tail      runs.LogView
	Replayed  string
	Told      []string // what is wrong, for the person who started the run
	May       bool     // the person may change something
}

// table is a job's own rows, one a provider.
type table struct {
	Head []string
	Rows [][]cell
}

type cell struct {
	Text   string
	Number bool
}

// english prints numbers with commas.
var english = message.NewPrinter(language.English)

// firstColumns come first in a table; the others follow in alphabetical order.
var firstColumns = []string{"provider", "site", "name", "state", "reason", "total_pages", "new", "updated", "unchanged", "deleted",
	"failed", "requests"}

// providers makes a table of a report's rows, with the columns that have single values.
func providers(r ledger.Report) table {
	rows := ledger.Rows[map[string]any](r)
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

func (f runRows) page(c *call, e *runs.Entry) (any, error) {
	c.Title, c.Live = "Run "+e.Run.RunID, e.Active()
	if e.Active() && c.URL.RawQuery == "" { // pages that reload
		c.key = "run " + e.Run.RunID
	}
	return later(func(ctx context.Context) (any, error) {
		v, err := f.runView(ctx, e)
		v.May, v.Replayed = c.May, c.in.Get("replayed")
		return v, err
	}), nil
}

func (f runRows) runView(ctx context.Context, e *runs.Entry) (runView, error) {
	v := runView{Entry: e}
	v.Hosts, v.HostsDone = e.Report.Count(ledger.LaneHosts), e.Report.Count(ledger.LaneHostsDone)
	v.Share = 100 * float64(v.HostsDone) / float64(max(v.Hosts, 1))
	chart := func(title, what, class string, of func(runs.Sample) int64) template.HTML {
		return runs.LineChart(title+" a second", what+" a second", class, runs.Rates(e.Samples, of))
	}
	v.Progress = chart("Hosts done", "hosts", "good", func(s runs.Sample) int64 { return s.Done })
	v.Requests = chart("Requests", "requests", "calm", func(s runs.Sample) int64 { return s.Requests })
	v.Failing = chart("Failed requests", "failures", "bad", func(s runs.Sample) int64 { return s.Failures })
	r := e.Report
	v.Told = f.Alarm.Told(e)
	v.Statuses = runs.Bars(r.HTTP.ByStatus, runs.StatusClass)
	v.Counts, v.Stages = runs.CountsOf(e.Job, r), runs.StagesOf(e.Job, r)
	v.Differ, v.Others = runs.OptionsOf(e.Job, e.Run)
	v.Again = f.Runner.AgainOf(e, f.RunFlags[e.Run.Job])
	v.Providers = providers(r)
	logs, err := ledger.ReadLogs(ctx, f.Store, e.Run.RunID)
	if err != nil {
		return v, err
	}
	v.Tail = runs.LogOf(e, logs, runs.LogQuery{Most: runs.TailLines})
	if v.Workers, v.Warnings, err = runs.WorkersOf(ctx, f.Store, e, logs, f.Now()); err != nil {
		return v, err
	}
	v.Open, err = letterRows(f).ofRun(ctx, e.Run)
	v.Failures = runs.FailuresOf(r, v.Open.DeadLetters)
	return v, err
}

// DeadLettersText says how many dead letters the run left, and how many are open.
func (v runView) DeadLettersText() string {
	left, open := known.Total(v.Report.DeadLetters), int64(len(v.Open.DeadLetters))
	switch {
	case v.Open.More:
		return fmt.Sprintf("It left %s.", ledger.FormatCount(max(left, open)))
	case open >= left && open > 0:
		return fmt.Sprintf("It left %s, all of them open.", ledger.FormatCount(open))
	case open > 0:
		return fmt.Sprintf("It left %s; %s of them are open, the rest were resolved or dismissed since, or counted twice.",
			ledger.FormatCount(left),
			ledger.FormatCount(open))
	case left > 0:
		return fmt.Sprintf("It left %s; none of them is open any more.", ledger.FormatCount(left))
	}
	return "It left none."
}

// log is the page of a run's log.
func (f runRows) log(c *call, e *runs.Entry) (any, error) {
	q, err := runs.ReadLogQuery(c.in)
	c.Title, c.Live = "Log of run "+e.Run.RunID, e.Active()
	if e.Active() {
		c.key = fmt.Sprintf("log %s %+v", e.Run.RunID, q)
	}
	return later(func(ctx context.Context) (any, error) {
		logs, err := ledger.ReadLogs(ctx, f.Store, e.Run.RunID)
		return runs.LogOf(e, logs, q), err
	}), err
}
