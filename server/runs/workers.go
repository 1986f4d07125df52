package runs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// WorkerRow is a process of a run.
type WorkerRow struct {
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

// WarningKind are the warnings or errors of one kind.
type WarningKind struct {
	logLine     // the newest
	N       int // how many the processes have kept
}

// kindsOf groups lines, which have the newest first. Errors come before warnings.
func kindsOf(lines []logLine) (kinds []WarningKind) {
	for _, l := range lines {
		i := slices.IndexFunc(kinds, func(k WarningKind) bool { return k.Event == l.Event && k.Level == l.Level })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, WarningKind{logLine: l})
		}
		kinds[i].N++
	}
	slices.SortStableFunc(kinds, func(a, b WarningKind) int { return cmp.Compare(a.Level, b.Level) })
	return kinds[:min(len(kinds), maxWarnings)]
}

// WorkersOf returns a run's processes, and their warnings and errors by kind.
func WorkersOf(ctx context.Context, s store.Store, e *Entry, logs []ledger.ProcessLog, now time.Time) (rows []WorkerRow, kinds []WarningKind,
	err error) {
	alive, err := ledger.ListAlive(ctx, s, e.Run.RunID)
	if err != nil {
		return nil, nil, err
	}
	var lines []logLine
	named := map[string]*WorkerRow{}
	at := func(name string) *WorkerRow {
		if named[name] == nil {
			named[name] = &WorkerRow{Name: name}
		}
		return named[name]
	}
	for _, a := range alive {
		w := at(a.Process)
		w.Lanes, w.At, w.Silent = a.Lanes, a.At, e.Active() && now.Sub(a.At) > maxSilence
	}
	for _, log := range ledger.Warnings(logs) {
		at(log.Worker).Warnings = len(log.Lines)
		for _, raw := range log.Lines {
			lines = append(lines, readLine(log.Worker, raw))
		}
	}
	for _, w := range named {
		rows = append(rows, *w)
	}
	slices.SortFunc(rows, func(a, b WorkerRow) int { return cmp.Compare(a.Name, b.Name) })
	newestFirst(lines)
	return rows, kindsOf(lines), nil
}
