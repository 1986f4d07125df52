package launch

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/ledger"
)

// A job that lost a worker is submitted again. Beam's Flink runner gives a restart strategy to streams only
// (createBatchExecutionEnvironment in FlinkExecutionEnvironments.java): without one in the cluster's own
// configuration, Flink fails a batch job at the first lost TaskManager, and a stream at the fourth of its whole life.
// What was done is in the store, so the next try does the rest; the leases of lanes keep it from hosts that a
// worker of the try before still asks.
const (
	maxRestarts  = 3
	restartPause = 10 * time.Second
	restartCheck = 2 * time.Second // for a cancel, during the pause
	healthyAfter = time.Hour       // restarts before a try that lasted so long are forgotten
)

// execute runs the pipeline of a run to its end, and submits a job again after
// its workers were lost.
func (r *run) execute(ctx context.Context, runID string, p *beam.Pipeline) error {
	if r.o.Runner == "dataflow" {
		return runDataflow(ctx, r.o, p, r.cancelledAt(runID))
	}
	return r.again(ctx, runID, func() error { return execute(ctx, r.o, p) })
}

func (r *run) again(ctx context.Context, runID string, try func() error) error {
	for n := 1; ; n++ {
		began := time.Now()
		err := try()
		if time.Since(began) >= healthyAfter {
			n = 1
		}
		if n > maxRestarts || !r.o.restartable(err) || !r.mayRestart(ctx, runID) {
			return err
		}
		r.log(runID).Warn("job_restarts", "restart", n, "of", maxRestarts, "error", ledger.ErrorText(err),
			"why", "a worker was lost; what was done is kept, and the job does the rest")
	}
}

var jobFailed = regexp.MustCompile(`\bjob \S+ failed:`)

// restartable reports whether a job failed for a reason that may not come back: a lost
// worker, but neither what a worker says of itself, nor what only an operator of the
// cluster can change, nor a job server that is gone, whose job may still be at work.
func (o *Options) restartable(err error) bool {
	return err != nil && o.viaJobServer() && o.Elsewhere() && jobFailed.MatchString(err.Error()) &&
		!strings.Contains(err.Error(), workerSays) && o.remedy(err) == ""
}

// mayRestart waits for the pause between two tries, and reports whether the run may
// continue after it.
func (r *run) mayRestart(ctx context.Context, runID string) bool {
	for waited := time.Duration(0); waited < restartPause; waited += restartCheck {
		select {
		case <-time.After(restartCheck):
		case <-r.lostLease:
			return false
		case <-ctx.Done():
			return false
		}
		c, err := ledger.ReadControl(ctx, r.store, runID)
		if err != nil {
			r.log(runID).Warn("control_unreadable", "error", ledger.Redact(err.Error()))
			continue
		}
		if c.Action == ledger.ActionCancel {
			return false
		}
	}
	return r.o.Reach(ctx) == nil
}
