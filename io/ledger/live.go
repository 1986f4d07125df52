package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// ReportSoFar gives the report of a run that is over, and while it has none one
// made of its total, or of what its lanes have said so far.
func ReportSoFar(ctx context.Context, s store.Store, run Run, now time.Time) (Report, error) {
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
	return BuildReport(run, sum, now, lanes...), nil
}
