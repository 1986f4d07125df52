package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// workerRow is a process of a run.
type workerRow struct {
	Name     string
	Lanes    int       // at work
	At       time.Time // its last heartbeat; zero if it never said that it is alive
	Silent   bool      // the heartbeat is old although the run is at work
	Warnings int
}

// maxSilence is after how long without a heartbeat, which comes every ten seconds,
// the other processes share a process's part of the limits.
const maxSilence = 30 * time.Second

// maxWarnings is how many kinds of warnings of workers a run's page shows; the API has
// all lines.
const maxWarnings = 50

// warningKind are the warnings or errors of one kind.
type warningKind struct {
	logLine     // the newest
	N       int // how many the processes have kept
}

// kindsOf groups lines, which have the newest first. Errors come before warnings.
func kindsOf(lines []logLine) (kinds []warningKind) {
	for _, l := range lines {
		i := slices.IndexFunc(kinds, func(k warningKind) bool { return k.Event == l.Event && k.Level == l.Level })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, warningKind{logLine: l})
		}
		kinds[i].N++
	}
	slices.SortStableFunc(kinds, func(a, b warningKind) int { return cmp.Compare(a.Level, b.Level) })
	return kinds[:min(len(kinds), maxWarnings)]
}

// workersOf returns a run's processes, and their warnings and errors by kind.
func workersOf(ctx context.Context, s store.Store, e *entry, now time.Time) (rows []workerRow, kinds []warningKind, err error) {
	logs, err := ledger.ReadWorkers(ctx, s, e.Run.RunID)
	if err != nil {
		return nil, nil, err
	}
	alive, err := ledger.ListAlive(ctx, s, e.Run.RunID)
	if err != nil {
		return nil, nil, err
	}
	var lines []logLine
	named := map[string]*workerRow{}
	at := func(name string) *workerRow {
		if named[name] == nil {
			named[name] = &workerRow{Name: name}
		}
		return named[name]
	}
	for _, a := range alive {
		w := at(a.Process)
		w.Lanes, w.At, w.Silent = a.Lanes, a.At, e.Active() && now.Sub(a.At) > maxSilence
	}
	for _, log := range logs {
		at(log.Worker).Warnings = len(log.Lines)
		for _, raw := range log.Lines {
			lines = append(lines, readLine(log.Worker, raw))
		}
	}
	for _, w := range named {
		rows = append(rows, *w)
	}
	slices.SortFunc(rows, func(a, b workerRow) int { return cmp.Compare(a.Name, b.Name) })
	newestFirst(lines)
	return rows, kindsOf(lines), nil
}
