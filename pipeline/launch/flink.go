package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/hooks"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

var (
	errCutShort  = errors.New("the runner ended the job before it was complete (was it cancelled there?): what was done is kept, and the same command resumes from there")
	errLanesLost = errors.New("a worker could not renew the lease of its lane in time and stopped sending; run the same command again")
)

// viaJobServer reports whether the runner is reached through Beam's job service.
func (o *Options) viaJobServer() bool {
	return o.Remote() && o.Runner != "dataflow"
}

// leases reports whether workers can outlive this process, so that each lane
// needs its own lease.
func (o *Options) leases() bool { return o.Remote() }

// checkFlink refuses options with which Beam would run the workers in Docker, or wait for ever.
func (o *Options) checkFlink() error {
	if !o.viaJobServer() {
		return nil
	}
	kinds := []string{"loopback", "process", "external", "docker"}
	switch kind := strings.ToLower(o.beam("environment_type")); {
	case kind == "":
		return usage.Errorf("--runner=%s needs --environment_type: PROCESS (the job server's machine runs this program), LOOPBACK (workers in this process, for tests), EXTERNAL or DOCKER", o.Runner)
	case !slices.Contains(kinds, kind):
		return usage.Errorf("--environment_type=%s: use PROCESS, LOOPBACK, EXTERNAL or DOCKER", o.beam("environment_type"))
	}
	n, err := strconv.Atoi(o.beam("parallelism"))
	if err == nil && n == -1 && o.Runner != "flink" { // Flink gets 1; other runners use the whole cluster
		return usage.Errorf("--runner=%s needs --parallelism: how many tasks the cluster runs at once (Spark: executors × cores of each, or the N of local[N]); the number of lanes follows it", o.Runner)
	}
	if err == nil && n > o.maxSlots() && o.Runner != "flink" && n <= 10_000 {
		return usage.Errorf("--parallelism=%d: each task has at least one request in flight, so --concurrency or --rate would be exceeded; raise them, or use %d and give %s as many cores", n, o.maxSlots(), o.Runner)
	}
	if err != nil || n < -1 || n == 0 || n > 10_000 {
		return usage.Errorf("--parallelism=%s: use 1 to 10000", o.beam("parallelism"))
	}
	return nil
}

// setParallelism always sets --parallelism, because Flink uses 1 for a job that does not set it.
func (o *Options) setParallelism() error {
	if !o.viaJobServer() {
		return nil
	}
	return flag.Set("parallelism", strconv.Itoa(o.Slots()))
}

// execute runs the pipeline to its end. The SDK panics when a server is gone;
// execute returns an error.
func execute(ctx context.Context, o Options, p *beam.Pipeline) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("runner %s stopped unexpectedly: %v", o.Runner, v)
		}
	}()
	if err := startPrism(ctx, o.Runner); err != nil {
		return err
	}
	if !o.viaJobServer() {
		_, err = beam.Run(ctx, o.Runner, p)
		return ofWorker(err)
	}
	if err := hooks.EnableHook(setupErrors); err != nil {
		return err
	}
	if o.Streaming {
		err = submitStream(ctx, p)
	} else {
		_, err = beam.Run(ctx, o.Runner, p)
	}
	if err != nil { // the error of a lost worker is a Java stack trace
		err = fmt.Errorf("%w%s; the job server's log says more; what was done is kept, and the same command resumes from there", ofWorker(err), o.remedy(err))
	}
	return err
}

// remedy says what to do about an error of Flink that names its cause by a Java
// class, or not at all.
func (o *Options) remedy(err error) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(err.Error(), p) })
	}
	switch {
	case has("Insufficient number of network buffers"):
		return "; raise taskmanager.memory.network.min and .max in Flink's configuration (192m ran with --parallelism=4), or lower --parallelism"
	case has("Heartbeat of TaskManager", "SettableFuture"): // TimeoutExceptions too: it, or a worker that was starting, was lost
	case has("NoResourceAvailableException", "TimeoutException", "Slot request bulk is not fulfillable"):
		return fmt.Sprintf("; has the cluster %d free task slots, as --parallelism requires? Flink waits five minutes for them (slot.request.timeout) and then ends without a reason: add slots, or lower --parallelism", o.Slots())
	}
	return ""
}

// ofWorker returns the worker's own error when a runner's error quotes it. The
// rest of the runner's text is Beam's plan of the stage.
func ofWorker(err error) error {
	if err == nil {
		return nil
	}
	_, said, ok := strings.Cut(err.Error(), "caused by:\nDoFn[")
	if _, cause, found := strings.Cut(said, "] failed:\n"); ok && found {
		return errors.New(workerSays + cause)
	}
	return err
}

// workerSays begins an error that a worker gave itself.
const workerSays = "a worker says: "

// stopWithin is how long the program may take to end in order after the first Ctrl-C.
func (o *Options) stopWithin() time.Duration {
	switch {
	case o.Runner == "dataflow":
		return 3 * time.Minute // its state is requested every 30 seconds
	case o.Remote():
		return 20 * time.Second // workers read the control object every two seconds
	case o.Streaming:
		return 10 * time.Second // the lister reads it every two seconds
	}
	return stopWithin
}

// stopWorkers tells the workers of a run, wherever they are, to begin nothing new.
func (r *run) stopWorkers(ctx context.Context, runID string) {
	if w, ok := lane.Find(runID); ok {
		w.Stop(nil)
	}
	if !r.o.Remote() {
		return
	}
	if err := ledger.WriteControl(ctx, r.store, runID, ledger.Control{Action: ledger.ActionCancel, At: time.Now(), By: "the launcher"}); err != nil {
		r.log(runID).Error("workers_not_told_to_stop", "error", ledger.Redact(err.Error()))
	}
}

func (r *run) logWaiting(h lease.Holder) {
	r.log(r.id).Warn("waits_for_workers", "holder", h.String(), "why", "workers of an earlier run still send requests to its hosts; they were asked to stop")
}
