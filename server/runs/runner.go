package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
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
	"github.com/newsfork/seed-engine/server/known"
)

// RunIDVariable tells a child process the id of its run. It is
// launch.RunIDVariable, which cannot be imported: that package links Beam.
const RunIDVariable = "SEED_RUN_ID"

// ScheduleVariable is launch.ScheduleVariable.
const ScheduleVariable = "SEED_SCHEDULE"

// startedByVariable is launch.startedByVariable.
const startedByVariable = "SEED_STARTED_BY"

// lastWordsVariable names the file descriptor to which a child process writes why
// it failed. It is cli.lastWordsVariable.
const lastWordsVariable = "SEED_LAST_WORDS"

// StartLeaseTTL is the time to live of the lease for starting a run. The server has
// that lease from its check for an active run until the run has its own lease.
const StartLeaseTTL = 30 * time.Second

// ActiveError says that another run of the job is active.
type ActiveError struct{ RunID string }

func (e *ActiveError) Error() string {
	return fmt.Sprintf("run %s of this job is active; wait until it ends, or cancel it", e.RunID)
}

// Unwrap is the answer to the request that would start another one.
func (e *ActiveError) Unwrap() error {
	return &known.AnswerError{Code: http.StatusConflict, Message: e.Error(), RunID: e.RunID}
}

// Runner starts runs as child processes. A child has a process group of its
// own and no pipe to the server, so that a signal or crash of one does not reach the
// other. All that is known about a run is in the store.
type Runner struct {
	Store   store.Store
	Program []string // the pipeline program and its first arguments
	Environ []string
	Stderr  *os.File
	Log     *slog.Logger
	Jobs    known.Jobs
	OnStart func(ledger.Run) // called for each run that is started

	starting sync.Mutex // one start at a time
	mu       sync.Mutex
	children map[string]*child // by job
	closed   bool              // the store may be closed
	// Unrecorded are processes that have ended; the store has not taken how.
	Unrecorded []*child

	recordings sync.WaitGroup // of recordEnd
	Keepers    sync.WaitGroup // of keepStartLease
}

type child struct {
	Run   ledger.Run
	Ended chan struct{} // closed when the process has ended
	why   error         // how it ended
}

// ErrAlreadyStarted says that the run of this id was started before, by this server
// or another one.
var ErrAlreadyStarted = errors.New("this run was started before")

// NotBegun begins the error of a run whose process ended before it was in the ledger.
const NotBegun = "the run did not begin"

// Start starts a run with its flags. It never starts two runs of one id.
func (r *Runner) Start(ctx context.Context, run ledger.Run, flags []string, by string) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	run.Options = r.Options(run.Job, flags)
	r.RecordEnds(ctx) // the new run would say of the one before that it was killed
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
	r.Log.Info("orchestrator_start", "run_id", run.RunID, "job", run.Job, "options", run.Options, "by", by)
	r.Keepers.Go(func() { r.keepStartLease(context.WithoutCancel(ctx), c, start) })
	return nil
}

// checkNotStarted returns errAlreadyStarted for a run that is in the ledger.
func (r *Runner) checkNotStarted(ctx context.Context, id string) error {
	_, err := ledger.Load(ctx, r.Store, id)
	switch {
	case err == nil:
		return ErrAlreadyStarted
	case errors.Is(err, store.ErrNotExist):
		return nil
	}
	return err
}

// reserve acquires the lease for starting a run of the job, or returns an activeError.
// If the active run is over, reserve waits a moment for it to release its leases.
func (r *Runner) reserve(ctx context.Context, run ledger.Run) (*lease.Lease, error) {
	holder := lease.CurrentHolder()
	holder.RunID, holder.Job = run.RunID, run.Job
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	for {
		id, err := r.Active(ctx, run.Job)
		if err != nil {
			return nil, err
		}
		if id == "" {
			// With this lease no other server starts a run of the job.
			start, err := lease.Acquire(ctx, lease.InStore(r.Store), "start/"+run.Job, holder, StartLeaseTTL)
			var inUse *lease.InUseError
			if errors.As(err, &inUse) {
				id = inUse.Holder.RunID
			} else if err != nil {
				return nil, err
			} else if id, err = r.Active(ctx, run.Job); err == nil && id == "" {
				return start, nil
			} else if err = errors.Join(err, start.Release(ctx)); err != nil { // a run began between the two checks
				return nil, err
			}
		}
		other, err := ledger.Load(ctx, r.Store, id)
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return nil, err
		}
		if err != nil || !other.State.Over() {
			return nil, &ActiveError{id}
		}
		again := time.NewTimer(50 * time.Millisecond)
		select {
		case <-again.C:
		case <-deadline.C:
			again.Stop()
			return nil, &ActiveError{id}
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		}
	}
}

