package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// ReportSoFar returns the report of a job's run. If the run has none yet, it makes one
// from the run's total or from the progress of its lanes; then its alerts are what the
// run waits for.
func ReportSoFar(ctx context.Context, s store.Store, j Job, run Run, now time.Time) (Report, error) {
	report, err := ReadReport(ctx, s, run.RunID)
	if err == nil || !errors.Is(err, store.ErrNotExist) {
		return report, err
	}
	lanes, err := Progresses(ctx, s, run.RunID)
	if err != nil {
		return Report{}, err
	}
	sum, err := ReadTotal(ctx, s, run.RunID)
	if errors.Is(err, store.ErrNotExist) {
		for _, l := range lanes {
			sum.Add(l.Tally)
		}
	} else if err != nil {
		return Report{}, err
	}
	delete(sum.Counts, Outage)
	delete(sum.Counts, OutageTLS)
	report = BuildReport(j, run, sum, now, lanes...)
	for _, l := range lanes {
		for _, wait := range l.Waits { // lanes of one process say the same
			if !l.Finished && run.FinishedAt.IsZero() && !slices.Contains(report.Alerts, wait) {
				report.Alerts = append(report.Alerts, wait)
			}
		}
	}
	return report, nil
}
