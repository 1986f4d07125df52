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

// frontPage is the data of the first page: what runs now, what failed and why, and how the schedules do.
type frontPage struct {
	Active      []*runs.Entry
	Failures    []failureGroup
	MoreFailed  int    // failed runs of groups that are not shown
	FailedURL   string // the list of runs since yesterday
	Schedules   []schedule.View
	Unscheduled []unscheduled
	Latest      []*runs.Entry
}

// failureGroup are the failed runs of a job with one message.
type failureGroup struct {
	Job, Text string
	N         int
	Newest    *runs.Entry
	URL       string      // of the run, or of the list of them
	Since     *runs.Entry // the newest run of the job that was done after them, nil if there is none
}

// unscheduled are a job's runs that no schedule started.
type unscheduled struct {
	Job   string
	Strip []stripMark
}

const (
	maxFailed  = 5
	shownLater = 5 // latest runs
)

// front is the first page.
func (f runRows) front(c *call) (any, error) {
	now := f.Now()
	c.key = "front " + now.UTC().Format("2006-01-02 15:04") // what is next, and what is late, depends on the time
	return later(func(context.Context) (any, error) { return f.frontPage(now), nil }), nil
}

func (f runRows) frontPage(now time.Time) frontPage {
	all := f.Board.Runs()
	yesterday := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	v := frontPage{Latest: all[:min(len(all), shownLater)],
		FailedURL: runs.Filter{DayRange: runs.DayRange{From: yesterday.Format(time.DateOnly)}}.URL("")}
	v.Schedules = f.Scheduler.Views(now)
	schedule.History(v.Schedules, all)
	byHand := map[string][]*runs.Entry{}
	for _, e := range all {
		if e.Active() {
			v.Active = append(v.Active, e)
		}
		if e.Run.Schedule == "" && !e.Broken {
			byHand[e.Run.Job] = append(byHand[e.Run.Job], e)
		}
	}
	for _, job := range slices.Sorted(maps.Keys(byHand)) {
		v.Unscheduled = append(v.Unscheduled, unscheduled{job, strip(marksOf(byHand[job]), utc)})
	}
	v.Failures = failuresSince(all, yesterday)
	for _, g := range v.Failures[min(len(v.Failures), maxFailed):] {
		v.MoreFailed += g.N
	}
	v.Failures = v.Failures[:min(len(v.Failures), maxFailed)]
	return v
}

// failuresSince groups the runs that failed since a time by their job and their message, the newest first.
func failuresSince(all []*runs.Entry, since time.Time) (groups []failureGroup) {
	done, at := map[string]*runs.Entry{}, map[string]int{}
	for _, e := range all {
		if e.Run.State == ledger.Done && done[e.Run.Job] == nil {
			done[e.Run.Job] = e
		}
		if !e.Unfinished() || e.Run.FinishedAt.Before(since) {
			continue
		}
		key := e.Run.Job + " " + alarm.SameError(e.Error())
		i, there := at[key]
		if !there {
			i, at[key] = len(groups), len(groups)
			groups = append(groups, failureGroup{Job: e.Run.Job, Text: e.Error(), Newest: e, URL: "/runs/" + e.Run.RunID, Since: done[e.Run.Job]})
		} else {
			filter := runs.Filter{Job: e.Run.Job, State: e.State(), DayRange: runs.DayRange{From: since.Format(time.DateOnly)}}
			if e.State() != groups[i].Newest.State() {
				filter.State = ""
			}
			groups[i].URL = filter.URL("")
		}
		groups[i].N++
	}
	return groups
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
		if len(v.Rows) > 0 {
			all = append(all, v)
		}
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