// Active is the id of the job's active run, whoever started it; "" when there is
// none. A run is active while it is being started, and while it has the job's lease.
func (r *Runner) Active(ctx context.Context, job string) (string, error) {
	if c := r.Processes()[job]; c != nil {
		return c.Run.RunID, nil
	}
	holder, inUse, err := lease.ActiveHolder(ctx, r.Store, job)
	if !inUse {
		return "", err
	}
	return holder.RunID, err
}

// Command is a command of the pipeline program, in a process group of its own.
func (r *Runner) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(r.Program[0], slices.Concat(r.Program[1:], args)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), known.IsSecret)
	cmd.Env = append(cmd.Env, r.Environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = r.Stderr // an *os.File, not a pipe: the child can write to it after the server has ended
	return cmd
}

func (r *Runner) launch(ctx context.Context, run ledger.Run, flags []string) (*child, error) {
	cmd := r.Command(append([]string{"--job=" + run.Job}, flags...)...)
	lastWords, err := unnamedFile()
	if err != nil {
		return nil, fmt.Errorf("making a file for a run's last error message: %w", err)
	}
	cmd.ExtraFiles = []*os.File{lastWords} // the child's file descriptor 3
	cmd.Env = append(cmd.Env, RunIDVariable+"="+run.RunID, ScheduleVariable+"="+run.Schedule, startedByVariable+"="+run.StartedBy,
		lastWordsVariable+"=3")
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a run's process: %w", err), lastWords.Close())
	}
	c := &child{Run: run, Ended: make(chan struct{})}
	r.mu.Lock()
	if r.children == nil {
		r.children = map[string]*child{}
	}
	r.children[run.Job] = c
	r.mu.Unlock()
	r.OnStart(run)
	go func() {
		defer close(c.Ended)
		err := cmd.Wait()
		c.why = howEnded(cmd.ProcessState, lastWords)
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelWarn
		}
		r.Log.Log(ctx, level, "run_process_ended", "run_id", run.RunID, "job", run.Job, "how", ledger.ErrorText(c.why))
		r.mu.Lock()
		if r.closed { // the next server records its end
			r.mu.Unlock()
			return
		}
		r.recordings.Add(1)
		r.mu.Unlock()
		defer r.recordings.Done()
		err = r.recordEnd(context.WithoutCancel(ctx), c.Run, c.why)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.children, run.Job)
		if err != nil {
			r.Log.Error("run_not_closed", "run_id", run.RunID, "error", ledger.Redact(err.Error()))
			r.Unrecorded = append(r.Unrecorded, c)
		}
	}()
	return c, nil
}

// keepStartLease keeps the start lease until the run is in the ledger or has ended.
func (r *Runner) keepStartLease(ctx context.Context, c *child, start *lease.Lease) {
	_, release := start.Keep(ctx, ledger.LogLeaseEvent(r.Log.With("run_id", c.Run.RunID)))
	poll := time.NewTicker(250 * time.Millisecond)
	defer poll.Stop()
	for begun := false; !begun; {
		select {
		case <-c.Ended:
			begun = true
		case <-poll.C:
			_, err := ledger.Load(ctx, r.Store, c.Run.RunID)
			begun = err == nil
		}
	}
	if err := release(); err != nil {
		r.Log.Warn("start_lease_kept", "run_id", c.Run.RunID, "error", ledger.Redact(err.Error()))
	}
}

