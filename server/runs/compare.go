package runs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/known"
)

// Comparison sets a run next to another one of its job.
type Comparison struct {
	With    *Entry    // nil: there is none with the same options
	Differs []Setting // that the two runs have different; Default is the other run's value
	Groups  []compareGroup
	Others  []*Entry // of the same job, to choose from
}

type compareGroup struct {
	Name string
	Rows []compareRow
}

type compareRow struct {
	Name, Now, Then, Change string
	Worse                   bool // more errors than the other run
}

// maxOthers is how many runs can be chosen to compare with.
const maxOthers = 20

// Compare sets a run next to the one with that id, or with "" next to the newest run
// before it that was given the same options and has ended.
func (b *Board) Compare(e *Entry, with string) Comparison {
	var c Comparison
	for _, o := range b.Runs() {
		if o.Run.Job != e.Run.Job || o.Run.RunID == e.Run.RunID || o.Broken || o.Active() {
			continue
		}
		switch {
		case with != "":
			if o.Run.RunID == with {
				c.With = o
			}
		case c.With == nil && o.Run.RunID < e.Run.RunID && sameOptions(e.Job, e.Run, o.Run):
			c.With = o
		}
		if len(c.Others) < maxOthers {
			c.Others = append(c.Others, o)
		}
	}
	if c.With == nil {
		return c
	}
	c.Differs = differing(e.Job, e.Run, c.With.Run)
	now, then := e.Report, c.With.Report
	c.group("Run", true, compareRow{Name: "state", Now: e.State(), Then: c.With.State()}, secondsRow("took", now.Duration, then.Duration),
		countRow("requests", now.HTTP.Requests, then.HTTP.Requests, false), compareRow{Name: "requests a second",
			Now: fmt.Sprintf("%.1f", e.PerSecond()), Then: fmt.Sprintf("%.1f", c.With.PerSecond())},
		compareRow{Name: "received", Now: ledger.FormatBytes(now.HTTP.Bytes), Then: ledger.FormatBytes(then.HTTP.Bytes)},
		countRow("retries", now.HTTP.Retries, then.HTTP.Retries, true), countRow("failed", e.Failed(), c.With.Failed(), true))
	var counts []compareRow
	for _, n := range CountsOf(e.Job, ledger.Report{Counts: merged(now.Counts, then.Counts)}) {
		counts = append(counts, countRow(n.Name, now.Counts[n.Name], then.Counts[n.Name], n.Name == e.Job.Failed || n.Name == "dead_letters"))
	}
	c.group("Counts", false, counts...)
	c.counts("Answers", now.HTTP.ByStatus, then.HTTP.ByStatus, func(status string) bool { return status >= "4" })
	c.counts("Failed requests", now.HTTP.Failures, then.HTTP.Failures, always)
	c.counts("Dead letters", now.DeadLetters, then.DeadLetters, always)
	return c
}

func always(string) bool { return true }

// differing are the options that two runs of a job have different, without those that
// change nothing of what a run does.
func differing(j known.Job, a, b ledger.Run) (out []Setting) {
	now, then := differingFromDefault(j, a), differingFromDefault(j, b)
	names := maps.Clone(now)
	maps.Copy(names, then)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		o := Setting{Name: name, Value: cmp.Or(now[name].Value, then[name].Default), Default: cmp.Or(then[name].Value, now[name].Default),
			Differs: true}
		if o.Value != o.Default {
			out = append(out, o)
		}
	}
	return out
}

func differingFromDefault(j known.Job, r ledger.Run) map[string]Setting {
	all := map[string]Setting{}
	differ, _ := OptionsOf(j, r)
	for _, o := range differ {
		if !j.Outward(o.Name) {
			all[o.Name] = o
		}
	}
	return all
}

func merged(a, b ledger.Counts) ledger.Counts {
	all := ledger.Counts{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// group adds rows, those with a value only unless all are wanted.
func (c *Comparison) group(name string, all bool, rows ...compareRow) {
	if !all {
		rows = slices.DeleteFunc(rows, func(r compareRow) bool { return r.Now == "0" && r.Then == "0" })
	}
	if len(rows) > 0 {
		c.Groups = append(c.Groups, compareGroup{name, rows})
	}
}

func (c *Comparison) counts(name string, a, b ledger.Counts, bad func(string) bool) {
	var rows []compareRow
	for _, n := range slices.Sorted(maps.Keys(merged(a, b))) {
		rows = append(rows, countRow(n, a[n], b[n], bad(n)))
	}
	c.group(name, false, rows...)
}

func countRow(name string, now, then int64, bad bool) compareRow {
	return compareRow{Name: name, Now: ledger.FormatCount(now), Then: ledger.FormatCount(then),
		Change: change(float64(now), float64(then), ledger.FormatCount(now-then)), Worse: bad && now > then}
}

func secondsRow(name string, now, then float64) compareRow {
	return compareRow{Name: name, Now: known.FormatSeconds(now), Then: known.FormatSeconds(then),
		Change: change(now, then, known.FormatSeconds(now-then))}
}

// change is a difference as text, with its share of the value before; "" for none.
func change(now, then float64, difference string) string {
	switch {
	case now == then:
		return ""
	case now > then:
		difference = "+" + difference
	}
	if then == 0 {
		return difference
	}
	return fmt.Sprintf("%s (%+.0f %%)", difference, 100*(now-then)/then)
}
