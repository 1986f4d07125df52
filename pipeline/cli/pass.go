package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// pass makes a command that reads its own flags.
func (p *program) pass(use, short, long string, do func(ctx context.Context, args []string, stdout, stderr io.Writer) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, DisableFlagParsing: true, RunE: func(c *cobra.Command, args []string) error {
		err := do(c.Context(), args, p.stdout, p.stderr)
		if errors.Is(err, flag.ErrHelp) {
			return c.Help()
		}
		return err
	}}
}

// flagWords separates a sub-command's words from its flags, which may come in any order.
func flagWords(f *flag.FlagSet, args []string) ([]string, error) {
	var out []string
	for {
		if err := f.Parse(args); err != nil {
			return nil, usage.Errorf("%s: %w; see `help %s`", f.Name(), err, f.Name())
		}
		if f.NArg() == 0 {
			return out, nil
		}
		out, args = append(out, f.Arg(0)), f.Args()[1:]
	}
}

// readCommand reads a sub-command: its words, the flags of f, and those flags of runs
// that are named.
func (o *Options) readCommand(f *flag.FlagSet, args []string, names ...string) (w []string, err error) {
	launch.AddBeamFlags(o.Flags.FlagSet)
	o.from = map[string]string{}
	f.SetOutput(io.Discard)
	for _, name := range names {
		f.Var(o.Flags.Lookup(name).Value, name, "")
	}
	if w, err = flagWords(f, args); err != nil {
		return nil, err
	}
	given := map[string]bool{}
	f.Visit(func(g *flag.Flag) { given[g.Name] = true })
	if err := o.layers(given); err != nil {
		return nil, err
	}
	return w, o.Flags.Check()
}

// controlOptions reads the options of a sub-command: those that name the store,
// and the flags in more.
func controlOptions(f *flag.FlagSet, args []string, more ...string) (o Options, w []string, err error) {
	newFlags(&o)
	o.Job = "" // all jobs, unless --job names one
	if w, err = o.readCommand(f, args, append(more, "store", "raw-prefix", "results-prefix", "env", "config")...); err != nil {
		return o, nil, err
	}
	if err := o.place(); err != nil {
		return o, nil, err
	}
	o.Sample = false // a store that does not exist yet has no runs
	return o, w, nil
}

const controlFlags = `
  --store=URL    the store (default: ./out)
  --db=DSN       docs, catalog and news: their database
`

// export writes what the jobs found to a file.
func (p *program) export() *cobra.Command {
	return p.pass("export WHAT [FILE]", "write what the jobs found, as Parquet, JSON lines or CSV", fmt.Sprintf(exportUsage+controlFlags, usage.Or(export.Names())),
		func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
			short := len(args) > 0 && !strings.HasPrefix(args[0], "-")
			if args = named(args, "what", "to"); short && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--to") || a == "--schema" }) {
				args = append(args, "--to=-")
			}
			return exportCommand(ctx, args, stdout, stderr)
		})
}

// removals shows and does requests to remove what was kept.
func (p *program) removals() *cobra.Command {
	return p.pass("removals", "requests to remove what was kept of a source: request, do, show", removalsUsage+controlFlags, removalsCommand)
}

// changes shows what the last run of a job changed.
func (p *program) changes() *cobra.Command {
	return p.pass("changes JOB", "what the last run of a job changed", changesUsage+controlFlags, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		return changesCommand(ctx, named(args, "job"), stdout, stderr)
	})
}

// named gives the first words of args the names of flags.
func named(args []string, names ...string) (out []string) {
	for i, a := range args {
		if i < len(names) && (a == "-" || !strings.HasPrefix(a, "-")) {
			out = append(out, "--"+names[i]+"="+a)
			continue
		}
		return append(out, args[i:]...)
	}
	return out
}
