package pipeline

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow"
	"google.golang.org/api/option"
	"google.golang.org/api/transport"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// dataflowThreads is how many lanes a Dataflow worker has at once where the
// user says nothing else.
const dataflowThreads = 4

// dataflowSlots is how many lanes can be at work at once on Dataflow.
func (o *Options) dataflowSlots() int {
	number := func(name string, or int) int {
		n, err := strconv.Atoi(o.beam(name))
		if err != nil || n < 1 {
			return or
		}
		return n
	}
	return number("num_workers", 1) * number("number_of_worker_harness_threads", dataflowThreads)
}

func init() {
	// A path of this machine says nothing to a worker, and the job is read by others.
	for _, name := range []string{"worker_binary", "dry_run", "number_of_worker_harness_threads", "autoscaling_algorithm"} {
		dataflow.DontUseFlagAsPipelineOption(name)
	}
}

// reachDataflow checks what Dataflow needs before anything is touched; a dry
// run of Beam's needs none of it.
func (o *Options) reachDataflow(ctx context.Context) error {
	if o.beamDryRun() {
		return nil
	}
	if _, err := transport.Creds(ctx, option.WithScopes("https://www.googleapis.com/auth/cloud-platform")); err != nil {
		return usagef("--runner=dataflow needs Google credentials: set GOOGLE_APPLICATION_CREDENTIALS to a service account's file, or run `gcloud auth application-default login`: %w", err)
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(o.beam("staging_location"), "gs://"), "/")
	s, err := store.Open(ctx, "gs://"+bucket)
	switch {
	case err == nil:
		return s.Close()
	case store.Retryable(err):
		return fmt.Errorf("--staging_location: %w; try again when it answers", err)
	}
	return usagef("--staging_location: %w", err)
}

// beamDryRun says that Beam prints the Dataflow job and sends nothing.
func (o *Options) beamDryRun() bool {
	return o.Runner == "dataflow" && o.beam("dry_run") == "true" && !o.dry()
}

// printDataflow prints the job that a run would submit, as JSON: no network, no
// lease, nothing written.
func printDataflow(ctx context.Context, o Options, job string, stdout io.Writer, build func(beam.Scope, lane.Config, string)) error {
	if !beam.Initialized() {
		beam.Init()
	}
	out := &jobPrinter{to: stdout}
	beamlog.SetLogger(out)
	// Beam asks Google about the buckets, also in a dry run, and warns where it
	// has no credentials for that.
	if err := errors.Join(os.Unsetenv("STORAGE_EMULATOR_HOST"), os.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(os.DevNull, "none"))); err != nil {
		return err
	}
	if err := o.dataflowWorker(ctx, ""); err != nil {
		return err
	}
	p, scope := beam.NewPipelineWithRoot()
	build(scope, lane.Config{Job: job, RunID: "dry-run", Store: o.Store, Slots: o.slots(), Web: o.web(), Grace: grace, LogFormat: o.LogFormat, LogLevel: o.level(),
		Leases: true, LeaseTTL: o.LeaseTTL}, "")
	if err := execute(ctx, o, p); err != nil {
		return err
	}
	if out.jobs == 0 && out.err == nil {
		return errors.New("printing the job: Beam gave none")
	}
	return out.err
}

// jobPrinter prints the job out of what Beam logs in a dry run: the one
// message that is JSON.
type jobPrinter struct {
	to   io.Writer
	jobs int
	err  error
}

// Log implements Beam's log.Logger.
func (p *jobPrinter) Log(_ context.Context, _ beamlog.Severity, _ int, msg string) {
	if !json.Valid([]byte(msg)) {
		return
	}
	p.jobs++
	_, err := fmt.Fprintln(p.to, msg)
	p.err = errors.Join(p.err, err)
}

// dataflowWorker fills in the flags that the user left out: one lane cannot be
// split, so the number of workers is fixed, and the worker is this program,
// static, as Beam's container wants it.
func (o *Options) dataflowWorker(ctx context.Context, dir string) error {
	if o.Runner != "dataflow" {
		return nil
	}
	for name, value := range map[string]string{"autoscaling_algorithm": "NONE", "number_of_worker_harness_threads": strconv.Itoa(dataflowThreads)} {
		if now := o.beam(name); now != "" && now != "0" {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			return err
		}
	}
	if o.beam("worker_binary") != "" || o.beamDryRun() {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, which the workers run: %w", err)
	}
	if !static(self) {
		self = filepath.Join(dir, "worker")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", self, "github.com/newsfork/seed-engine/cmd/pipeline")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building a static worker (or build one with CGO_ENABLED=0 GOOS=linux GOARCH=amd64 and give --worker_binary): %w: %s", err, out)
		}
	}
	return flag.Set("worker_binary", self)
}

// static says whether a program is one for Linux on amd64 that needs no
// library of the machine it runs on.
func static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read from
	libs, err := f.ImportedLibraries()
	return f.Machine == elf.EM_X86_64 && len(libs) == 0 && (err == nil || errors.Is(err, elf.ErrNoSymbols))
}
