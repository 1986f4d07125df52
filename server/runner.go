package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// runIDVariable tells a child process the id of its run. It is
// launch.RunIDVariable, which cannot be imported: that package links Beam.
const runIDVariable = "SEED_RUN_ID"

// scheduleVariable is launch.ScheduleVariable.
const scheduleVariable = "SEED_SCHEDULE"

// lastWordsVariable names the file descriptor to which a child process writes why
// it failed. It is cli.LastWordsVariable.
const lastWordsVariable = "SEED_LAST_WORDS"

// startLeaseTTL is the time to live of the lease for starting a run. The server has
// that lease from its check for an active run until the run has its own lease.
const startLeaseTTL = 30 * time.Second

// activeError says that another run of the job is active.
type activeError struct{ RunID string }

func (e *activeError) OfRun() string { return e.RunID }

func (e *activeError) Error() string {
	return fmt.Sprintf("run %s of this job is active; wait until it ends, or cancel it", e.RunID)
}

// runner starts runs as child processes. A child has a process group of its
// own and no pipe to the server, so that a signal or crash of one does not reach the
// other. All that is known about a run is in the store.
type runner struct {
	store   store.Store
	program []string // the pipeline program and its first arguments
	environ []string
	stderr  *os.File
	log     *slog.Logger
	jobs    jobList
	onStart func(ledger.Run) // called for each run that is started

	starting sync.Mutex // one start at a time
	mu       sync.Mutex
	children map[string]*child // by job
	closed   bool              // the store may be closed
	// unrecorded are processes that have ended; the store has not taken how.
	unrecorded []*child

	recordings sync.WaitGroup // of recordEnd
	keepers    sync.WaitGroup // of keepStartLease
}

type child struct {
	run   ledger.Run
	ended chan struct{} // closed when the process has ended
	why   error         // how it ended
}

// errAlreadyStarted says that the run of this id was started before, by this server
// or another one.
var errAlreadyStarted = errors.New("this run was started before")

// start starts a run with its flags. It never starts two runs of one id.
func (r *runner) start(ctx context.Context, run ledger.Run, flags []string, by string) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	run.Options = r.options(run.Job, flags)
	r.recordEnds(ctx) // the new run would say of the one before that it was killed
	start, err := r.reserve(ctx, run)
	if err != nil {
		return err
	}
	var c *child
	if err = r.checkNotStarted(ctx, run.RunID); err == nil { // another server may have started it, and it may be over
		c, err = r.launch(ctx, run, flags)
	}
	if err != nil {
		return errors.Join(err, start.Release(context.WithoutCancel(ctx)))
	}
	r.log.Info("orchestrator_start", "run_id", run.RunID, "job", run.Job, "options", run.Options, "by", by)
	r.keepers.Go(func() { r.keepStartLease(context.WithoutCancel(ctx), c, start) })
	return nil
}

// checkNotStarted returns errAlreadyStarted for a run that is in the ledger.
func (r *runner) checkNotStarted(ctx context.Context, id string) error {
	_, err := ledger.Load(ctx, r.store, id)
	switch {
	case err == nil:
		return errAlreadyStarted
	case errors.Is(err, store.ErrNotExist):
		return nil
	}
	return err
}

// reserve acquires the lease for starting a run of the job, or returns an activeError.
// If the active run is over, reserve waits a moment for it to release its leases.
func (r *runner) reserve(ctx context.Context, run ledger.Run) (*lease.Lease, error) {
	holder := lease.CurrentHolder()
	holder.RunID, holder.Job = run.RunID, run.Job
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	for {
		id, err := r.active(ctx, run.Job)
		if err != nil {
			return nil, err
		}
		if id == "" {
			// With this lease no other server starts a run of the job.
			start, err := lease.Acquire(ctx, lease.InStore(r.store), "start/"+run.Job, holder, startLeaseTTL)
			var inUse *lease.InUseError
			if errors.As(err, &inUse) {
				id = inUse.Holder.RunID
			} else if err != nil {
				return nil, err
			} else if id, err = r.active(ctx, run.Job); err == nil && id == "" {
				return start, nil
			} else if err = errors.Join(err, start.Release(ctx)); err != nil { // a run began between the two checks
				return nil, err
			}
		}
		other, err := ledger.Load(ctx, r.store, id)
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return nil, err
		}
		if err != nil || !other.State.Over() {
			return nil, &activeError{id}
		}
		again := time.NewTimer(50 * time.Millisecond)
		select {
		case <-again.C:
		case <-deadline.C:
			again.Stop()
			return nil, &activeError{id}
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		}
	}
}

