package face

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/server/schedule"
)

// frontPage is the data of the first page: what runs now, what failed and why, what
// comes next, and what is late.
type frontPage struct {
	Now        time.Time
	Active     []*runs.Entry
	Failed     []failedRun
	MoreFailed int    // failed runs that are not shown
	FailedURL  string // the list of runs since yesterday
	Next       []nextTick
	Late       []schedule.View
	Days       []gridDay // newest first
	Rows       []gridRow
	Latest     []*runs.Entry
}

// failedRun is a run that failed or was interrupted.
type failedRun struct {
	*runs.Entry
	Since *runs.Entry // the newest run of the job that was done after it, nil if there is none
}

// nextTick is the next time of a schedule.
type nextTick struct {
	schedule.View
	In string // how long until then
}

// gridDay is a column of the grid.
type gridDay struct{ Date, Label string }

// gridRow is a job in the grid.
type gridRow struct {
	Job   string
	Cells []gridCell
}

// gridCell counts the runs of a job that started on one day.
type gridCell struct {
	URL     string
	Unknown bool // the board does not go back so far
	Parts   []gridPart
}

// gridPart is how many runs have one kind of state.
type gridPart struct {
	Kind string // done, failed, cancelled or active: also the class of style.css
	Sign string
	N    int
}

const (
	gridDays   = 21
	maxFailed  = 10
	shownLater = 5 // of next ticks and of latest runs
)

// front is the first page.
func (f runRows) front(c *call) (any, error) {
	now := f.Now()
	c.key = "front " + now.UTC().Format("2006-01-02 15:04") // what is next, and what is late, depends on the time
	return later(func(context.Context) (any, error) { return f.frontPage(now), nil }), nil
}

func (f runRows) frontPage(now time.Time) frontPage {
	all := f.Board.Runs()
	today := now.UTC().Truncate(24 * time.Hour)
	yesterday := today.AddDate(0, 0, -1)
	v := frontPage{Now: now, Latest: all[:min(len(all), shownLater)],
		FailedURL: runs.Filter{DayRange: runs.DayRange{From: yesterday.Format(time.DateOnly)}}.URL("")}
	done := map[string]*runs.Entry{}
	for _, e := range all {
		switch {
		case e.Active():
			v.Active = append(v.Active, e)
		case e.Run.State == ledger.Done && done[e.Run.Job] == nil:
			done[e.Run.Job] = e
		case e.Unfinished() && !e.Run.FinishedAt.Before(yesterday):
			if len(v.Failed) == maxFailed {
				v.MoreFailed++
				continue
			}
			v.Failed = append(v.Failed, failedRun{e, done[e.Run.Job]})
		}
	}
	for _, s := range f.Scheduler.Views(now) {
		if s.Late() {
			v.Late = append(v.Late, s)
		}
		if !s.Next.IsZero() {
			v.Next = append(v.Next, nextTick{s, until(s.Next.Sub(now))})
		}
	}
	slices.SortStableFunc(v.Next, func(a, b nextTick) int { return a.Next.Compare(b.Next) })
	v.Next = v.Next[:min(len(v.Next), shownLater)]
	v.grid(f.Jobs.Started(), all, today)
	return v
}

// until writes a time to wait, rounded up to minutes.
func until(d time.Duration) string {
	m := int((d + time.Minute - 1) / time.Minute)
	switch {
	case m < 60:
		return fmt.Sprintf("%d min", m)
	case m < 48*60:
		return fmt.Sprintf("%d h %d min", m/60, m%60)
	}
	return fmt.Sprintf("%d days", m/60/24)
}

// grid counts the runs of the last weeks by job and day.
func (f *frontPage) grid(jobs known.Jobs, all []*runs.Entry, today time.Time) {
	from := today.AddDate(0, 0, 1-gridDays)
	counts := map[string]map[string]int{} // by job and day, then by kind
	for _, e := range all {
		if e.Broken || e.Run.StartedAt.Before(from) {
			continue
		}
		key := e.Run.Job + e.Run.StartedAt.UTC().Format(time.DateOnly)
		if counts[key] == nil {
			counts[key] = map[string]int{}
		}
		counts[key][e.Kind()]++
	}
	var oldest time.Time // days before it may have runs that the board does not have
	if len(all) == runs.MaxEntries {
		oldest = all[runs.MaxEntries-1].Run.StartedAt
	}
	for n := range gridDays {
		day := today.AddDate(0, 0, -n)
		f.Days = append(f.Days, gridDay{day.Format(time.DateOnly), day.Format("2 Jan")})
	}
	for _, job := range jobs.Names() {
		row := gridRow{Job: job}
		for n, day := range f.Days {
			c := gridCell{Unknown: today.AddDate(0, 0, -n).Before(oldest)}
			for _, kind := range []string{"active", "failed", "done", "cancelled"} {
				if k := counts[job+day.Date][kind]; k > 0 {
					c.Parts = append(c.Parts, gridPart{kind, signs[kind], k})
				}
			}
			if len(c.Parts) > 0 {
				c.URL = runs.Filter{Job: job, DayRange: runs.DayRange{From: day.Date, To: day.Date}}.URL("")
			}
			row.Cells = append(row.Cells, c)
		}
		f.Rows = append(f.Rows, row)
	}
}

// signs tell the kinds apart without colour.
var signs = map[string]string{"done": "✓", "failed": "✗", "cancelled": "–", "active": "▶"}

// reportRow is one job in one day's or week's report.
type reportRow struct {
	Job  string
	What known.Job
	alarm.JobSummary
	Failures int64
}

type reportView struct {
	alarm.Summary
	Rows []reportRow
}

func (f runRows) reports(*call) (any, error) {
	var all []reportView
	for _, s := range f.Reports.All() {
		v := reportView{Summary: s}
		for _, name := range slices.Sorted(maps.Keys(s.Jobs)) {
			j, _ := f.Jobs.Started().Named(name)
			v.Rows = append(v.Rows, reportRow{Job: name, What: j, JobSummary: s.Jobs[name], Failures: known.Total(s.Jobs[name].HTTP.Failures)})
		}
		all = append(all, v)
	}
	return all, nil
}

// Good is the job's main count, with its name.
func (r reportRow) Good() string {
	if r.What.Done == "" {
		return "–"
	}
	return ledger.FormatCount(r.Counts[r.What.Done]) + " " + known.Words(r.What.Done)
}

// DeadLetterCount is how many dead letters there were.
func (r reportRow) DeadLetterCount() int64 { return known.Total(r.DeadLetters) }
