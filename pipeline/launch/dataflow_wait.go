package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow/dataflowlib"
	df "google.golang.org/api/dataflow/v1b3"
	"google.golang.org/api/googleapi"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// runDataflow runs the pipeline on Dataflow until its job has ended there. cancelledAt
// returns when the run was cancelled, zero if it was not.
func runDataflow(ctx context.Context, o Options, p *beam.Pipeline, cancelledAt func(context.Context) (time.Time, error)) error {
	id, err := submit(ctx, o, p)
	if err != nil {
		return err
	}
	client, err := dataflowlib.NewClient(ctx, o.beam("dataflow_endpoint"))
	if err != nil {
		return stillThere(id, err)
	}
	jobs := client.Projects.Locations.Jobs
	return awaitDataflow(ctx, o, dataflowJob{id: id, cancelledAt: cancelledAt,
		state: func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, dataflowPoll)
			defer cancel()
			job, err := jobs.Get(o.beam("project"), o.beam("region"), id).Context(ctx).Do()
			if err != nil {
				return "", err
			}
			return job.CurrentState, nil
		},
		cancel: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, dataflowPoll)
			defer cancel()
			_, err := jobs.Update(o.beam("project"), o.beam("region"), id, &df.Job{RequestedState: "JOB_STATE_CANCELLED"}).Context(ctx).Do()
			return err
		}})
}

// dataflowJob is a job at Dataflow, and its run's control object.
type dataflowJob struct {
	id          string
	state       func(context.Context) (string, error)
	cancel      func(context.Context) error // at Dataflow; it does not wait for the end
	cancelledAt func(context.Context) (time.Time, error)
}

// stillThere is the error for a job whose end was not observed.
func stillThere(id string, err error) error {
	return fmt.Errorf("asking Dataflow about job %s: %w; the job may still run there: look at its console before the next run", id, err)
}

const (
	dataflowPoll    = 30 * time.Second // between two requests of a job's state
	dataflowRetry   = time.Second      // after a request that failed; doubled up to dataflowPoll
	dataflowSilence = 30 * time.Minute // without an answer, until the launcher no longer waits
	dataflowCancel  = 90 * time.Second // after a cancel, that workers have to stop by themselves
)

// awaitDataflow waits for a job's end. The job runs whether its launcher gets an
// answer or not, so temporary errors are retried for dataflowSilence, and without end
// in a watch. A job that is still there dataflowCancel after its run was cancelled is
// cancelled at Dataflow: it may have no worker yet that could read the control object.
func awaitDataflow(ctx context.Context, o Options, j dataflowJob) error {
	log := lane.Logger(o.LogFormat, o.Level()).With("job_id", j.id)
	logged, retry := "", dataflowRetry
	answered, cancelled := time.Now(), false
	for {
		now, err := j.state(ctx)
		pause := dataflowPoll
		switch {
		case err != nil && (ctx.Err() != nil || !temporary(err)):
			return stillThere(j.id, err)
		case err != nil && time.Since(answered) >= dataflowSilence && (o.Watch == 0 || o.Streaming): // a watch has batches to come
			return stillThere(j.id, fmt.Errorf("no answer for %s: %w", dataflowSilence, err))
		case err != nil:
			if text := ledger.Redact(err.Error()); text != logged {
				logged = text
				log.Warn("dataflow_does_not_answer", "error", text, "why", "the job continues; its state is requested again until there is an answer")
			}
			pause, retry = retry, min(2*retry, dataflowPoll)
		case now == "JOB_STATE_FAILED":
			return fmt.Errorf("job %s failed at Dataflow; its log there says why", j.id)
		case slices.Contains([]string{"JOB_STATE_DONE", "JOB_STATE_CANCELLED", "JOB_STATE_DRAINED", "JOB_STATE_UPDATED"}, now):
			return nil // the store knows whether the run was complete
		default:
			if logged != "" {
				log.Info("dataflow_answers_again", "state", now)
			}
			logged, retry, answered = "", dataflowRetry, time.Now()
			cancelled = cancelled || j.cancelIfDue(ctx, log)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return stillThere(j.id, ctx.Err())
		}
	}
}

// cancelIfDue cancels the job at Dataflow when its run was cancelled long ago. It
// reports whether there is nothing more to do.
func (j dataflowJob) cancelIfDue(ctx context.Context, log *slog.Logger) bool {
	at, err := j.cancelledAt(ctx)
	if err != nil {
		log.Warn("control_unreadable", "error", ledger.Redact(err.Error()))
		return false
	}
	if at.IsZero() || time.Since(at) < dataflowCancel {
		return false
	}
	if err := j.cancel(ctx); err != nil {
		log.Warn("job_not_cancelled", "error", ledger.Redact(err.Error()), "why", "it may still run at Dataflow: cancel it in its console")
		return !temporary(err)
	}
	log.Info("job_cancelled", "why", "its workers had not ended in time after the run was cancelled")
	return true
}

// temporary reports whether a call of Google's API may succeed when it is made
// again: any error but a refusal by the API.
func temporary(err error) bool {
	var refused *googleapi.Error
	if !errors.As(err, &refused) {
		return true
	}
	return refused.Code >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests}, refused.Code)
}

// cancelledAt returns when a run was cancelled, zero if it was not.
func (r *run) cancelledAt(runID string) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		c, err := ledger.ReadControl(ctx, r.store, runID)
		if err != nil || c.Action != ledger.ActionCancel {
			return time.Time{}, err
		}
		return c.At, nil
	}
}
