package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"

	"github.com/newsfork/seed-engine/pipeline/launch/prism"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// remote are the runners whose workers are not in this process.
var remote = []string{"flink", "dataflow", "spark", "universal"}

// Remote says that the runner's workers are not threads of this process.
func (o *Options) Remote() bool { return slices.Contains(remote, o.Runner) }

var errWorkerStopped = errors.New("a worker stopped the run; its log (worker_stopped) says why; what was done is kept, the same command goes on from there")

// Runners are the Beam runners that --runner takes.
var Runners = append([]string{"direct", "prism"}, remote...)

// Check refuses a runner without what it needs to start or to see the store, and
// a watch that it cannot do.
func (o *Options) Check() error {
	if err := o.checkRunner(); err != nil {
		return err
	}
	return o.checkWatch()
}

func (o *Options) checkRunner() error {
	if o.Runner != "dataflow" && o.beam("dry_run") == "true" {
		return usage.Errorf("--dry_run prints Dataflow's job, and %s runs it all the same; to look around use --until=list or --until=extract", o.Runner)
	}
	if o.beamDryRun() && o.action() != nil {
		return usage.Errorf("--dry_run prints the job of a run, and what is asked for here starts none; leave --dry_run out")
	}
	if err := o.checkAsync(); err != nil {
		return err
	}
	if !o.Remote() {
		return o.checkHere()
	}
	if o.Runner == "dataflow" {
		for _, need := range []struct{ name, like string }{{"project", "PROJECT"}, {"region", "europe-west1"}, {"staging_location", "gs://bucket/staging"}} {
			if o.beam(need.name) == "" {
				return usage.Errorf("--runner=dataflow needs --%s; add --%s=%s", need.name, need.name, need.like)
			}
		}
		if v := o.beam("staging_location"); !strings.HasPrefix(v, "gs://") || len(v) == len("gs://") {
			return usage.Errorf("--staging_location=%s: Dataflow stages in Google Cloud Storage; write gs://bucket/staging", v)
		}
		if err := o.checkDataflow(); err != nil {
			return err
		}
	} else {
		switch v := o.beam("endpoint"); {
		case v == "":
			return usage.Errorf("--runner=%s needs --endpoint; add --endpoint=host:port of its job server, such as localhost:8099", o.Runner)
		case !HostPort(v):
			return usage.Errorf("--endpoint=%s: write host:port, such as localhost:8099", v)
		}
	}
	mount := o.SharedFilesystem && o.Runner != "dataflow" && !strings.HasPrefix(o.Store, "mem://")
	switch {
	case !o.Elsewhere() || mount || !LocalStore(o.Store):
		return o.checkFlink()
	case o.Sample:
		return usage.Errorf("the sample bucket is seen by this machine only, and %s has workers elsewhere; add --store=s3://…, r2://… or gs://…", o.Runner)
	case o.Runner == "dataflow" || strings.HasPrefix(o.Store, "mem://"):
		return usage.Errorf("--store=%s is seen by this machine only, and %s has workers elsewhere; use s3://, r2:// or gs://", o.Store, o.Runner)
	}
	return usage.Errorf("--store=%s is seen by this machine only, and %s has workers elsewhere; use s3://, r2:// or gs://, or --shared-filesystem when every worker mounts it", o.Store, o.Runner)
}

// checkHere refuses what would lead a runner of this process elsewhere.
func (o *Options) checkHere() (err error) {
	o.Flags.Visit(func(f *flag.Flag) {
		switch v := f.Value.String(); {
		case f.Name == "endpoint" && v != "":
			err = usage.Errorf("--endpoint=%s is a job server's address, and --runner=%s works in this process; add --runner=universal, or flink, or leave --endpoint out", v, o.Runner)
		case f.Name == "environment_type" && v != "" && !strings.EqualFold(v, "loopback"):
			err = usage.Errorf("--environment_type=%s is for workers elsewhere, and --runner=%s works in this process; leave it out, or add another --runner", v, o.Runner)
		}
	})
	return err
}

// startPrism starts prism where it is the runner: once for all runs of the
// process. Beam itself would start one that listens on every interface.
func startPrism(ctx context.Context, runner string) (err error) {
	if runner != "prism" || *jobopts.Endpoint != "" {
		return nil
	}
	if *jobopts.Endpoint, err = prism.Start(ctx, slog.Default()); err == nil {
		*jobopts.EnvironmentType = "loopback"
	}
	return err
}

// Reach checks that the runner's job server answers: the SDK itself would wait
// for two minutes.
func (o *Options) Reach(ctx context.Context) error {
	if !o.Remote() || o.Preview() {
		return nil
	}
	if o.Runner == "dataflow" {
		return o.reachDataflow(ctx)
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	c, err := d.DialContext(ctx, "tcp", o.beam("endpoint"))
	if err != nil {
		return fmt.Errorf("--endpoint=%s: no job server of %s answers there; start it, or correct the address: %w", o.beam("endpoint"), o.Runner, err)
	}
	return c.Close()
}

// HostPort says that s has the form host:port.
func HostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	return err == nil && perr == nil && host != "" && n > 0 && n < 65536
}

// Elsewhere says that the workers are not in this process.
func (o *Options) Elsewhere() bool {
	return o.Remote() && (o.Runner == "dataflow" || !strings.EqualFold(o.beam("environment_type"), "loopback"))
}

// Slots is how many lanes can be at work at once in the whole job.
func (o *Options) Slots() int {
	switch {
	case !o.Remote():
		return 1
	case o.Runner == "dataflow":
		workers, threads := o.dataflowShape()
		return workers * threads
	}
	n, err := strconv.Atoi(o.beam("parallelism"))
	if err != nil { // a runner without that flag
		return 1
	}
	return min(max(n, 1), o.mostSlots())
}

// mostSlots bounds Slots by the limits of the whole job, which are shared out
// over them: a lane has one request in flight at least, and may send its first
// one at once.
func (o *Options) mostSlots() int {
	most := o.Concurrency
	if o.Rate > 0 {
		most = min(most, int(o.Rate))
	}
	return max(most, 1)
}
