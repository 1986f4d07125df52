package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/fault"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// outcome is how a run's pipeline ended.
type outcome struct {
	err         error
	interrupted bool
	live        ledger.Tally // the counts of this process, for an interrupted run
}

// leaseKept returns nil at a run's end if the run had the job's lease all the
// time. An interrupted run waits only for a short time to find out.
func (r *run) leaseKept(ctx context.Context, interrupted bool) error {
	if interrupted {
		within, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		ctx = within
	}
	err := r.awaitLease(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the store did not answer in time, so it is unknown whether this run still had its lease")
	}
	return err
}

// conclude writes the run's last state and its report.
func (r *run) conclude(ctx context.Context, record ledger.Run, out outcome) (*ledger.Report, ledger.Tally, error) {
	s, o := r.store, r.o
	var stopped error
	if w, ok := lane.Find(record.RunID); ok {
		stopped = w.Cause()
	}
	short := fault.Stops(stopped) // it has been waited for already
	if short {
		r.calls.EndWaits()
	}
	cause := r.leaseKept(ctx, out.interrupted || short)
	if cause == nil || short {
		cause = stopped
	}
	// When the store is gone, the run's end cannot be written there, but the user gets the report.
	fail := func(err error) (*ledger.Report, ledger.Tally, error) {
		record.State, record.FinishedAt = ledger.Failed, time.Now().UTC()
		if out.interrupted {
			record.State, cause = ledger.Interrupted, errors.Join(cause, ErrInterrupted)
		}
		err = errors.Join(cause, fmt.Errorf("writing the run's end to the store: %w", err))
		record.Error = ledger.ErrorText(err)
		report := ledger.BuildReport(o.Target().Job, record, out.live, time.Now())
		return &report, out.live, err
	}
	progress, err := ledger.ReadProgress(ctx, s, record.RunID)
	if err != nil {
		return fail(err)
	}
	total, err := ledger.ReadTotal(ctx, s, record.RunID)
	cut := errors.Is(err, store.ErrNotExist)
	if cut {
		if total, err = out.live, nil; o.Elsewhere() {
			total = progress.Tally
		}
	}
	if err != nil {
		return fail(err)
	}
	control, err := ledger.ReadControl(ctx, s, record.RunID)
	if err != nil {
		return fail(err)
	}
	cause = r.failure(cause, total)
	delete(total.Counts, ledger.Outage)
	delete(total.Counts, ledger.OutageTLS)
	state, result := r.verdict(ctx, record, ending{out, cause, total, control.Action == ledger.ActionCancel, cut})
	if err := store.Sync(ctx, s); err != nil { // before the run is called done
		return fail(err)
	}
	record.State, record.FinishedAt = state, time.Now()
	total.Add(r.ownCalls())
	report := ledger.BuildReport(o.Target().Job, record, total, record.FinishedAt, progress.Lanes...)
	sites, err := ledger.Sites(ctx, s, record.Job)
	if err != nil {
		return fail(err)
	}
	report.AddSites(sites)
	if r.past != nil {
		report.Cost = r.cost(report, out.interrupted)
	}
	if j := o.Target(); j.Extend != nil {
		if err := j.Extend(ctx, s, &report); err != nil {
			result = errors.Join(result, fmt.Errorf("the run's report is incomplete: %w", err))
			state = ledger.Failed
		}
	}
	why := result
	if state == ledger.Cancelled {
		why = nil
	}
	kept, err := ledger.Finish(ctx, s, record.RunID, state, why, record.FinishedAt)
	if err != nil {
		return fail(err)
	}
	report.State, report.Error = kept.State, kept.Error
	if err := ledger.WriteReport(ctx, s, report); err != nil {
		return fail(err)
	}
	if state == ledger.Done && o.Force {
		if err := ledger.ClearForce(ctx, s, record.Job, record.ForceID); err != nil {
			return fail(err)
		}
	}
	if err := lane.Close(record.RunID); err != nil && result == nil {
		result = err
	}
	if result == nil && o.Strict {
		result = leftOver(o.Target(), report)
	}
	return &report, total, result
}

