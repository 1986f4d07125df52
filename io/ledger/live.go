package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/store"
)

// maxSilence is how long the lanes of workers that outlived their launcher may not write their progress.
const maxSilence = 30 * time.Second

// inLauncher reports whether the run's workers end with its launcher.
func (r Run) inLauncher() bool { return slices.Contains([]string{"direct", "prism"}, r.Runner) }

// Seen returns a run as people should see it. A run that is not over, but whose job nobody has the lease of, is Silent, and its Error says
// since when, unless its workers continue without its launcher: its process was killed or its machine went down. The next run of the job
// marks it as interrupted.
func Seen(ctx context.Context, s store.Store, r Run) (Run, error) {
	r, _, err := seen(ctx, s, r)
	return r, err
}

// seen also returns the run's progress, nil if it was not needed.
func seen(ctx context.Context, s store.Store, r Run) (Run, *Progress, error) {
	if r.State.Over() {
		return r, nil, nil
	}
	last, alive, err := lease.Sign(ctx, s, r.Job)
	if err != nil || alive {
		return r, nil, err
	}
	if r, err = Load(ctx, s, r.RunID); err != nil || r.State.Over() { // it has ended since, and then released the lease
		return r, nil, err
	}
	p, err := ReadProgress(ctx, s, r.RunID)
	if last.Before(r.StartedAt) {
		last = r.StartedAt // the lease is an earlier run's
	}
	if at := lastSign(p.Lanes); at.After(last) {
		last = at
	}
	if !r.inLauncher() && time.Since(last) < maxSilence {
		return r, &p, err
	}
	r.State, r.Error = Silent, "no sign of life since "+last.UTC().Format(time.RFC3339)+"; the next run of "+r.Job+" resumes it"
	return r, &p, err
}

// lastSign returns when a lane was last written, zero for none.
func lastSign(lanes []LaneProgress) (last time.Time) {
	for _, l := range lanes {
		if l.UpdatedAt.After(last) {
			last = l.UpdatedAt
		}
	}
	return last
}

// ReportSoFar returns the report of a job's run. If the run has none yet, it makes one
// from the run as it is Seen, and its total or the progress of its lanes; then its alerts are what
// the run waits for.
func ReportSoFar(ctx context.Context, s store.Store, j Job, run Run, now time.Time) (Report, error) {
	report, err := ReadReport(ctx, s, run.RunID)
	if err == nil || !errors.Is(err, store.ErrNotExist) {
		return report, err
	}
	run, p, err := seen(ctx, s, run)
	if err == nil && p == nil {
		p = new(Progress)
		*p, err = ReadProgress(ctx, s, run.RunID)
	}
	if err != nil {
		return Report{}, err
	}
	sum, err := ReadTotal(ctx, s, run.RunID)
	if errors.Is(err, store.ErrNotExist) {
		sum = p.Tally
	} else if err != nil {
		return Report{}, err
	}
	delete(sum.Counts, Outage)
	delete(sum.Counts, OutageTLS)
	report = BuildReport(j, run, sum, now, p.Lanes...)
	for _, l := range p.Lanes {
		for _, wait := range l.Waits { // lanes of one process say the same
			if !l.Finished && run.FinishedAt.IsZero() && !slices.Contains(report.Alerts, wait) {
				report.Alerts = append(report.Alerts, wait)
			}
		}
	}
	return report, nil
}
