package launch

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow"
	"google.golang.org/api/option"
	"google.golang.org/api/transport"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// dataflowThreads is the default number of lanes that a Dataflow worker runs at
// the same time.
const dataflowThreads = 4

// dataflowShape returns with how many workers a job begins on Dataflow, how many it
// may have, and how many lanes each of them runs at the same time. Each worker may have
// one request in flight for each lane, so the limits of the whole job bound the numbers.
func (o *Options) dataflowShape() (workers, most, threads int) {
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(o.beam(name))
		if err != nil || n < 1 {
			return otherwise
		}
		return n
	}
	slots := o.maxSlots()
	workers = min(number("num_workers", 1), slots)
	threads = min(number("number_of_worker_harness_threads", dataflowThreads), slots/workers)
	if !o.autoscales() {
		return workers, workers, threads
	}
	most = min(number("max_num_workers", max(slots/threads, workers)), slots)
	return workers, most, min(threads, slots/most)
}

// autoscales reports whether Dataflow may add and remove workers.
func (o *Options) autoscales() bool {
	most := o.beam("max_num_workers")
	return o.beam("autoscaling_algorithm") == "THROUGHPUT_BASED" || most != "" && most != "0"
}

// checkDataflow refuses a job that could not keep its limits, or whose end could not be observed.
func (o *Options) checkDataflow() error {
	for _, name := range []string{"num_workers", "max_num_workers", "number_of_worker_harness_threads"} {
		if n, err := strconv.Atoi(o.beam(name)); err != nil || n < 0 || n > 10_000 {
			return usage.Errorf("--%s=%s: use 1 to 10000", name, o.beam(name))
		}
	}
	algorithm, most := o.beam("autoscaling_algorithm"), o.beam("max_num_workers")
	if !slices.Contains([]string{"", "NONE", "THROUGHPUT_BASED"}, algorithm) {
		return usage.Errorf("--autoscaling_algorithm=%s: use NONE or THROUGHPUT_BASED", algorithm)
	}
	if algorithm == "NONE" && o.autoscales() {
		return usage.Errorf("--max_num_workers=%s: --autoscaling_algorithm=NONE fixes the number of workers; leave one of them out", most)
	}
	begin, _ := strconv.Atoi(o.beam("num_workers"))
	if n, _ := strconv.Atoi(most); n > 0 && begin > n {
		return usage.Errorf("--num_workers=%d is more than --max_num_workers=%d; lower the first, or raise the second", begin, n)
	}
	if o.beam("update") == "true" {
		return usage.Errorf("--update: the job that replaces another would be a second run, without the lease of the first; leave it out, and end the old run first with `runs cancel ID`")
	}
	if o.beam("template_location") != "" {
		return usage.Errorf("--template_location: a job that is started from a template has no run of its own in the store; leave it out and start each run by this command")
	}
	if name := o.beam("worker_binary"); name != "" {
		if info, err := os.Stat(name); err != nil {
			return usage.Errorf("--worker_binary: %w", err)
		} else if !info.Mode().IsRegular() {
			return usage.Errorf("--worker_binary=%s is no file; name the program that the workers run", name)
		}
	}
	return nil
}

func init() {
	// A path of this machine means nothing to a worker, and other people can read the job.
	for _, name := range []string{"worker_binary", "dry_run", "number_of_worker_harness_threads", "autoscaling_algorithm"} {
		dataflow.DontUseFlagAsPipelineOption(name)
	}
}

// reachDataflow checks what Dataflow needs before anything is touched. A dry run
// needs none of it.
func (o *Options) reachDataflow(ctx context.Context) error {
	if o.beamDryRun() {
		return nil
	}
	if _, err := transport.Creds(ctx, option.WithScopes("https://www.googleapis.com/auth/cloud-platform")); err != nil {
		return usage.Errorf("--runner=dataflow needs Google credentials: set GOOGLE_APPLICATION_CREDENTIALS to a service account's file, or run `gcloud auth application-default login`: %w", err)
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(o.beam("staging_location"), "gs://"), "/")
	s, err := store.Open(ctx, "gs://"+bucket)
	switch {
	case err == nil:
		_, err := o.workerBinary()
		return errors.Join(s.Close(), err)
	case store.Retryable(err):
		return fmt.Errorf("--staging_location: %w; try again when it answers", err)
	}
	return usage.Errorf("--staging_location: %w", err)
}

// workerBinary is the program that the workers run: by default this one, which must be statically linked, because Beam's container
// needs that.
func (o *Options) workerBinary() (string, error) {
	if given := o.beam("worker_binary"); given != "" {
		return given, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program, which the workers run: %w", err)
	}
	if !static(self) {
		return "", usage.Errorf("--runner=dataflow needs a static worker, and this program is not static: run `CGO_ENABLED=0 GOOS=linux GOARCH=amd64 " +
			"go build -tags=disable_grpc_modules -ldflags='-s -w' -o worker ./cmd/pipeline` in the source tree of this version and give --worker_binary=worker")
	}
	return self, nil
}

