package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/prism"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// remote are the runners whose workers are not in this process.
var remote = []string{"flink", "dataflow", "spark", "universal"}

// Remote reports whether the runner's workers are processes of their own.
func (o *Options) Remote() bool { return slices.Contains(remote, o.Runner) }

var errWorkerStopped = errors.New("a worker stopped the run; its log (worker_stopped) says why; what was done is kept, and the same command resumes from there")

// Runners are the Beam runners that --runner takes.
var Runners = append([]string{"direct", "prism"}, remote...)

// Check refuses options with which the runner could not start or reach the store,
// and a watch that the runner or the job cannot do.
func (o *Options) Check() error {
	if err := o.checkRunner(); err != nil {
		return err
	}
	return o.checkWatch()
}

func (o *Options) checkRunner() error {
	if o.Runner != "dataflow" && o.beam("dry_run") == "true" {
		instead := "leave it out"
		if preview := o.Flags.Preview(o.Job); preview != "" {
			instead = "for a preview use " + preview
		}
		return usage.Errorf("--dry_run prints Dataflow's job, but with %s it would be run; %s", o.Runner, instead)
	}
	if o.beamDryRun() && o.action() != nil {
		return usage.Errorf("--dry_run prints the job of a run, and these options start no run; leave --dry_run out")
	}
	if o.beam("async") == "true" {
		return usage.Errorf("--async: the program has to stay until the run has ended, because it writes its state and its report; leave it out")
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

// checkHere refuses options of runners elsewhere when the runner is in this process.
func (o *Options) checkHere() error {
	given := o.Flags.Given()
	if v := o.beam("endpoint"); given["endpoint"] && v != "" {
		return usage.Errorf("--endpoint=%s is a job server's address, and --runner=%s works in this process; add --runner=universal, or flink, or leave --endpoint out", v, o.Runner)
	}
	if v := o.beam("environment_type"); given["environment_type"] && v != "" && !strings.EqualFold(v, "loopback") {
		return usage.Errorf("--environment_type=%s is for workers elsewhere, and --runner=%s works in this process; leave it out, or add another --runner", v, o.Runner)
	}
	return nil
}

// startPrism starts prism when it is the runner, once for all runs of the
// process. Beam itself would start one that listens on every interface.
func startPrism(ctx context.Context, runner string) error {
	if runner != "prism" {
		return nil
	}
	return prism.Use(ctx, slog.Default())
}

// Reach checks that the runner's job server answers. The SDK itself would wait
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

// HostPort reports whether s has the form host:port.
func HostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	return err == nil && perr == nil && host != "" && n > 0 && n < 65536
}

// Elsewhere reports whether the workers are outside of this process.
func (o *Options) Elsewhere() bool {
	return o.Remote() && (o.Runner == "dataflow" || !strings.EqualFold(o.beam("environment_type"), "loopback"))
}

// Slots returns how many lanes the whole job can run at the same time.
func (o *Options) Slots() int {
	switch {
	case !o.Remote():
		return 1
	case o.Runner == "dataflow":
		_, most, threads := o.dataflowShape()
		return most * threads
	}
	n, err := strconv.Atoi(o.beam("parallelism"))
	if err != nil { // the runner has no such flag
		return 1
	}
	return min(max(n, 1), o.maxSlots())
}

// maxSlots is the most slots that the limits of the whole job allow: one request in
// flight and one request a second for each.
func (o *Options) maxSlots() int {
	most := o.Concurrency
	if o.Rate > 0 {
		most = min(most, int(o.Rate))
	}
	return max(most, 1)
}
