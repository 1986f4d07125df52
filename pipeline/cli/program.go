// Package cli is the command line: flags, environment and file, help, and the
// commands. Outside scripts rely on its flags, messages and exit codes. No promise: see docs/library.md.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/similar"
)

// Exit codes of the command line.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDisallowed  = 3 // try: the site's robots.txt disallows the URL
	exitStrict      = 4 // with --strict: complete, but with dead letters
	exitInterrupted = 130
)

// Program is the program's command line.
type Program struct {
	Serve server // what `serve` does; nil: there is no such command
}

// Main runs the command that args name and returns the exit code.
func (m Program) Main(args []string, stdout, stderr io.Writer) int {
	words := lastWords()
	err := m.run(context.Background(), args, printable.Writer(stdout), stderr)
	words.say(err)
	return exit("pipeline", err, stderr)
}

func (m Program) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p := &program{Program: m, stdout: stdout, stderr: stderr}
	return p.execute(ctx, args)
}

// Root returns the commands, for programs that write about them.
func (m Program) Root() *cobra.Command { return (&program{Program: m}).root() }

// exit writes in one line, without secrets, how a program ended, and returns its
// exit code.
func exit(program string, err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	if _, werr := fmt.Fprintf(stderr, "%s: %s\n", program, printable.Line(ledger.Redact(usage.OneLine(err)))); werr != nil {
		return exitFailed
	}
	switch {
	case usage.Is(err):
		return exitUsage
	case errors.Is(err, errDisallowed):
		return exitDisallowed
	case errors.Is(err, launch.ErrInterrupted), errors.Is(err, errExportInterrupted):
		return exitInterrupted
	case errors.Is(err, launch.ErrStrict), errors.Is(err, launch.ErrNotDone):
		return exitStrict
	}
	return exitFailed
}

// program is one call of the program. One command of it runs, so all commands share the options.
type program struct {
	Program
	o              Options
	beams          []string // names of Beam's flags
	stdout, stderr io.Writer
	begin          func(context.Context) error // begins the run; nil: launch
}

// execute runs the command that args name. A flag first is a run's: of the seed job, or of the one that --job names.
func (p *program) execute(ctx context.Context, args []string) error {
	root := p.root()
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"-h", "--help", "--help-all"}, args[0]) {
		args = append([]string{"run"}, args...)
	}
	root.SetArgs(append([]string{}, args...)) // nil would be the process's own
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	c, rest, err := root.Find(args)
	if err == nil && len(rest) > 0 && !strings.HasPrefix(rest[0], "__") && !strings.HasPrefix(rest[0], "-") && c.HasSubCommands() { // a misspelt command, before the flags that it has not
		if err := c.Args(c, rest[:1]); err != nil {
			return err
		}
	}
	return root.ExecuteContext(ctx)
}

// The groups of commands.
const (
	groupRun   = "RUN"
	groupLook  = "LOOK"
	groupKeep  = "KEEP"
	groupServe = "SERVE"
)

// today returns the name that a flag of before has now.
func today(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "session-max-pages" {
		name = "limit"
	}
	return pflag.NormalizedName(name)
}

// root makes the commands.
func (p *program) root() *cobra.Command {
	cobra.EnableCommandSorting = false // they are in the order of use
	newFlags(&p.o)
	p.o.Flags.SetNormalizeFunc(today)
	launch.AddBeamFlags(p.o.Flags.FlagSet)
	p.o.Flags.VisitAll(func(f *pflag.Flag) {
		if p.o.Flags.Get(f.Name) == nil {
			p.beams = append(p.beams, f.Name)
		}
	})
	root := &cobra.Command{Use: "pipeline", SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: words("pipeline"), RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { _ = p.help(c) }) // an error of writing is the terminal's
	root.SetFlagErrorFunc(p.flagError)
	root.SetGlobalNormalizationFunc(today)
	group := func(id string, all ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: id})
		for _, c := range all {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	var jobs []*cobra.Command
	for _, j := range p.o.Jobs {
		jobs = append(jobs, p.job(j, "run the "+j.Name+" job", nil, p.run))
	}
	group(groupRun, append(jobs, p.plan(), p.try(), family("init", "write a file: site, policy, publisher, snapshot, bot-page", p.botPage()), p.watch(), p.demo())...)
	group(groupLook, p.status(), p.runs(), p.ls(), p.get(), p.export(), p.errors(), p.changes())
	group(groupKeep, family("rm", "remove all that is kept of a domain, provider, site or publisher; old results"), p.removals(), p.backup(), p.restore(),
		family("store", "check what is kept; rewrite what the seed job keeps: materialize, compact", p.storeCheck()), p.config())
	group(groupServe, p.alerts(), p.completion(), p.version())
	if p.Serve != nil {
		c := p.serve()
		c.GroupID = groupServe
		root.AddCommand(c)
	}
	for _, j := range p.o.Jobs {
		for _, k := range j.Commands {
			under, _, _ := root.Find([]string{k.Under})
			under.AddCommand(p.ofJob(j, k))
		}
	}
	root.AddCommand(p.byFlag())
	help := p.helpCommand()
	root.SetHelpCommand(help)
	root.AddCommand(help)
	return root
}

