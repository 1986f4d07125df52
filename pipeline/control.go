package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

const runsUsage = `pipeline runs [list] [--store=URL]             the runs of a store, newest first
pipeline runs show ID [--store=URL]            state, lanes and report of one run as JSON
pipeline runs cancel|pause|resume ID [--store=URL]
                                               works on a run anywhere, through the store alone
`

const deadLettersUsage = `pipeline dead-letters [list] [--store=URL] [--job=seed] [--run=ID]
pipeline dead-letters show ID [--store=URL] [--job=seed]
pipeline dead-letters replay [ID …] [--store=URL] [--job=seed] [--run=ID]
                                               opens their inputs again; the job's next run does them
`

// words splits a sub-command's words from its flags, wherever they stand.
func words(f *flag.FlagSet, args []string) ([]string, error) {
	var out []string
	for {
		if err := f.Parse(args); err != nil {
			return nil, usagef("%w", err)
		}
		if f.NArg() == 0 {
			return out, nil
		}
		out, args = append(out, f.Arg(0)), f.Args()[1:]
	}
}

func controlStore(ctx context.Context, url, env string, stderr io.Writer) (store.Store, error) {
	o := Options{Store: url, Env: env, Job: "seed", Runner: "prism", Web: "live", Concurrency: 1, MaxCrawlDelay: 1, LeaseTTL: time.Second, MaxChildSitemaps: 1, Progress: "off"}
	o.flags = newFlags(new(Options))
	if err := o.check(stderr); err != nil {
		return nil, err
	}
	o.sample = false
	return openStore(ctx, &o, stderr)
}

func runsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("runs", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	url, env := f.String("store", "", ""), f.String("env", "", "")
	w, err := words(f, args)
	if err != nil {
		return err
	}
	verb := "list"
	if len(w) > 0 {
		verb = w[0]
	}
	actions := map[string]ledger.Action{"cancel": ledger.ActionCancel, "pause": ledger.ActionPause, "resume": ledger.ActionRun}
	action, control := actions[verb]
	if (verb == "list" && len(w) > 1) || (verb != "list" && len(w) != 2) || (verb != "list" && verb != "show" && !control) {
		return usagef("usage:\n%s", runsUsage)
	}
	s, err := controlStore(ctx, *url, *env, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if verb == "list" {
		return listRuns(ctx, s, stdout)
	}
	run, err := ledger.Load(ctx, s, w[1])
	if errors.Is(err, store.ErrNotExist) {
		return usagef("there is no run %s in this store; `runs` lists them", w[1])
	}
	if err != nil {
		return err
	}
	if control {
		if run.State.Over() {
			return usagef("run %s is over (%s)", run.RunID, run.State)
		}
		if err := ledger.WriteControl(ctx, s, run.RunID, ledger.Control{Action: action, At: time.Now(), By: "command line"}); err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "asked run %s to %s; its workers look every two seconds\n", run.RunID, verb)
		return err
	}
	lanes, err := ledger.Progresses(ctx, s, run.RunID)
	if err != nil {
		return err
	}
	report, err := ledger.ReadReport(ctx, s, run.RunID)
	if errors.Is(err, store.ErrNotExist) {
		var sum ledger.Tally
		for _, l := range lanes {
			sum.Add(l.Tally)
		}
		report, err = ledger.BuildReport(run, sum, time.Now(), lanes...), nil
	}
	if err != nil {
		return err
	}
	return report.WriteJSON(stdout)
}

func listRuns(ctx context.Context, s store.Store, stdout io.Writer) error {
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "RUN\tJOB\tRUNNER\tSTATE\tSTARTED\tFINISHED"); err != nil {
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
		if _, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.RunID, r.Job, r.Runner, r.State, r.StartedAt.Format(time.RFC3339), finished); err != nil {
			return err
		}
	}
	return t.Flush()
}

func deadLettersCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("dead-letters", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	url, env := f.String("store", "", ""), f.String("env", "", "")
	job, run := f.String("job", "seed", ""), f.String("run", "", "")
	w, err := words(f, args)
	if err != nil {
		return err
	}
	verb := "list"
	if len(w) > 0 {
		verb, w = w[0], w[1:]
	}
	if (verb == "show" && len(w) != 1) || (verb == "list" && len(w) > 0) || (verb != "list" && verb != "show" && verb != "replay") {
		return usagef("usage:\n%s", deadLettersUsage)
	}
	s, err := controlStore(ctx, *url, *env, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	switch verb {
	case "show":
		d, err := ledger.Get(ctx, s, *job, w[0])
		if errors.Is(err, store.ErrNotExist) {
			return usagef("there is no dead letter %s of job %s; `dead-letters list` lists them", w[0], *job)
		}
		if err != nil {
			return err
		}
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(d)
	case "replay":
		return replay(ctx, s, *job, *run, w, stdout)
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "ID\tKIND\tTRIES\tLAST\tINPUT\tERROR"); err != nil {
		return err
	}
	for d, err := range ledger.ListDeadLetters(ctx, s, *job, *run) {
		if err != nil {
			return err
		}
		input := d.Input.DomainID
		if input == "" {
			input = d.Input.File
		}
		if _, err := fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", d.ID(), d.Kind, d.Attempts, d.LastAt.Format(time.RFC3339), input, d.Error); err != nil {
			return err
		}
	}
	return t.Flush()
}
