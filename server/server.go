// Package server is the server for operators: it starts runs by HTTP or cron,
// shows their progress, pauses and cancels them, raises alerts, and writes daily and
// weekly reports.
//
// It does none of a run's work. Each run is a child process of the pipeline
// program, and all that is known about it is in the store's ledger (io/ledger). So
// a server can be killed and restarted, and several servers can share one store.
// The package does not link Beam, so its tests build fast. No promise: see docs/library.md.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/face"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
	"github.com/newsfork/seed-engine/server/runs"
	"github.com/newsfork/seed-engine/server/schedule"
)

// Settings configure a server.
type Settings struct {
	Jobs    []option.Job // the same as ParseConfig or ReadConfig got
	Config  Config
	Store   store.Store
	Program []string // the pipeline program's file and first arguments
	Environ []string // of each run, added to the server's own
	Token   string   // "" for none, which is allowed on loopback only
	// ReadToken is of those who may only look; "" for none.
	ReadToken      string
	alarm.Settings // where alerts are sent; Email is that of Config
	Log            *slog.Logger
	Stderr         *os.File // where runs write their logs
	// Open opens where a job keeps what it found; nil: in the store alone.
	Open explore.Opener
	Runs option.Runs // nil functions: nothing is refused or offered
}

// Server is a server of the dashboard, the API and the schedules.
type Server struct {
	jobs       known.Jobs
	store      store.Store
	log        *slog.Logger
	config     Config
	board      *runs.Board
	runner     *runs.Runner
	starts     option.Runs
	scheduler  *schedule.Scheduler
	guard      *people.Guard
	removals   removals
	background sync.WaitGroup // work that a tick has started
	alarm      *alarm.Alarm
	reports    *alarm.Summaries
	metrics    *metrics
	face       *face.Face
	handler    http.Handler
	now        func() time.Time

	leader  *lease.Lease
	leading atomic.Bool
	purgeAt time.Time     // when to remove old runs again
	leadAt  time.Time     // when to try to lead again
	closing chan struct{} // closed when the server stops: streams end
}

// checkListen refuses an address without the tokens that it needs, and reports whether it is
// on loopback.
func (set Settings) checkListen() (local bool, err error) {
	if local, err = loopback(set.Config.Listen); err != nil {
		return false, err
	}
	if !local && set.Token == "" {
		return false, fmt.Errorf("--listen=%s can be reached from other machines, so a token is needed: set %s (32 random letters, as `openssl rand -hex 16` prints), or listen on %s",
			set.Config.Listen, known.TokenVariable, DefaultListen)
	}
	return local, people.CheckTokens(set.Token, set.ReadToken)
}

