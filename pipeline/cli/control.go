package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// runs makes the commands that show and control runs.
func (p *program) runs() *cobra.Command {
	var asJSON bool
	all := func(use string) *cobra.Command {
		return p.ofStore(use, "the runs, newest first; log, cancel, pause, resume or rm one", jsonLines(&asJSON), func(ctx context.Context, s store.Store, _ []string) error {
			return listRuns(ctx, s, asJSON, p.stdout, func(ledger.Run) bool { return true })
		})
	}
	one := func(verb, short string, do func(context.Context, store.Store, ledger.Run) error) *cobra.Command {
		return p.ofStore(verb+" RUN", short, nil, func(ctx context.Context, s store.Store, w []string) error {
			run, err := runNamed(ctx, s, w[0])
			if err != nil {
				return err
			}
			return do(ctx, s, run)
		})
	}
	c, ls := all("runs"), all("ls")
	ls.Aliases = []string{"list"}
	c.AddCommand(ls,
		one("show", "state, lanes and report of a run as JSON, with the newest warnings and errors of its workers", p.showRun),
		p.showLog(), p.removeRuns())
	for _, verb := range []string{"cancel", "pause", "resume"} {
		c.AddCommand(one(verb, verb+" a run on any machine, through the store", func(ctx context.Context, s store.Store, run ledger.Run) error {
			return control(ctx, s, run, verb, p.stdout)
		}))
	}
	return c
}

// jsonLines is the option of commands that list.
func jsonLines(v *bool) func(*option.Set) {
	return func(s *option.Set) { s.Yes(v, "json", false, "JSON: one object a line") }
}

// runNamed is the run of that id.
func runNamed(ctx context.Context, s store.Store, id string) (ledger.Run, error) {
	if !ledger.IsName(id) {
		return ledger.Run{}, usage.Errorf("%q is no run's id; `runs` lists them", id)
	}
	run, err := ledger.Load(ctx, s, id)
	if errors.Is(err, store.ErrNotExist) {
		err = usage.Errorf("there is no run %s in this store; `runs` lists them", id)
	}
	return run, err
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

func (p *program) showRun(ctx context.Context, s store.Store, run ledger.Run) error {
	report, err := reportOf(ctx, s, run)
	if err != nil {
		return err
	}
	return printable.JSON(p.stdout, report)
}

// reportOf is a run's report so far.
func reportOf(ctx context.Context, s store.Store, run ledger.Run) (report ledger.Report, err error) {
	j, _ := pipeline.Named(run.Job)
	if report, err = ledger.ReportSoFar(ctx, s, j.Job, run, time.Now()); err != nil {
		return report, err
	}
	logs, err := ledger.ReadLogs(ctx, s, run.RunID)
	report.Workers = ledger.Warnings(logs)
	return report, err
}

func listRuns(ctx context.Context, s store.Store, asJSON bool, stdout io.Writer, wanted func(ledger.Run) bool) error {
	return list(asJSON, stdout, func(yield func(ledger.Run, error) bool) {
		for r, err := range ledger.List(ctx, s) {
			if err != nil && r.RunID != "" { // a run that cannot be read does not end the list
				r.State, err = "unreadable", nil
			}
			if err == nil && !wanted(r) {
				continue
			}
			if err == nil {
				r, err = ledger.Seen(ctx, s, r)
			}
			if !yield(r, err) {
				return
			}
		}
	}, "RUN\tJOB\tRUNNER\tSTATE\tSTARTED\tFINISHED\tERROR", func(r ledger.Run) []string {
		finished := "-"
		if !r.FinishedAt.IsZero() {
			finished = r.FinishedAt.Format(time.RFC3339)
		}
		return []string{r.RunID, r.Job, r.Runner, string(r.State), r.StartedAt.Format(time.RFC3339), finished, cut(r.Error)}
	})
}

// list prints things as a table, or as JSON lines.
func list[T any](asJSON bool, stdout io.Writer, all iter.Seq2[T, error], head string, cells func(T) []string) error {
	if !asJSON {
		_, err := printTable(stdout, all, head, cells)
		return err
	}
	e := json.NewEncoder(stdout)
	for x, err := range all {
		if err == nil {
			err = e.Encode(x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printTable prints things as a table, and returns how many.
func printTable[T any](stdout io.Writer, all iter.Seq2[T, error], head string, cells func(T) []string) (n int64, err error) {
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for x, err := range all {
		if err == nil && n == 0 {
			_, err = fmt.Fprintln(t, head)
		}
		if err == nil {
			n++
			err = row(t, cells(x)...)
		}
		if err == nil && n%1000 == 0 { // a table of millions is not held in memory
			err = t.Flush()
		}
		if err != nil {
			return n, errors.Join(err, t.Flush())
		}
	}
	return n, t.Flush()
}

// removeRuns makes the command that removes old runs. A server with a retention does the same by itself.
func (p *program) removeRuns() *cobra.Command {
	var older string
	c := p.ofStore("rm", "remove runs that ended long ago, with their reports and logs, and dead letters whose last failure was before that",
		func(s *option.Set) { s.Text(&older, "older-than", "", "how long ago, such as 90d or 36h") },
		func(ctx context.Context, s store.Store, _ []string) error {
			age, err := usage.Age(older)
			if err != nil {
				return usage.Errorf("--older-than=%s: %w", older, err)
			}
			if _, err := p.jobsNamed(); err != nil {
				return err
			}
			done, err := ledger.Purge(ctx, s, p.o.Job, time.Now().Add(-age))
			_, werr := fmt.Fprintf(p.stdout, "removed %d runs and %d dead letters\n", done.Runs, done.DeadLetters)
			return errors.Join(err, werr)
		}, "job")
	c.Aliases = []string{"purge"}
	return c
}

// jobsNamed are the jobs that --job names: all without it.
func (p *program) jobsNamed() ([]pipeline.Job, error) {
	if p.o.Job == "" {
		return p.o.Jobs, nil
	}
	j, ok := pipeline.Find(p.o.Jobs, p.o.Job)
	if !ok {
		return nil, pipeline.NoJob(p.o.Job)
	}
	return []pipeline.Job{j}, nil
}

// cut shortens a text for a table; the show commands print all of it.
func cut(text string) string {
	if r := []rune(text); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return text
}

func (p *program) showLog() *cobra.Command {
	var warnings bool
	options := func(s *option.Set) { s.Yes(&warnings, "warnings", false, "only warnings and errors") }
	return p.ofStore("log RUN", "the log of a run and its workers, as JSON lines", options, func(ctx context.Context, s store.Store, w []string) error {
		run, err := runNamed(ctx, s, w[0])
		if err != nil {
			return err
		}
		b, err := ledger.ReadLog(ctx, s, run.RunID)
		if errors.Is(err, store.ErrNotExist) {
			return usage.Errorf("run %s has no log: it ended before it wrote one, or its log was removed because of its age", run.RunID)
		}
		for line := range bytes.Lines(b) {
			if err == nil && (!warnings || ledger.IsWarning(line)) {
				_, err = p.stdout.Write(line)
			}
		}
		return err
	})
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