// active is the id of the job's active run, whoever started it; "" when there is
// none. A run is active while it is being started, while it has the job's lease, and
// while it continues without its launcher.
func (r *runner) active(ctx context.Context, job string) (string, error) {
	if c := r.processes()[job]; c != nil {
		return c.run.RunID, nil
	}
	holder, inUse, err := lease.ActiveHolder(ctx, r.store, job)
	if err != nil || inUse {
		return holder.RunID, err
	}
	return ledger.ActiveAsync(ctx, r.store, job)
}

func (r *runner) command(args ...string) *exec.Cmd {
	cmd := exec.Command(r.program[0], slices.Concat(r.program[1:], args)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), isSecret)
	cmd.Env = append(cmd.Env, r.environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = r.stderr // an *os.File, not a pipe: the child can write to it after the server has ended
	return cmd
}

func (r *runner) launch(ctx context.Context, run ledger.Run, flags []string) (*child, error) {
	cmd := r.command(append([]string{"--job=" + run.Job}, flags...)...)
	lastWords, err := unnamedFile()
	if err != nil {
		return nil, fmt.Errorf("making a file for a run's last error message: %w", err)
	}
	cmd.ExtraFiles = []*os.File{lastWords} // the child's file descriptor 3
	cmd.Env = append(cmd.Env, runIDVariable+"="+run.RunID, scheduleVariable+"="+run.Schedule, lastWordsVariable+"=3")
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a run's process: %w", err), lastWords.Close())
	}
	c := &child{run: run, ended: make(chan struct{})}
	r.mu.Lock()
	if r.children == nil {
		r.children = map[string]*child{}
	}
	r.children[run.Job] = c
	r.mu.Unlock()
	r.onStart(run)
	go func() {
		defer close(c.ended)
		err := cmd.Wait()
		c.why = howEnded(cmd.ProcessState, lastWords)
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelWarn
		}
		r.log.Log(ctx, level, "run_process_ended", "run_id", run.RunID, "job", run.Job, "how", ledger.ErrorText(c.why))
		r.mu.Lock()
		if r.closed { // the next server records its end
			r.mu.Unlock()
			return
		}
		r.recordings.Add(1)
		r.mu.Unlock()
		defer r.recordings.Done()
		err = r.recordEnd(context.WithoutCancel(ctx), c.run, c.why)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.children, run.Job)
		if err != nil {
			r.log.Error("run_not_closed", "run_id", run.RunID, "error", ledger.Redact(err.Error()))
			r.unrecorded = append(r.unrecorded, c)
		}
	}()
	return c, nil
}

// keepStartLease keeps the start lease until the run is in the ledger or has ended.
func (r *runner) keepStartLease(ctx context.Context, c *child, start *lease.Lease) {
	_, release := start.Keep(ctx, ledger.LogLeaseEvent(r.log.With("run_id", c.run.RunID)))
	poll := time.NewTicker(250 * time.Millisecond)
	defer poll.Stop()
	for begun := false; !begun; {
		select {
		case <-c.ended:
			begun = true
		case <-poll.C:
			_, err := ledger.Load(ctx, r.store, c.run.RunID)
			begun = err == nil
		}
	}
	if err := release(); err != nil {
		r.log.Warn("start_lease_kept", "run_id", c.run.RunID, "error", ledger.Redact(err.Error()))
	}
}