// New makes a server; Serve starts it.
func New(set Settings) (*Server, error) {
	if set.Config.limits == nil {
		set.Config.jobs = known.JobsOf(set.Jobs)
		if err := set.Config.check(); err != nil {
			return nil, err
		}
	}
	local, err := set.checkListen()
	if err != nil {
		return nil, err
	}
	s := &Server{jobs: set.Config.jobs, store: set.Store, log: set.Log, config: set.Config, starts: set.Runs, now: time.Now,
		closing: make(chan struct{})}
	now := func() time.Time { return s.now() }
	s.metrics = newMetrics(s)
	set.Email = set.Config.Email
	told, err := alarm.Channels(set.Settings)
	if err != nil {
		return nil, err
	}
	for _, c := range told {
		s.metrics.has(c.Name)
	}
	s.guard = &people.Guard{Token: set.Token, ReadToken: set.ReadToken, Local: local && set.Token == "", Store: set.Store, Log: set.Log,
		Now: now, Audit: known.NewAudit(set.Store), WrongDelay: wrongTokenDelay, StrangersBody: strangersBody,
		Wrong: func(way string) { s.metrics.wrongTokens.WithLabelValues(way).Inc() }}
	s.board = runs.NewBoard(set.Store, set.Log, s.jobs)
	s.runner = &runs.Runner{Store: set.Store, Program: set.Program, Environ: set.Environ, Stderr: set.Stderr, Log: set.Log, Jobs: s.jobs,
		OnStart: s.board.Started}
	s.scheduler = schedule.New()
	s.scheduler.Store, s.scheduler.Log, s.scheduler.Start, s.scheduler.Check = set.Store, set.Log, s.start,
		func(ctx context.Context, job string, flags []string) error { return s.check(ctx, job, flags, false) } // its runs may find input that is not there yet
	s.scheduler.File, s.scheduler.Jobs, s.scheduler.Audit = set.Config.Schedules, s.jobs.Started(), s.guard.Audit
	s.scheduler.Count = func(schedule, outcome string) { s.metrics.ticks.WithLabelValues(schedule, outcome).Inc() }
	s.alarm = &alarm.Alarm{Store: set.Store, Log: set.Log, Jobs: s.jobs.Started(), Limits: set.Config.limits, Scheduler: s.scheduler,
		Channels: told, PublicURL: set.Config.PublicURL, Count: s.metrics.delivered}
	s.reports = &alarm.Summaries{Store: set.Store, Zone: set.Config.Reports.zone, Post: s.alarm.Enqueue, Jobs: s.jobs.Started()}
	if set.Open == nil {
		set.Open = func(context.Context, string) (explore.Source, error) { return explore.Source{Store: set.Store}, nil }
	}
	s.face, err = face.New(face.Parts{Jobs: s.jobs, Store: set.Store, Log: set.Log, Now: now, Board: s.board, Runner: s.runner,
		Scheduler: s.scheduler, Alarm: s.alarm, Reports: s.reports, Guard: s.guard, Published: botauth.Publish(set.Config.Bot), Open: set.Open,
		Start: s.startNow, Offer: s.offer, RunFlags: set.Config.runFlags, Closing: s.closing})
	if err != nil {
		return nil, err
	}
	s.guard.Fail, s.guard.SignInPage, s.guard.Public = s.face.Fail, s.face.SignInPage, s.face.Public
	s.handler = s.metrics.measure(s.guard.Protect(s.face.Handler(s.routes())))
	return s, nil
}

// routes are all routes.
func (s *Server) routes() []face.Route {
	return append(s.face.Routes(), face.Route{Pattern: "GET /metrics", Handle: s.metrics.ServeHTTP})
}

// start starts a run and counts it.
func (s *Server) start(ctx context.Context, run ledger.Run, flags []string, by string) error {
	err := s.runner.Start(ctx, run, slices.Concat(flags, s.config.runFlags[run.Job]), by)
	if err == nil {
		s.metrics.starts.WithLabelValues(run.Job).Inc()
	}
	return err
}

// checkTimeout bounds the check of a run that a person starts.
const checkTimeout = 5 * time.Second