// failure returns why a run has failed even if its runner reports success: the
// known reason, or one that its counts show.
func (r *run) failure(known error, total ledger.Tally) error {
	if known != nil {
		return known
	}
	if f := r.o.Target().Failure; f != nil {
		if err := f(total.Counts); err != nil {
			return err
		}
	}
	if total.Counts[ledger.WorkersStopped] > 0 {
		return errWorkerStopped
	}
	return nil
}

// ending is everything that decides a run's last state.
type ending struct {
	outcome
	failure   error
	total     ledger.Tally
	cancelled bool // by its control object
	cut       bool // it left no total
}

// verdict returns a run's last state, and the error with which the program ends:
// the first reason that applies.
func (r *run) verdict(ctx context.Context, record ledger.Run, e ending) (ledger.State, error) {
	switch {
	case e.failure != nil:
		return ledger.Failed, e.failure
	case e.interrupted:
		return ledger.Interrupted, ErrInterrupted
	case e.cancelled:
		return ledger.Cancelled, ErrInterrupted
	case e.err != nil:
		return ledger.Failed, fmt.Errorf("the pipeline stopped: %w", e.err)
	case e.cut:
		return ledger.Failed, errCutShort
	case e.total.Counts[ledger.LanesLost] > 0:
		return ledger.Failed, errLanesLost
	case e.total.Counts[ledger.NotStored] > 0:
		return ledger.Failed, fmt.Errorf("%d results are missing: %w", e.total.Counts[ledger.NotStored], ledger.ErrNotStored)
	}
	if err := r.o.Target().Purpose.Unmet(ctx, r.store, record, e.total); err != nil {
		return ledger.Failed, err
	}
	if unmet := r.o.Target().Unmet; unmet != nil {
		if err := unmet(ctx, record.RunID); err != nil {
			return ledger.Failed, err
		}
	}
	return ledger.Done, nil
}

// leftOver returns an error if a complete run left work for a person or for the next run.
func leftOver(j pipeline.Job, r ledger.Report) error {
	switch {
	case r.Counts["dead_letters"] > 0:
		return ErrStrict
	case j.NotDone != "" && r.Counts[j.NotDone] > 0, len(r.NotOpen()) > 0:
		return ErrNotDone
	}
	return nil
}

func writeReport(o Options, r ledger.Report, stdout, stderr io.Writer) error {
	switch o.Report {
	case "-":
		return printable.JSON(stdout, r)
	case "":
	default:
		f, err := os.Create(o.Report)
		if err != nil {
			return fmt.Errorf("writing --report: %w", err)
		}
		if err := errors.Join(printable.JSON(f, r), f.Close()); err != nil {
			return fmt.Errorf("writing --report: %w", err)
		}
	}
	if err := r.WriteTable(stdout, o.Target().Counts); err != nil {
		return err
	}
	if n := lane.Unshown(r.RunID); len(n) > 0 {
		line := unshown(n) + fmt.Sprintf("; `pipeline runs log %s --warnings --store=%s` lists them", r.RunID, ledger.Redact(o.Store))
		if _, err := fmt.Fprintln(stderr, printable.Line(line)); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	key := path.Join("runs", r.RunID, "report.json")
	return notice(o, stderr, "run_reported", "report: "+key, "run_id", r.RunID, "state", r.State, "key", key)
}

// unshown says how many warnings the terminal did not show, those that came most often first.
func unshown(n ledger.Counts) string {
	names, sum := slices.Collect(maps.Keys(n)), int64(0)
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		sum += n[name]
		names[i] = fmt.Sprintf("%d %s", n[name], name)
	}
	return fmt.Sprintf("%d warnings are not shown (%s)", sum, strings.Join(names, ", "))
}
