package cli

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// lastWordsVariable is an environment variable with the number of an open file.
// A process that a server started writes into this file why it failed, even
// when its run has not begun yet or the process crashes.
const lastWordsVariable = "SEED_LAST_WORDS"

type lastWordsFile struct{ file *os.File }

// lastWords opens the server's file. The processes that this one starts do not
// inherit it.
func lastWords() lastWordsFile {
	fd, err := strconv.Atoi(os.Getenv(lastWordsVariable))
	if err != nil || fd < 3 || os.Unsetenv(lastWordsVariable) != nil {
		return lastWordsFile{}
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "last words")
	_ = debug.SetCrashOutput(f, debug.CrashOptions{}) // if this fails, a crash is reported on standard error alone
	return lastWordsFile{f}
}

func (w lastWordsFile) say(err error) {
	if w.file == nil || err == nil {
		return
	}
	_, _ = w.file.WriteString(ledger.ErrorText(errors.New(usage.OneLine(err)))) // standard error has it too
}

// server is what `serve` does, until ctx ends: see package server. It listens at an address, "": by its configuration, which is in a
// file, "": none.
type server func(ctx context.Context, listen, config string, options ServerOptions, jobs []option.Job) error

// ServerOptions reads the options that all runs of a server share: flags, then
// the environment, then file, which has values of flags by name. environ passes
// these options to a run in a child process. They are not passed as flags,
// because a job refuses the flags of other jobs. find opens where a job keeps what it
// found. starts refuses a run that would be refused when it starts.
type ServerOptions = func(ctx context.Context, file map[string]string) (s store.Store, environ []string, log *slog.Logger,
	find explore.Opener, starts option.Runs, err error)

// serve makes the command that starts the server.
func (p *program) serve() *cobra.Command {
	var listen, config string
	set := option.New("serve")
	set.Text(&listen, "listen", "", "host:port where it listens (default 127.0.0.1:8787); beyond loopback the environment must have a token in SEED_SERVER_TOKEN").
		NotEmpty("give an address, or leave it out")
	set.Text(&config, "config", "", "YAML: listen, flags, schedules, alerts, email, reports, retention, bot").NotEmpty("name a file, or leave it out")
	c := &cobra.Command{Use: "serve", Short: "the server: dashboard, API, schedules, alerts", Args: words("serve"), DisableFlagsInUseLine: true}
	c.Long = "Starts the server: dashboard, API, schedules, alerts.\nThe flags of runs apply to every run that it starts. docs/server.md has the variables for alerts and e-mail."
	lend(c, set, "listen", "")
	lend(c, set, "config", "")
	for _, o := range p.o.Flags.All {
		if set.Lookup(o.Name) == nil {
			lend(c, p.o.Flags, o.Name, o.Default)
			c.Flags().Lookup(o.Name).Hidden = o.Group == "" || o.Has(option.OneRun) // they are refused by name
		}
	}
	p.lendBeams(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		for _, o := range set.All {
			if f := c.Flags().Lookup(o.Name); f.Changed && f.Value.String() == "" {
				return usage.Errorf("--%s= is empty; %s", o.Name, o.Empty)
			}
		}
		p.mark(c)
		ctx, stop := signal.NotifyContext(c.Context(), launch.Endings()...)
		defer stop()
		return p.Serve(ctx, listen, config, p.serverOptions, Descriptions())
	}
	return c
}