// check refuses a request for a run that could not start. If that is not found out in time, the run says it.
func (s *Server) check(ctx context.Context, job string, flags []string, now bool) error {
	if s.starts.Refuse == nil {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return s.refusal(job, s.starts.Refuse(within, job, flags, now))
}

// refusal turns an error with which the program refuses a run into an answer. Other errors are logged: the run will meet them too.
func (s *Server) refusal(job string, err error) error {
	var usage interface{ Usage() }
	if errors.As(err, &usage) {
		return known.Refuse("%s", ledger.ErrorText(err))
	}
	if err != nil {
		s.log.Warn("run_not_checked", "job", job, "error", ledger.Redact(err.Error()))
	}
	return nil
}

// offer returns what there is to choose from for a run's options, and why no run of the job can start.
func (s *Server) offer(ctx context.Context, job string) (map[string][]string, error) {
	if s.starts.Offer == nil {
		return nil, nil
	}
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	names, err := s.starts.Offer(within, job)
	return names, s.refusal(job, err)
}

// startNow starts a run with a new id and returns the id.
func (s *Server) startNow(ctx context.Context, run ledger.Run, flags []string, by string) (string, error) {
	active, err := s.runner.Active(ctx, run.Job) // if one is active, the answer names it and not a fault of the input
	if err := s.check(ctx, run.Job, flags, err == nil && active == ""); err != nil {
		return "", err
	}
	run.RunID, run.StartedAt = ledger.NewRunID(s.now()), s.now()
	detail := append([]string{"by " + by + ", run " + run.RunID}, flags...)
	if err := s.guard.Note(ctx, "run_start", run.Job, strings.Join(detail, " ")); err != nil {
		return run.RunID, err
	}
	return run.RunID, s.start(ctx, run, flags, by)
}

const (
	maxHeader      = 16 << 10 // net/http reads 4 KiB more than it is told
	maxConnections = 4096
	headerTimeout  = 5 * time.Second
	answerTimeout  = 3 * time.Minute // a replay of many dead letters takes time
	tickInterval   = time.Second
	leaderTTL      = 30 * time.Second

	wrongTokenDelay = time.Second     // of the answer to a wrong token
	strangersBody   = 5 * time.Second // for the body of a request without a token
)

// Serve listens and works until ctx ends. Runs continue after that: they are
// processes of their own.
func (s *Server) Serve(ctx context.Context) error {
	l, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w; if another program uses the address, choose another one by --listen", err)
	}
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{Handler: s.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: people.BodyTimeout, WriteTimeout: answerTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeader - 4<<10} // its ErrorLog is package log, which writes to our log
	s.log.Info("server_listens", "address", "http://"+l.Addr().String(), "token", s.guard.Token != "")
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	worked := make(chan struct{})
	go func() { defer close(worked); s.work(working) }()
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(netutil.LimitListener(l, maxConnections)) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	close(s.closing)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if serr := web.Shutdown(within); serr != nil && !errors.Is(serr, context.DeadlineExceeded) {
		err = errors.Join(err, serr)
	}
	stop()
	<-worked
	s.background.Wait()
	if s.leader != nil { // with its own timeout: slow clients may have used up the other
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, s.leader.Release(release))
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	s.runner.Close(last)
	err = errors.Join(err, s.face.Close())
	if live := s.runner.Live(); len(live) > 0 {
		s.log.Warn("runs_go_on", "run_ids", live, "todo", "start the server again to see them, or `pipeline runs cancel ID`")
	}
	return err
}