// submit submits the job to Dataflow and returns its id there.
func submit(ctx context.Context, o Options, p *beam.Pipeline) (id string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("runner %s stopped unexpectedly: %v", o.Runner, v)
		}
	}()
	before := *jobopts.Async
	*jobopts.Async = true // because Beam itself stops waiting at the first error of the API
	defer func() { *jobopts.Async = before }()
	same := &sameName{}
	beamlog.SetLogger(same)
	defer beamlog.SetLogger(quiet{})
	result, err := beam.Run(ctx, o.Runner, p)
	switch {
	case err != nil:
		return "", err
	case same.seen.Load():
		return "", fmt.Errorf("a job %s is at work at Dataflow already (%s), and this run was not submitted: wait until that has ended there, or give another --job_name", o.beam("job_name"), result.JobID())
	}
	return result.JobID(), nil
}

// sameName notices when Beam returns another job of the same name instead of
// ours. An asynchronous submission does that, and says so only in its log.
type sameName struct {
	quiet
	seen atomic.Bool
}

// Log implements Beam's log.Logger.
func (s *sameName) Log(ctx context.Context, sev beamlog.Severity, depth int, msg string) {
	if strings.Contains(msg, "job with same name is already actively running") {
		s.seen.Store(true)
	}
	s.quiet.Log(ctx, sev, depth+1, msg)
}

// beamDryRun reports whether Beam only prints the Dataflow job and sends nothing.
func (o *Options) beamDryRun() bool {
	return o.Runner == "dataflow" && o.beam("dry_run") == "true" && !o.Preview()
}

// printDataflow prints the job that a run would submit, as JSON. It uses no network and
// no lease, and writes nothing.
func printDataflow(ctx context.Context, o Options, stdout io.Writer, build graph) error {
	if !beam.Initialized() {
		beam.Init()
	}
	out := &jobPrinter{to: stdout}
	beamlog.SetLogger(out)
	// Even in a dry run Beam asks Google about the buckets, and warns when it
	// has no credentials.
	if err := errors.Join(os.Unsetenv("STORAGE_EMULATOR_HOST"), os.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(os.DevNull, "none"))); err != nil {
		return err
	}
	if err := o.dataflowWorker(); err != nil {
		return err
	}
	p, scope := beam.NewPipelineWithRoot()
	cfg := o.LaneConfig()
	cfg.RunID = "dry-run"
	build(scope, cfg, "")
	if err := execute(ctx, o, p); err != nil {
		return err
	}
	if out.err == nil && out.jobs == 0 {
		return errors.New("printing the job: Beam printed none")
	}
	return out.err
}

// jobPrinter prints the one message that Beam logs as JSON in a dry run: the job.
type jobPrinter struct {
	to   io.Writer
	jobs int
	err  error
}

// Log implements Beam's log.Logger.
func (p *jobPrinter) Log(_ context.Context, _ beamlog.Severity, _ int, msg string) {
	if json.Valid([]byte(msg)) {
		p.jobs++
		_, err := fmt.Fprintln(p.to, msg)
		p.err = errors.Join(p.err, err)
	}
}

// dataflowWorkers sets the number of workers and of their lanes. The number of workers
// is fixed unless the user lets Dataflow change it, because each one costs money.
func (o *Options) dataflowWorkers() error {
	workers, most, threads := o.dataflowShape()
	set := map[string]string{"autoscaling_algorithm": "NONE", "num_workers": strconv.Itoa(workers), "number_of_worker_harness_threads": strconv.Itoa(threads)}
	asked := "num_workers"
	if o.autoscales() {
		asked = "max_num_workers"
		set["autoscaling_algorithm"], set[asked] = "THROUGHPUT_BASED", strconv.Itoa(most)
	}
	if n, _ := strconv.Atoi(o.beam(asked)); n > most && !o.beamDryRun() {
		lane.Logger(o.LogFormat, o.Level()).Warn("workers_capped", asked, most, "asked_for", n, "why", "each worker has a request in flight at least; raise --concurrency, or --rate, for more")
	}
	for name, value := range set {
		if err := flag.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// dataflowWorker sets the flags that the user left out.
func (o *Options) dataflowWorker() error {
	if o.Runner != "dataflow" {
		return nil
	}
	if err := o.dataflowWorkers(); err != nil || o.beamDryRun() {
		return err
	}
	worker, err := o.workerBinary()
	if err != nil {
		return err
	}
	return flag.Set("worker_binary", worker)
}

// static reports whether a program is for Linux on amd64 and needs no library of
// the machine on which it runs.
func static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	libs, err := f.ImportedLibraries()
	return f.Machine == elf.EM_X86_64 && len(libs) == 0 && (err == nil || errors.Is(err, elf.ErrNoSymbols))
}