// serverOptions is ServerOptions for the flags of the command line.
func (p *program) serverOptions(ctx context.Context, file map[string]string) (s store.Store, environ []string, log *slog.Logger,
	find explore.Opener, starts option.Runs, err error) {
	bad := func(err error) (store.Store, []string, *slog.Logger, explore.Opener, option.Runs, error) {
		return nil, nil, nil, nil, option.Runs{}, err
	}
	o := &p.o
	given := o.Flags.Given()
	for _, name := range o.Flags.Which(option.OneRun) {
		if _, inFile := file[name]; given[name] || inFile {
			return bad(usage.Errorf("--%s is for one run; give it when a run is started", name))
		}
	}
	err = o.layers(given)
	if err == nil {
		err = o.ReadPoliteness()
	}
	if err != nil {
		return bad(err)
	}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		if o.Flags.Lookup(name) == nil {
			return bad(usage.Errorf("flags: unknown key %q%s; keys are the flags' names, `help JOB --help-all` lists them", name, meant(name, o.names())))
		}
		if given[name] {
			continue
		}
		if err := o.Flags.Put(name, file[name]); err != nil {
			return bad(usage.Errorf("flags: %q is no value for %s: %w", file[name], name, err))
		}
		given[name] = true
	}
	// Options with which no run could begin are refused now. The flags of jobs
	// other than seed are checked by the runs of those jobs.
	if err := o.check(nil, p.stderr); err != nil {
		return bad(err)
	}
	if strings.HasPrefix(o.Store, "mem://") {
		return bad(usage.Errorf("--store=%s: each run is a process of its own and would see an empty store; use a directory or a bucket", o.Store))
	}
	given["store"] = true
	given["log-format"] = true
	environ = []string{"SEED_PROGRESS=off"}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		environ = append(environ, option.Variable(name)+"="+o.Flags.Value(name))
	}
	log = lane.Logger(o.LogFormat, o.Level())
	lane.TakeLibraryLines(log)
	o.Fresh = o.isNew()
	s, err = launch.OpenStore(ctx, &o.Options, p.stderr)
	find = func(ctx context.Context, job string) (explore.Source, error) { return o.source(ctx, s, job) }
	starts.Refuse = func(ctx context.Context, job string, flags []string, now bool) error {
		_, err := o.checkRun(ctx, s, given, job, flags, now)
		return err
	}
	starts.Offer = func(ctx context.Context, job string) (map[string][]string, error) {
		of, err := o.checkRun(ctx, s, given, job, nil, false)
		if j := of.Target(); err == nil && j.Offer != nil {
			return j.Offer(ctx, s, &of.RunOptions)
		}
		return nil, err
	}
	return s, environ, log, find, starts, err
}

// checkRun refuses a run that a server would start with its own options, which were given, and with flags, if its job refuses it:
// an unknown provider, for one. The runner's options were checked when the server began. With now it also refuses one without input in
// the store's partitions. It returns the run's options.
func (o Options) checkRun(ctx context.Context, s store.Store, given map[string]bool, job string, flags []string, now bool) (of Options, err error) {
	f := newFlags(&of)
	if err := f.Parse(append([]string{"--job=" + job}, flags...)); err != nil {
		return of, usage.Errorf("%w", err)
	}
	set := f.Given()
	for name := range given {
		if f.Lookup(name) == nil || set[name] { // the first are Beam's, which have their values
			continue
		}
		if err := f.Put(name, o.Flags.Value(name)); err != nil {
			return of, usage.Errorf("--%s: %w", name, err)
		}
		set[name] = true
	}
	launch.AddBeamFlags(f.FlagSet)
	if err := f.UseDefaults(job, set); err != nil {
		return of, err
	}
	of.WorkersElsewhere = o.WorkersElsewhere
	j := of.Target()
	if j.Check != nil {
		if err := j.Check(&of.RunOptions); err != nil {
			return of, err
		}
	}
	if of.placeDB() != nil { // the run may get a password that this process does not have
		return of, nil
	}
	if j.Accept != nil && (now || j.Input == nil) {
		if err := j.Accept(ctx, s, &of.RunOptions); err != nil {
			return of, err
		}
	}
	return of, of.CheckStore(ctx, s)
}

// source opens where a job keeps what it found. A database that does not exist is not
// created.
func (o Options) source(ctx context.Context, s store.Store, job string) (explore.Source, error) {
	src := explore.Source{Store: s, Option: o.Flags.Value}
	i := slices.IndexFunc(export.All, func(w export.What) bool { return w.Job == job && w.NeedsDB() })
	if i < 0 {
		return src, nil
	}
	o.Job = job
	if err := o.placeDB(); err != nil {
		return src, explore.Refuse("%s", usage.OneLine(err))
	}
	if _, missing := db.Missing(o.DB); missing {
		return src, explore.ErrNothingYet
	}
	var err error
	src.DB, err = export.All[i].Open(ctx, o.DB)
	return src, err
}
