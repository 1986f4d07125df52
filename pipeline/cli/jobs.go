package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/similar"
)

// preset gives options values in place of their defaults, by what the command line has.
type preset func(given map[string]bool) map[string]string

// job makes a command of a job, which gets what is wrong with its options.
func (p *program) job(j pipeline.Job, short string, values preset, do func(*cobra.Command, error) error) *cobra.Command {
	c := &cobra.Command{Use: j.Name, Short: short, Args: words(j.Name), DisableFlagsInUseLine: true, Annotations: map[string]string{jobOf: j.Name}}
	for _, o := range p.o.Flags.All {
		if o.Means(j.Name) && !o.Has(option.Tuning) && o.Name != "job" {
			lend(c, p.o.Flags, o.Name, o.DefaultOf(j.Name))
		}
	}
	p.lendBeams(c)
	c.Flags().Bool(helpAll, false, "show every flag")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if all, _ := c.Flags().GetBool(helpAll); all {
			return p.help(c)
		}
		if err := p.o.Flags.Put("job", j.Name); err != nil { // the environment and the file do not change it
			return err
		}
		return do(c, p.options(c, values))
	}
	return c
}

// byFlag is the command of a line whose first word is a flag.
func (p *program) byFlag() *cobra.Command {
	c := &cobra.Command{Use: "run", Hidden: true, Annotations: map[string]string{jobOf: "seed"}}
	for _, o := range p.o.Flags.All {
		lend(c, p.o.Flags, o.Name, o.Default)
	}
	p.lendBeams(c)
	c.Args = func(c *cobra.Command, w []string) error {
		if len(w) > 0 {
			return usage.Errorf("%q is in no flag; write a command before all flags, as in %s %s …", w[0], c.Root().Name(), cmp.Or(similar.Near(w[0], names(c.Root())), "seed"))
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return p.run(c, p.options(c, nil)) }
	return c
}

// oftenBeams are those of Beam's flags that completion offers and the reference lists.
var oftenBeams = []string{"endpoint", "environment_type", "environment_config", "parallelism", "project", "region", "staging_location", "worker_binary"}

// lendBeams gives a command Beam's flags.
func (p *program) lendBeams(c *cobra.Command) {
	for _, f := range p.beams {
		lend(c, p.o.Flags, f, p.o.Flags.DefaultValue(f))
		c.Flags().Lookup(f).Hidden = !slices.Contains(oftenBeams, f)
	}
}

// run runs a job, unless its options are wrong.
func (p *program) run(c *cobra.Command, err error) error {
	if err != nil {
		return err
	}
	if p.begin != nil {
		return p.begin(c.Context())
	}
	return p.launch(c.Context())
}

func (p *program) launch(ctx context.Context) error {
	if err := p.o.Reach(ctx); err != nil {
		return err
	}
	return launch.Run(ctx, p.o.Options, p.stdout, p.stderr)
}

// options reads a job's options from flags, presets, environment and file, and checks them.
func (p *program) options(c *cobra.Command, values preset) error {
	p.mark(c)
	o := &p.o
	line := slices.Sorted(maps.Keys(o.Flags.Given()))
	if values != nil {
		for name, v := range values(o.Flags.Given()) {
			if err := o.Flags.Put(name, v); err != nil {
				return err
			}
			o.from[name] = "command " + path(c)
		}
	}
	given := o.Flags.Given()
	err := o.layers(given)
	if err == nil {
		err = o.ReadPoliteness()
	}
	if err != nil {
		return err
	}
	if err := o.Flags.UseDefaults(o.Job, given); err != nil {
		return err
	}
	if o.From != "" { // a queue feeds the unbounded graph
		o.Streaming, o.Watch = true, cmp.Or(o.Watch, time.Minute)
	}
	if o.Streaming && !given["runner"] { // of the runners in this process, prism alone runs unbounded graphs
		o.Runner = "prism"
	}
	return o.check(line, p.stderr)
}

// each makes a command for each job that is wanted, below one that needs a job's name.
func (p *program) each(use, short string, wanted func(pipeline.Job) bool, values func(pipeline.Job) preset, do func(*cobra.Command, error) error) *cobra.Command {
	verb, _, _ := strings.Cut(use, " ")
	var all []*cobra.Command
	for _, j := range p.o.Jobs {
		if wanted(j) {
			all = append(all, p.job(j, verb+": the "+j.Name+" job", values(j), do))
		}
	}
	return family(use, short, all...)
}

func anyJob(pipeline.Job) bool { return true }

func noPreset(pipeline.Job) preset { return nil }

// plan says what a run would do and cost.
func (p *program) plan() *cobra.Command {
	return p.each("plan JOB", "what a run would do and cost", anyJob, func(j pipeline.Job) preset {
		return func(given map[string]bool) map[string]string {
			switch {
			case given["until"] || given["estimate"]:
				return nil
			case !j.Takes("estimate"): // migrate
				return map[string]string{"dry-run": "true"}
			}
			return map[string]string{"estimate": "true"}
		}
	}, p.run)
}

// watch keeps a job running.
func (p *program) watch() *cobra.Command {
	return p.each("watch seed", "keep running, for new raw files", func(j pipeline.Job) bool { return j.Watch != nil }, func(pipeline.Job) preset {
		return func(given map[string]bool) map[string]string {
			if given["watch"] {
				return nil
			}
			return map[string]string{"watch": time.Minute.String()}
		}
	}, p.run)
}

// demoStore is the store of the demo command, apart from real results.
const demoStore = "demo"

// demo runs a job against the simulated web.
func (p *program) demo() *cobra.Command {
	return p.each("demo JOB", "run a job against the simulated web, in a store of its own, ./"+demoStore, func(j pipeline.Job) bool { return j.Name != "migrate" },
		func(pipeline.Job) preset {
			return func(given map[string]bool) map[string]string {
				p.o.home = demoStore
				if given["web"] {
					return nil
				}
				return map[string]string{"web": "demo"}
			}
		}, p.run)
}

// ofJob makes a command of one job.
func (p *program) ofJob(j pipeline.Job, k pipeline.Command) *cobra.Command {
	do := func(ctx context.Context, s store.Store, w []string) error {
		p.o.Job = j.Name
		if slices.Contains(k.Takes, "db") {
			if err := p.o.placeDB(); err != nil {
				return err
			}
		}
		if k.Asks {
			if err := errors.Join(p.o.checkWeb(), p.o.checkTurns()); err != nil {
				return err
			}
		}
		return k.Do(ctx, &p.o.RunOptions, s, w, p.stdout, p.stderr)
	}
	var c *cobra.Command
	if k.Stored {
		c = p.ofStore(k.Use, k.Short, k.Options, do, k.Takes...)
	} else {
		takes := k.Takes
		if k.Asks {
			takes = append(takes, asking...)
		}
		c = p.command(k.Use, k.Short, k.Options, func(ctx context.Context, w []string) error { return do(ctx, nil, w) }, takes...)
	}
	c.Long = k.Long
	return c
}