// command makes a command with options of its own, and with those options of runs that takes names. do gets the words after it.
func (p *program) command(use, short string, own func(*option.Set), do func(ctx context.Context, w []string) error, takes ...string) *cobra.Command {
	set := option.New(use)
	if own != nil {
		own(set)
	}
	c := &cobra.Command{Use: use, Short: short, Args: words(use), DisableFlagsInUseLine: true}
	for _, o := range set.All {
		lend(c, set, o.Name, o.Default)
	}
	for _, name := range takes {
		lend(c, p.o.Flags, name, p.o.Flags.DefaultValue(name))
	}
	c.RunE = func(c *cobra.Command, w []string) error {
		if err := set.Check(); err != nil {
			return err
		}
		p.mark(c)
		if !p.o.Flags.Lookup("job").Changed {
			p.o.Job = "" // all jobs
		}
		err := p.o.layers(p.o.Flags.Given())
		if err == nil && slices.Contains(takes, "politeness") {
			err = p.o.ReadPoliteness()
		}
		if err != nil {
			return err
		}
		if err := p.o.Flags.Check(); err != nil {
			return err
		}
		if slices.Contains(takes, "store") {
			if err := p.o.place(); err != nil {
				return err
			}
			p.o.Sample, p.o.Fresh = false, false // a store that does not exist yet has no runs
		}
		return do(c.Context(), w)
	}
	return c
}

// stored are the options of commands that open the store.
var stored = []string{"store", "raw-prefix", "results-prefix", "env", "config"}

// family makes a command that is nothing without one of those below it.
func family(use, short string, all ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: words(strings.Fields(use)[0]), DisableFlagsInUseLine: true, Annotations: map[string]string{jobOf: isFamily},
		RunE: func(c *cobra.Command, _ []string) error {
			return usage.Errorf("%s: say what: %s", path(c), usage.Or(names(c)))
		}}
	c.AddCommand(all...)
	return c
}

// ofStore makes a command that opens the store, of all jobs unless --job names one.
func (p *program) ofStore(use, short string, own func(*option.Set), do func(context.Context, store.Store, []string) error, takes ...string) *cobra.Command {
	return p.command(use, short, own, func(ctx context.Context, w []string) error {
		s, err := launch.OpenStore(ctx, &p.o.Options, p.stderr)
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, s, w), s.Close())
	}, append(takes, stored...)...)
}

// lend gives a command an option of a set.
func lend(c *cobra.Command, s *option.Set, name, value string) {
	f := *s.Lookup(name)
	f.DefValue = value
	c.Flags().AddFlag(&f)
	o := s.Get(name)
	if o == nil {
		return
	}
	if o.Choices != nil {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(o.Choices, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
}

// mark finds which options of runs the command line has.
func (p *program) mark(c *cobra.Command) {
	p.o.from = map[string]string{}
	c.Flags().Visit(func(f *pflag.Flag) {
		if own := p.o.Flags.Lookup(f.Name); own != nil && own.Value == f.Value {
			own.Changed, p.o.from[f.Name] = true, "flag"
		}
	})
	for _, text := range p.o.strangers() {
		p.log("%s", text)
	}
}

// log tells a person about what is odd, and changes nothing.
func (p *program) log(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stderr, "pipeline: "+format+"\n", args...) // the command does its work without it
}

// meant asks whether the most similar one of some names was meant.
func meant(name string, known []string) string {
	if near := similar.Near(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// flagError says what is wrong with a command line's flags.
func (p *program) flagError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		bad     *pflag.InvalidValueError
		none    *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usage.Errorf("-%s: write two dashes: --%[1]s", unknown.GetSpecifiedShortnames())
	case errors.As(err, &unknown) && c.Annotations[jobOf] == isFamily:
		return usage.Errorf("%s: say what, before the flags: %s", path(c), usage.Or(names(c)))
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if job := jobName(c); job != "" && p.o.Flags.Get(name) != nil {
			if err := p.o.Flags.CheckLine(job, []string{name}); err != nil {
				return err
			}
		}
		if o := p.o.Flags.Get(name); o != nil && o.Has(option.Tuning) {
			return usage.Errorf("--%s is no flag, but a key of --config and the variable %s", name, option.Variable(name))
		}
		var all []string
		c.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
		return usage.Errorf("--%s: there is no such flag%s; see %s", name, meant(name, all), helpOf(c))
	case errors.As(err, &bad):
		name := bad.GetFlag().Name
		return usage.Errorf("--%s=%s: %w; see %s", name, bad.GetValue(), option.Wanted(err), helpOf(c))
	case errors.As(err, &none):
		return usage.Errorf("--%s needs a value; see %s", none.GetSpecifiedName(), helpOf(c))
	}
	return usage.Errorf("%w; see %s", err, helpOf(c))
}

// jobOf is the annotation of a command that runs a job.
const jobOf = "job"

// isFamily is in its place at a command that does nothing alone.
const isFamily = "-"
