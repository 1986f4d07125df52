package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
)

// runIDVariable gives a child process the id of its run (launch.RunIDVariable;
// that package brings Beam along, this one does without).
const runIDVariable = "SEED_RUN_ID"

// lastWordsVariable gives it a file for why it failed (cli.LastWordsVariable).
const lastWordsVariable = "SEED_LAST_WORDS"

// Secrets of the server that no run needs.
const (
	TokenVariable   = "SEED_SERVER_TOKEN"
	WebhookVariable = "SEED_WEBHOOK_URL"
)

// startTTL is the life of the lease under which a run is started: from the look
// whether another is active until the run has a lease of its own.
const startTTL = 30 * time.Second

// activeError says that a run whose files could overlap is active.
type activeError struct{ RunID string }

func (e *activeError) Error() string {
	return fmt.Sprintf("run %s of this job is active; wait until it ends, or cancel it", e.RunID)
}

// runner starts runs as child processes. A child has a process group of its
// own and no pipe to the server: a signal or a crash of one does not reach the
// other. What a run is and does is in the store.
type runner struct {
	store   store.Store
	program []string // the pipeline program and what comes before its flags
	environ []string
	stderr  *os.File
	log     *slog.Logger
	jobs    jobList
	started func(ledger.Run) // tells of a run that is being started

	starting sync.Mutex // one look and start at a time
	mu       sync.Mutex
	children map[string]*child // by job
	closed   bool              // the store may be gone

	ending    sync.WaitGroup // children whose end is being written
	following sync.WaitGroup
}

type child struct {
	run   ledger.Run
	ended chan struct{} // closed when the process has
}

// errBegun says that the run of this id has begun before, here or elsewhere.
var errBegun = errors.New("this run has begun before")

// start starts a run with flags of its own. A run of one id begins once.
func (r *runner) start(ctx context.Context, run ledger.Run, flags []string, by string) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	run.Options = public(flags)
	start, err := r.reserve(ctx, run)
	if err != nil {
		return err
	}
	var c *child
	if err = r.fresh(ctx, run.RunID); err == nil { // it may have come and gone already
		c, err = r.launch(ctx, run, flags)
	}
	if err != nil {
		return errors.Join(err, start.Release(context.WithoutCancel(ctx)))
	}
	r.log.Info("orchestrator_start", "run_id", run.RunID, "job", run.Job, "options", run.Options, "by", by)
	r.following.Go(func() { r.follow(context.WithoutCancel(ctx), c, start) })
	return nil
}

// fresh gives errBegun for a run that is in the ledger.
func (r *runner) fresh(ctx context.Context, id string) error {
	_, err := ledger.Load(ctx, r.store, id)
	switch {
	case err == nil:
		return errBegun
	case errors.Is(err, store.ErrNotExist):
		return nil
	}
	return err
}

// reserve acquires the lease under which a run of the job may be started, unless
// one is active. A run that is over may take a moment to give its leases back.
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
			// From here on until the run has its own lease, no other server starts one.
			start, err := lease.Acquire(ctx, lease.InStore(r.store), "start/"+run.Job, holder, startTTL)
			var held *lease.HeldError
			if errors.As(err, &held) {
				id = held.Holder.RunID
			} else if err != nil {
				return nil, err
			} else if id, err = r.active(ctx, run.Job); err == nil && id == "" {
				return start, nil
			} else if err = errors.Join(err, start.Release(ctx)); err != nil { // one began between the two looks
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

// active is the run of a job that is being started, holds the job's lease or
// continues without its launcher, whoever started it; "" when there is none.
func (r *runner) active(ctx context.Context, job string) (string, error) {
	r.mu.Lock()
	c := r.children[job]
	r.mu.Unlock()
	if c != nil {
		return c.run.RunID, nil
	}
	holder, held, err := lease.HolderUnder(ctx, r.store, job)
	if err != nil || held {
		return holder.RunID, err
	}
	return ledger.AsyncAtWork(ctx, r.store, job)
}

func (r *runner) command(args ...string) *exec.Cmd {
	cmd := exec.Command(r.program[0], slices.Concat(r.program[1:], args)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, TokenVariable+"=") || strings.HasPrefix(v, WebhookVariable+"=")
	})
	cmd.Env = append(cmd.Env, r.environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = r.stderr // the file itself: it outlives the server
	return cmd
}

func (r *runner) launch(ctx context.Context, run ledger.Run, flags []string) (*child, error) {
	cmd := r.command(append([]string{"--job=" + run.Job}, flags...)...)
	words, err := unnamedFile()
	if err != nil {
		return nil, fmt.Errorf("making a file for the last words of a run: %w", err)
	}
	cmd.ExtraFiles = []*os.File{words} // the child's number 3
	cmd.Env = append(cmd.Env, runIDVariable+"="+run.RunID, lastWordsVariable+"=3")
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the pipeline program; name it by --pipeline: %w", err), words.Close())
	}
	c := &child{run: run, ended: make(chan struct{})}
	r.mu.Lock()
	r.children[run.Job] = c
	r.mu.Unlock()
	r.started(run)
	go func() {
		defer close(c.ended)
		err := cmd.Wait()
		why := howEnded(cmd.ProcessState, words)
		r.mu.Lock()
		if r.closed { // what it left is for the next server
			r.mu.Unlock()
			return
		}
		r.ending.Add(1)
		r.mu.Unlock()
		defer r.ending.Done()
		r.end(context.WithoutCancel(ctx), c.run, why, err)
		r.mu.Lock()
		delete(r.children, run.Job)
		r.mu.Unlock()
	}()
	return c, nil
}

