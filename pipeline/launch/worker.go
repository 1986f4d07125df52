package launch

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"

	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Worker makes the process a Beam worker when a runner started it as one, and
// then does not return. A runner starts the program in one of two ways:
//
//   - with --id and --provision_endpoint (Beam's container contract,
//     https://s.apache.org/beam-fn-api-container-contract): the command of
//     --environment_type=PROCESS. Beam's own boot program would leave a staged
//     copy of this binary behind for each job, so the program boots itself.
//   - with --worker=true: after booting, and by the boot program of Beam's container.
//
// A worker has no flags, files or environment of the launcher: options come in
// DoFn fields, secrets from its own environment.
func Worker(args []string, stderr io.Writer) {
	var err error
	switch {
	case slices.ContainsFunc(args, func(a string) bool { return a == "--worker" || a == "--worker=true" }):
		if err = flag.CommandLine.Parse(args); err == nil {
			lane.LogToRunner()
			beam.Init() // works until the runner ends it
			err = errors.New("the runner's connection ended")
		}
	case bootArg(args, "id") != "" && bootArg(args, "provision_endpoint") != "":
		err = boot(bootArg(args, "id"), bootArg(args, "provision_endpoint"), args)
	default:
		return
	}
	_, _ = fmt.Fprintf(stderr, "worker: %v\n", err) // there is no log yet
	os.Exit(1)
}

// bootArg returns the value of one of the container contract's flags, "" without it.
func bootArg(args []string, name string) string {
	for i, a := range args {
		if v, ok := strings.CutPrefix(strings.TrimLeft(a, "-"), name+"="); ok && strings.HasPrefix(a, "-") {
			return v
		}
		if (a == "--"+name || a == "-"+name) && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// provisionWithin is how long a runner may take to send a worker its options.
const provisionWithin = time.Minute

// boot gets the worker's options from the runner and becomes the worker by an
// exec: it stays the same process, so that the runner can end it.
func boot(id, endpoint string, args []string) error {
	ctx, cancel := context.WithTimeout(grpcx.WriteWorkerID(context.Background(), id), provisionWithin)
	defer cancel()
	info, err := tools.ProvisionInfo(ctx, endpoint)
	if err != nil {
		return fmt.Errorf("getting the worker's options from the runner at %s: %w", endpoint, err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	as, err := workerArgs(id, info, args)
	if err != nil {
		return err
	}
	options, err := tools.ProtoToJSON(info.GetPipelineOptions())
	if err != nil {
		return fmt.Errorf("encoding the pipeline's options: %w", err)
	}
	file, err := unnamedFile(options)
	if err != nil {
		return fmt.Errorf("keeping the pipeline's options: %w", err)
	}
	env := append(os.Environ(), "PIPELINE_OPTIONS_FILE="+file)
	if s := info.GetStatusEndpoint().GetUrl(); s != "" {
		env = append(env, "STATUS_ENDPOINT="+s)
	}
	if c := info.GetRunnerCapabilities(); len(c) > 0 {
		env = append(env, "RUNNER_CAPABILITIES="+strings.Join(c, " "))
	}
	return fmt.Errorf("starting the worker: %w", syscall.Exec(self, append([]string{self}, as...), env))
}

// workerArgs returns the flags of Beam's harness. As in Beam's own boot program,
// what the runner provisions overrides what it gave on the command line.
func workerArgs(id string, info *fnpb.ProvisionInfo, args []string) ([]string, error) {
	out := []string{"--worker=true", "--id=" + id}
	for _, e := range []struct{ name, url string }{{"logging_endpoint", info.GetLoggingEndpoint().GetUrl()}, {"control_endpoint", info.GetControlEndpoint().GetUrl()}} {
		if e.url == "" {
			e.url = bootArg(args, e.name)
		}
		if e.url == "" {
			return nil, fmt.Errorf("the runner gave no --%s", e.name)
		}
		out = append(out, "--"+e.name+"="+e.url)
	}
	return out, nil
}

// unnamedFile writes text to a file without a name that lives as long as the process, also after an exec.
func unnamedFile(text string) (string, error) {
	f, err := os.CreateTemp("", "beam-options-")
	if err != nil {
		return "", err
	}
	if _, err := f.WriteString(text); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	fd, err := syscall.Dup(int(f.Fd())) // without close-on-exec
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return "", err
	}
	return fmt.Sprintf("/dev/fd/%d", fd), nil
}

// workerSetup prepares the workers of a job, so that Beam compiles and copies no
// program itself. It also gives Beam a temporary folder of its own, because Beam
// never removes its temporary files. undo removes all of it.
func (o *Options) workerSetup() (undo func() error, err error) {
	dir, remove, err := scratch.Dir("newsfork-run-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for Beam's temporary files: %w", err)
	}
	old, had := os.LookupEnv("TMPDIR")
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return nil, errors.Join(err, remove())
	}
	undo = func() error {
		if had {
			return errors.Join(os.Setenv("TMPDIR", old), remove())
		}
		return errors.Join(os.Unsetenv("TMPDIR"), remove())
	}
	if err := errors.Join(o.processWorker(dir), o.dataflowWorker(), o.setParallelism()); err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// processWorker sets the flags of --environment_type=PROCESS that the user left
// out: workers run this program in its place, so nothing needs to be staged.
func (o *Options) processWorker(dir string) error {
	if !o.Remote() || o.Runner == "dataflow" || !strings.EqualFold(o.beam("environment_type"), "process") {
		return nil
	}
	if o.beam("environment_config") == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this program, which the workers run: %w", err)
		}
		config, err := json.Marshal(map[string]string{"command": self})
		if err != nil {
			return err
		}
		if err := flag.Set("environment_config", string(config)); err != nil {
			return err
		}
	}
	if o.beam("worker_binary") != "" {
		return nil
	}
	empty := filepath.Join(dir, "worker")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return fmt.Errorf("making the empty --worker_binary: %w", err)
	}
	return flag.Set("worker_binary", empty)
}