// work calls tick every second until ctx ends.
func (s *Server) work(ctx context.Context) {
	t := time.NewTicker(tickInterval)
	defer t.Stop()
	for {
		s.tick(ctx, s.now())
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// tick does all periodic work that is due. Work that fails is tried again at the next
// tick.
func (s *Server) tick(ctx context.Context, now time.Time) {
	report := func(what string, err error) {
		if err != nil && ctx.Err() == nil {
			s.metrics.errors.WithLabelValues(what).Inc()
			s.log.Error("work_failed", "what", what, "error", ledger.Redact(err.Error()))
		}
	}
	s.runner.RecordEnds(ctx) // before a leader finds these runs dead
	report("board", s.board.Refresh(ctx, now))
	report("sessions", s.guard.Tick(ctx, now))
	changed, err := s.scheduler.Tick(ctx, now)
	report("schedules", err)
	for _, p := range s.scheduler.All() {
		s.metrics.hasSchedule(p.Name)
	}
	s.leading.Store(s.board.Ready(now) && s.tryLead(ctx, now))
	if s.leading.Load() {
		alerts, err := s.alarm.Tick(ctx, s.board.Runs(), now)
		report("alerts", err)
		sums, err := s.reports.Tick(ctx, s.board.Runs(), now)
		report("reports", err)
		changed = changed || alerts || sums
		report("retention", s.purge(ctx, now))
		removed, err := s.tickRemovals(ctx, now)
		report("removals", err)
		changed = changed || removed
	}
	if changed {
		s.board.Change()
	}
}

const (
	purgeEvery = 6 * time.Hour
	// maxPurge limits one pass, because the server's other work waits for it.
	maxPurge   = 5 * time.Second
	purgeRetry = time.Minute // after a pass that was cut off
)

// purge removes the runs and dead letters that are older than the retention time, old
// audit lines, and silences that have ended.
func (s *Server) purge(ctx context.Context, now time.Time) error {
	if now.Before(s.purgeAt) {
		return nil
	}
	s.purgeAt = now.Add(purgeEvery)
	within, cancel := context.WithTimeout(ctx, maxPurge)
	defer cancel()
	before, on := s.config.Retention.before(now)
	if err := errors.Join(s.guard.Audit.Sweep(within), alert.SweepSilences(within, s.store, now)); err != nil || !on {
		return err
	}
	p, err := ledger.Purge(within, s.store, "", before)
	if p != (ledger.PurgeResult{}) {
		s.log.Info("runs_removed", "runs", p.Runs, "dead_letters", p.DeadLetters, "older_than", before.UTC())
	}
	if within.Err() != nil && ctx.Err() == nil {
		s.purgeAt, err = now.Add(purgeRetry), nil
	}
	return err
}

// tryLead acquires or renews the leader's lease and reports whether this server is the
// leader. Of all servers on the store, only the leader raises alerts, writes reports
// and closes dead runs.
func (s *Server) tryLead(ctx context.Context, now time.Time) bool {
	due := !now.Before(s.leadAt)
	switch {
	case s.leader != nil && !s.leader.Lost():
		if !due {
			return s.leader.Valid()
		}
		s.leadAt = now.Add(leaderTTL / 3)
		if err := s.leader.Renew(ctx); err != nil {
			s.log.Warn("lead_not_renewed", "error", ledger.Redact(err.Error()))
			return s.leader.Valid()
		}
		s.closeDeadRuns(ctx)
		return true
	case !due:
		return false
	}
	s.leadAt, s.leader = now.Add(leaderTTL/3), nil
	l, err := lease.Acquire(ctx, lease.InStore(s.store), "server", lease.CurrentHolder(), leaderTTL)
	var inUse *lease.InUseError
	if errors.As(err, &inUse) {
		s.loadLeaderState(ctx)
		return false
	}
	if err != nil {
		s.log.Warn("lead_not_taken", "error", ledger.Redact(err.Error()))
		return false
	}
	s.leader = l
	s.alarm.Invalidate()
	s.closeDeadRuns(ctx)
	return true
}

// loadLeaderState reads the leader's alerts and reports, to show them.
func (s *Server) loadLeaderState(ctx context.Context) {
	changed, err := s.alarm.Load(ctx)
	err = errors.Join(err, s.reports.Load(ctx))
	if err != nil {
		s.log.Warn("not_followed", "error", ledger.Redact(err.Error()))
	}
	if changed {
		s.board.Change()
	}
}

// closeDeadRuns closes runs whose processes were killed while no server watched
// them.
func (s *Server) closeDeadRuns(ctx context.Context) {
	for _, j := range s.jobs.Started() {
		if !slices.ContainsFunc(s.board.Runs(), func(e *runs.Entry) bool { return e.Run.Job == j.Name && e.Active() && !e.Starting }) {
			continue
		}
		id, err := s.runner.Active(ctx, j.Name)
		if err == nil && id == "" {
			err = s.runner.CloseAbandoned(ctx, j.Name, "", nil)
		}
		if err != nil {
			s.log.Warn("run_not_closed", "job", j.Name, "error", ledger.Redact(err.Error()))
		}
	}
}

const (
	// removalInterval is how often the leader looks for requests to remove a source.
	removalInterval = time.Minute
	// removalRetry is how long it waits before it tries again what could not be done.
	removalRetry = 10 * time.Minute
)

// removals lets the pipeline program do open requests to remove what was kept of a
// source.
type removals struct {
	lookAt  time.Time
	retryAt time.Time
	working atomic.Bool
}

// tickRemovals starts the program for open requests, and raises an alert for one that is
// not done a day before it must be. Only the leader calls it.
func (s *Server) tickRemovals(ctx context.Context, now time.Time) (changed bool, err error) {
	r := &s.removals
	if now.Before(r.lookAt) {
		return false, nil
	}
	r.lookAt = now.Add(removalInterval)
	all, err := removal.All(ctx, s.store)
	if err != nil {
		return false, err
	}
	open := slices.ContainsFunc(all, removal.Entry.Open)
	if open && !now.Before(r.retryAt) && r.working.CompareAndSwap(false, true) {
		r.retryAt = now.Add(removalRetry)
		s.background.Go(func() {
			defer r.working.Store(false)
			if err := runs.RunCommand(ctx, s.runner.Command("removals", "do")); err != nil && ctx.Err() == nil {
				s.log.Error("removal_not_done", "error", ledger.Redact(err.Error()), "todo", "run `pipeline removals do`, which says why")
			}
		})
	}
	return s.alarm.JudgeRemovals(all, now), nil
}
