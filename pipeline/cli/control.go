package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const runsUsage = `pipeline runs [list]              the runs of a store, newest first
pipeline runs show ID             state, lanes and report of one run as JSON, with the newest
                                  warnings and errors of its workers
pipeline runs log ID              the log of the run and its workers, as JSON lines
pipeline runs cancel|pause|resume ID
controls a run on any machine, through the store
pipeline runs purge --older-than=90d [--job=JOB]
                                  removes runs that ended before that, with their reports and logs,
                                  and dead letters whose last failure was before that
`

const controlFlags = `
  --store=URL    the store (default: ./out, where the sample bucket was copied to)
  --db=DSN       dead-letters replay of docs, catalog and news: their database
  --env=NAME     dev, staging or prod: fills {env} in --store
  --config=FILE  YAML file with flags; SEED_STORE, SEED_ENV … go before it
`

// words separates a sub-command's words from its flags, which may come in any order.
func words(f *flag.FlagSet, args []string) ([]string, error) {
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
	f.SetOutput(io.Discard)
	for _, name := range names {
		f.Var(o.Flags.Lookup(name).Value, name, "")
	}
	if w, err = words(f, args); err != nil {
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

func runsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("runs", flag.ContinueOnError)
	older, of := f.String("older-than", "", ""), f.String("job", "", "")
	o, w, err := controlOptions(f, args)
	if err != nil {
		return err
	}
	verb := "list"
	if len(w) > 0 {
		verb = w[0]
	}
	if verb == "purge" {
		if len(w) > 1 {
			return usage.Errorf("runs purge takes no id, but --older-than=90d; see `help runs`")
		}
		return purgeRuns(ctx, o, *older, *of, stdout, stderr)
	}
	if *older+*of != "" {
		return usage.Errorf("--older-than and --job are for runs purge")
	}
	_, controls := actions[verb]
	if (verb == "list" && len(w) > 1) || (verb != "list" && len(w) != 2) || (verb != "list" && verb != "show" && verb != "log" && !controls) {
		return usage.Errorf("runs %s: write runs list, runs purge, or runs show|log|cancel|pause|resume ID; see `help runs`", strings.Join(w, " "))
	}
	if len(w) > 1 && !ledger.IsName(w[1]) {
		return usage.Errorf("%q is no run's id; `runs` lists them", w[1])
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if verb == "list" {
		return listRuns(ctx, s, stdout)
	}
	run, err := ledger.Load(ctx, s, w[1])
	if errors.Is(err, store.ErrNotExist) {
		return usage.Errorf("there is no run %s in this store; `runs` lists them", w[1])
	}
	if err != nil {
		return err
	}
	switch verb {
	case "log":
		return showLog(ctx, s, run, stdout)
	case "show":
		return showRun(ctx, s, run, stdout)
	}
	return control(ctx, s, run, verb, stdout)
}

// actions are the verbs of `runs` that control a run.
var actions = map[string]ledger.Action{"cancel": ledger.ActionCancel, "pause": ledger.ActionPause, "resume": ledger.ActionRun}

func control(ctx context.Context, s store.Store, run ledger.Run, verb string, stdout io.Writer) error {
	if run.State.Over() {
		return usage.Errorf("run %s is over (%s)", run.RunID, run.State)
	}
	err := ledger.WriteControl(ctx, s, run.RunID, ledger.Control{Action: actions[verb], At: time.Now(), By: "command line"})
	if errors.Is(err, ledger.ErrCancelled) {
		return usage.Errorf("%w", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "asked run %s to %s; its workers check every two seconds\n", run.RunID, verb)
	return err
}

func showRun(ctx context.Context, s store.Store, run ledger.Run, stdout io.Writer) error {
	j, _ := pipeline.Named(run.Job)
	report, err := ledger.ReportSoFar(ctx, s, j.Job, run, time.Now())
	if err != nil {
		return err
	}
	if run.Async && j.Extend != nil { // the launcher did not wait for the end, so it has not extended the report
		if err := j.Extend(ctx, s, &report); err != nil {
			return err
		}
	}
	if report.Workers, err = ledger.ReadWorkers(ctx, s, run.RunID); err != nil {
		return err
	}
	return report.WriteJSON(stdout)
}

func listRuns(ctx context.Context, s store.Store, stdout io.Writer) error {
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "RUN\tJOB\tRUNNER\tSTATE\tSTARTED\tFINISHED\tERROR"); err != nil {
		return err
	}
	for r, err := range ledger.List(ctx, s) {
		finished := "-"
		switch {
		case err != nil && r.RunID == "":
			return err
		case err != nil:
			r.State = "unreadable"
		case !r.FinishedAt.IsZero():
			finished = r.FinishedAt.Format(time.RFC3339)
		}
		if err := row(t, r.RunID, r.Job, r.Runner, string(r.State), r.StartedAt.Format(time.RFC3339), finished, cut(r.Error)); err != nil {
			return err
		}
	}
	return t.Flush()
}

// purgeRuns removes old runs. A server with a retention does the same by itself.
func purgeRuns(ctx context.Context, o Options, older, job string, stdout, stderr io.Writer) error {
	age, err := days(older)
	if err != nil {
		return usage.Errorf("--older-than=%s: write a number of days, such as 90d, or hours, such as 36h", older)
	}
	if _, ok := pipeline.Named(job); job != "" && !ok {
		return pipeline.NoJob(job)
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	p, err := ledger.Purge(ctx, s, job, time.Now().Add(-age))
	if _, werr := fmt.Fprintf(stdout, "removed %d runs and %d dead letters\n", p.Runs, p.DeadLetters); werr != nil {
		return errors.Join(err, werr)
	}
	return err
}

// days parses 90d, or a duration in Go's form.
func days(text string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(text, "d"); ok {
		d, err := strconv.ParseUint(n, 10, 16)
		text = strconv.FormatUint(d*24, 10) + "h"
		if err != nil {
			return 0, err
		}
	}
	age, err := time.ParseDuration(text)
	if err == nil && age <= 0 {
		err = errors.New("not above 0")
	}
	return age, err
}

// cut shortens a text for a table; the show commands print all of it.
func cut(text string) string {
	if r := []rune(text); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return text
}

func showLog(ctx context.Context, s store.Store, run ledger.Run, stdout io.Writer) error {
	b, err := ledger.ReadLog(ctx, s, run.RunID)
	if errors.Is(err, store.ErrNotExist) {
		return usage.Errorf("run %s has no log: it ended before it wrote one, or its log was removed because of its age", run.RunID)
	}
	if err != nil {
		return err
	}
	_, err = stdout.Write(b)
	return err
}

// row writes one line of a table. The store may contain text of strangers: no
// cell can end the line or begin another cell.
func row(t io.Writer, cells ...string) error {
	for i := range cells {
		cells[i] = printable.Line(cells[i])
	}
	_, err := fmt.Fprintln(t, strings.Join(cells, "\t"))
	return err
}