// RecordEnds records what could not be recorded when it happened, such as because the
// disk was full: often the reason why the run failed too.
func (r *Runner) RecordEnds(ctx context.Context) {
	r.mu.Lock()
	left := r.Unrecorded
	r.Unrecorded = nil
	r.mu.Unlock()
	left = slices.DeleteFunc(left, func(c *child) bool { return r.recordEnd(ctx, c.Run, c.why) == nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Unrecorded = append(r.Unrecorded, left...)
}

// recordEnd writes to the ledger how a run ended, if its process could not.
func (r *Runner) recordEnd(ctx context.Context, run ledger.Run, why error) error {
	at, err := ledger.Load(ctx, r.Store, run.RunID)
	switch {
	case err == nil && !at.State.Over():
		return r.CloseAbandoned(ctx, run.Job, run.RunID, why)
	case errors.Is(err, store.ErrNotExist):
		why = fmt.Errorf("%s: %w", NotBegun, why)
		run.State, run.FinishedAt, run.Error = ledger.Failed, time.Now(), ledger.ErrorText(why)
		j, _ := r.Jobs.Named(run.Job)
		report := ledger.BuildReport(j.Job.Job, run, ledger.Tally{}, run.FinishedAt)
		if err = ledger.Start(ctx, r.Store, run); err == nil {
			err = ledger.WriteReport(ctx, r.Store, report) // before the state: the board reads the report when the run is over
		}
		if err == nil {
			_, err = ledger.Finish(ctx, r.Store, run.RunID, ledger.Failed, why, run.FinishedAt)
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

// CloseAbandoned marks as interrupted the runs of a job that a killed process left
// in the state running: first the one of that id, if any, with that reason. It does
// nothing while a process has the job's lease.
func (r *Runner) CloseAbandoned(ctx context.Context, job, id string, why error) error {
	holder := lease.CurrentHolder()
	holder.Job = job
	l, err := lease.Acquire(ctx, lease.InStore(r.Store), job, holder, StartLeaseTTL)
	var inUse *lease.InUseError
	if errors.As(err, &inUse) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	if id != "" {
		if err := ledger.Abandon(ctx, r.Store, id, why, now); err != nil {
			return errors.Join(err, l.Release(ctx))
		}
	}
	return errors.Join(ledger.CloseHolder(ctx, r.Store, l.Previous(), now), ledger.CloseAbandoned(ctx, r.Store, job, now), l.Release(ctx))
}

// Replay lets the next run of a job try the inputs of its dead letters again: of those
// that have the ids or, without ids, of all of a run. The pipeline program does it,
// because it depends on the job.
func (r *Runner) Replay(ctx context.Context, job, runID string, ids []string) error {
	args := []string{"dead-letters", "replay", "--job=" + job}
	if runID != "" {
		args = append(args, "--run="+runID)
	}
	if err := RunCommand(ctx, r.Command(append(args, ids...)...)); err != nil {
		return fmt.Errorf("replaying dead letters of job %s: %w", job, err)
	}
	return nil
}

// RunCommand runs a command of the pipeline program that is not a run.
func RunCommand(ctx context.Context, cmd *exec.Cmd) error {
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

// Close waits until the ends of runs that have ended are recorded. The next server
// records those of runs that end later.
func (r *Runner) Close(ctx context.Context) {
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

// Processes are the runs whose processes are children of this server, by job.
func (r *Runner) Processes() map[string]*child {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.children)
}

// Live are the ids of the runs whose processes are children of this server.
func (r *Runner) Live() []string {
	var ids []string
	for _, c := range r.Processes() {
		ids = append(ids, c.Run.RunID)
	}
	slices.Sort(ids)
	return ids
}

// value is that of an option that all runs have.
func (r *Runner) value(name string) (value string, given bool) {
	prefix := option.Variable(name) + "="
	i := slices.IndexFunc(r.Environ, func(e string) bool { return strings.HasPrefix(e, prefix) })
	if i < 0 {
		return "", false
	}
	return r.Environ[i][len(prefix):], true
}

// Option is the value of an option that all runs have, "" if they have none.
func (r *Runner) Option(name string) string {
	value, _ := r.value(name)
	return value
}

// Options are those of a run that begins, as far as a report may show them: the server's, and
// those in flags, which are the run's own.
func (r *Runner) Options(job string, flags []string) map[string]any {
	out := map[string]any{}
	j, _ := r.Jobs.Named(job)
	for _, known := range j.Options {
		if value, given := r.value(known.Name); given {
			out[known.Name] = value
		}
	}
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		out[name] = value
	}
	return out
}