// recordEnds records what could not be recorded when it happened, such as because the
// disk was full: often the reason why the run failed too.
func (r *runner) recordEnds(ctx context.Context) {
	r.mu.Lock()
	left := r.unrecorded
	r.unrecorded = nil
	r.mu.Unlock()
	left = slices.DeleteFunc(left, func(c *child) bool { return r.recordEnd(ctx, c.run, c.why) == nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unrecorded = append(r.unrecorded, left...)
}

// recordEnd writes to the ledger how a run ended, if its process could not.
func (r *runner) recordEnd(ctx context.Context, run ledger.Run, why error) error {
	at, err := ledger.Load(ctx, r.store, run.RunID)
	switch {
	case err == nil && !at.State.Over() && !at.Async:
		return r.closeAbandoned(ctx, run.Job, run.RunID, why)
	case errors.Is(err, store.ErrNotExist):
		why = fmt.Errorf("the run did not begin: %w", why)
		run.State, run.FinishedAt, run.Error = ledger.Failed, time.Now(), ledger.ErrorText(why)
		j, _ := r.jobs.named(run.Job)
		report := ledger.BuildReport(j.Job.Job, run, ledger.Tally{}, run.FinishedAt)
		if err = ledger.Start(ctx, r.store, run); err == nil {
			err = ledger.WriteReport(ctx, r.store, report) // before the state: the board reads the report when the run is over
		}
		if err == nil {
			_, err = ledger.Finish(ctx, r.store, run.RunID, ledger.Failed, why, run.FinishedAt)
		}
	}
	return err
}

// unnamedFile opens a temporary file without a name. It disappears with the last
// process that has it open.
func unnamedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "seed-run-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// maxLastWords is how many bytes of a child's last error message are read. In a crash
// the reason comes first, before the stacks.
const maxLastWords = 8 << 10

// howEnded says how a child ended, with its last error message if it wrote one.
func howEnded(state *os.ProcessState, lastWords *os.File) error {
	how := state.String() // exit status 2; signal: killed
	b, err := io.ReadAll(io.NewSectionReader(lastWords, 0, maxLastWords))
	err = errors.Join(err, lastWords.Close())
	text, _, _ := strings.Cut(string(b), "\n\ngoroutine ")
	text = strings.TrimSpace(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s; reading its last error message: %w", how, err)
	case text == "" && state.Success():
		return errors.New(how)
	case text == "" && state.ExitCode() < 0:
		return fmt.Errorf("%s: it ended without an error message; if nobody killed it, look for the kernel's out-of-memory message", how)
	case text == "":
		return fmt.Errorf("%s; it left no error message, see its log", how)
	}
	return fmt.Errorf("%s (%s)", text, how)
}

// closeAbandoned marks as interrupted the runs of a job that a killed process left
// in the state running: first the one of that id, if any, with that reason. It does
// nothing while a process has the job's lease.
func (r *runner) closeAbandoned(ctx context.Context, job, id string, why error) error {
	holder := lease.CurrentHolder()
	holder.Job = job
	l, err := lease.Acquire(ctx, lease.InStore(r.store), job, holder, startLeaseTTL)
	var inUse *lease.InUseError
	if errors.As(err, &inUse) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	if id != "" {
		if err := ledger.Abandon(ctx, r.store, id, why, now); err != nil {
			return errors.Join(err, l.Release(ctx))
		}
	}
	return errors.Join(ledger.CloseHolder(ctx, r.store, l.Previous(), now), ledger.CloseAbandoned(ctx, r.store, job, now), l.Release(ctx))
}

// replay lets the next run of a job try the inputs of its dead letters again: of those
// that have the ids or, without ids, of all of a run. The pipeline program does it,
// because it depends on the job.
func (r *runner) replay(ctx context.Context, job, runID string, ids []string) error {
	args := []string{"dead-letters", "replay", "--job=" + job}
	if runID != "" {
		args = append(args, "--run="+runID)
	}
	if err := runCommand(ctx, r.command(append(args, ids...)...)); err != nil {
		return fmt.Errorf("replaying dead letters of job %s: %w", job, err)
	}
	return nil
}

// report writes the report of an asynchronous run that has ended, because no launcher
// waited for it. The pipeline program makes it, because it depends on the job.
func (r *runner) report(ctx context.Context, id string) error {
	cmd := r.command("runs", "show", id)
	var text bytes.Buffer
	cmd.Stdout = &text
	if err := runCommand(ctx, cmd); err != nil {
		return fmt.Errorf("reading how run %s ended: %w", id, err)
	}
	var report ledger.Report
	if err := json.Unmarshal(text.Bytes(), &report); err != nil {
		return fmt.Errorf("reading how run %s ended: %w", id, err)
	}
	return ledger.WriteReport(ctx, r.store, report)
}

// runCommand runs a command of the pipeline program that is not a run.
func runCommand(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a run's process: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), cmd.Process.Kill(), <-done)
	}
}

// close waits until the ends of runs that have ended are recorded. The next server
// records those of runs that end later.
func (r *runner) close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	written := make(chan struct{})
	go func() { r.recordings.Wait(); close(written) }()
	select {
	case <-written:
	case <-ctx.Done():
	}
}

// processes are the runs whose processes are children of this server, by job.
func (r *runner) processes() map[string]*child {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.children)
}

// live are the ids of the runs whose processes are children of this server.
func (r *runner) live() []string {
	var ids []string
	for _, c := range r.processes() {
		ids = append(ids, c.run.RunID)
	}
	slices.Sort(ids)
	return ids
}

// options are those of a run that begins, as far as a report may show them: the server's, and
// those in flags, which are the run's own.
func (r *runner) options(job string, flags []string) map[string]any {
	out := map[string]any{}
	j, _ := r.jobs.named(job)
	for _, known := range j.Options {
		prefix := option.Variable(known.Name) + "="
		if i := slices.IndexFunc(r.environ, func(e string) bool { return strings.HasPrefix(e, prefix) }); i >= 0 {
			out[known.Name] = r.environ[i][len(prefix):]
		}
	}
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		out[name] = value
	}
	return out
}