// follow keeps the starting lease until the run is in the ledger or has ended.
func (r *runner) follow(ctx context.Context, c *child, start *lease.Lease) {
	_, release := start.Keep(ctx, ledger.LeaseEvents(r.log.With("run_id", c.run.RunID)))
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	for begun := false; !begun; {
		select {
		case <-c.ended:
			begun = true
		case <-look.C:
			_, err := ledger.Load(ctx, r.store, c.run.RunID)
			begun = err == nil
		}
	}
	if err := release(); err != nil {
		r.log.Warn("start_lease_kept", "run_id", c.run.RunID, "error", ledger.Redact(err.Error()))
	}
}

// end leaves in the ledger how a child ended that could not do so itself.
func (r *runner) end(ctx context.Context, run ledger.Run, why, waited error) {
	level := slog.LevelInfo
	if waited != nil {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "run_process_ended", "run_id", run.RunID, "job", run.Job, "how", ledger.Why(why))
	at, err := ledger.Load(ctx, r.store, run.RunID)
	switch {
	case err == nil && !at.State.Over() && !at.Async:
		err = r.closeAbandoned(ctx, run.Job, run.RunID, why)
	case errors.Is(err, store.ErrNotExist):
		why = fmt.Errorf("the run did not begin: %w", why)
		run.State, run.FinishedAt, run.Error = ledger.Failed, time.Now(), ledger.Why(why)
		j, _ := r.jobs.named(run.Job)
		report := ledger.BuildReport(j.Job, run, ledger.Tally{}, run.FinishedAt)
		if err = ledger.Start(ctx, r.store, run); err == nil {
			err = ledger.WriteReport(ctx, r.store, report) // first: what is over is read once
		}
		if err == nil {
			_, err = ledger.Finish(ctx, r.store, run.RunID, ledger.Failed, why, run.FinishedAt)
		}
	}
	if err != nil {
		r.log.Error("run_not_closed", "run_id", run.RunID, "error", ledger.Redact(err.Error()))
	}
}

// unnamedFile is a file that goes with the last process that has it open.
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

// maxWords are read of what a child wrote last: the stacks of a crash follow
// the line that says why.
const maxWords = 8 << 10

// howEnded says how a child ended, in its own words where it had some.
func howEnded(state *os.ProcessState, words *os.File) error {
	how := state.String() // exit status 2; signal: killed
	said, err := io.ReadAll(io.NewSectionReader(words, 0, maxWords))
	err = errors.Join(err, words.Close())
	text, _, _ := strings.Cut(string(said), "\n\ngoroutine ")
	text = strings.TrimSpace(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s; what it said last cannot be read: %w", how, err)
	case text == "" && state.Success():
		return errors.New(how)
	case text == "" && state.ExitCode() < 0:
		return fmt.Errorf("%s: it was killed before it could say why; where nobody did that, look for the kernel's out-of-memory message", how)
	case text == "":
		return fmt.Errorf("%s; it said nothing, its log may tell more", how)
	}
	return fmt.Errorf("%s (%s)", text, how)
}

// closeAbandoned marks the runs of a job that a killed process left as
// running: the one of that id, if any, for that reason. While a process has the
// job's lease it does nothing.
func (r *runner) closeAbandoned(ctx context.Context, job, id string, why error) error {
	holder := lease.CurrentHolder()
	holder.Job = job
	l, err := lease.Acquire(ctx, lease.InStore(r.store), job, holder, startTTL)
	var held *lease.HeldError
	if errors.As(err, &held) {
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
	return errors.Join(ledger.CloseHolder(ctx, r.store, l.Before(), now), ledger.CloseAbandoned(ctx, r.store, job, now), l.Release(ctx))
}

// replay opens the inputs of a run's dead letters again, by the program that
// knows each job's way of doing so.
func (r *runner) replay(ctx context.Context, run ledger.Run, ids []string) error {
	cmd := r.command(append([]string{"dead-letters", "replay", "--job=" + run.Job, "--run=" + run.RunID}, ids...)...)
	if err := toItsEnd(ctx, cmd); err != nil {
		return fmt.Errorf("replaying the dead letters of run %s: %w", run.RunID, err)
	}
	return nil
}

// report writes the report of an asynchronous run that has ended down: nobody
// waited for it. It is made by the program, which knows what each job adds.
func (r *runner) report(ctx context.Context, id string) error {
	cmd := r.command("runs", "show", id)
	var text bytes.Buffer
	cmd.Stdout = &text
	if err := toItsEnd(ctx, cmd); err != nil {
		return fmt.Errorf("reading how run %s ended: %w", id, err)
	}
	var report ledger.Report
	if err := json.Unmarshal(text.Bytes(), &report); err != nil {
		return fmt.Errorf("reading how run %s ended: %w", id, err)
	}
	return ledger.WriteReport(ctx, r.store, report)
}

// toItsEnd runs a command of the program that is no run.
func toItsEnd(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the pipeline program; name it by --pipeline: %w", err)
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

// close waits until what has ended is written, and leaves what ends from now on
// to the next server.
func (r *runner) close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	written := make(chan struct{})
	go func() { r.ending.Wait(); close(written) }()
	select {
	case <-written:
	case <-ctx.Done():
	}
}

// live are the runs whose processes are children of this server.
func (r *runner) live() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, c := range r.children {
		ids = append(ids, c.run.RunID)
	}
	slices.Sort(ids)
	return ids
}

// public are the flags as a run's options are kept.
func public(flags []string) map[string]any {
	out := map[string]any{}
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		out[name] = value
	}
	return out
}
