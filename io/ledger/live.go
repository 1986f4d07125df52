package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// ReportSoFar gives the report of a run that is over, and one made of what its
// lanes have said so far while it has none.
func ReportSoFar(ctx context.Context, s store.Store, run Run, now time.Time) (Report, error) {
	report, err := ReadReport(ctx, s, run.RunID)
	if err == nil || !errors.Is(err, store.ErrNotExist) {
		return report, err
	}
	lanes, err := Progresses(ctx, s, run.RunID)
	if err != nil {
		return Report{}, err
	}
	var sum Tally
	for _, l := range lanes {
		sum.Add(l.Tally)
	}
	return BuildReport(run, sum, now, lanes...), nil
}
