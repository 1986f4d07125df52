package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// exportOptions are the options of export that no run has.
type exportOptions struct {
	what, to, format string
	schema, failed   bool
	choice           choice
}

// export writes what the jobs found to a file.
func (p *program) export() *cobra.Command {
	e := exportOptions{choice: choice{}}
	c := p.command("export [WHAT] [FILE]", "write what the jobs found, as Parquet, JSON lines or CSV", func(s *option.Set) {
		s.Text(&e.format, "format", "", "parquet, jsonl or csv (default: by the file's ending)")
		e.choice.tell(s, []string{"run", "since", "as-of", "provider", "site", "publisher"})
		s.Yes(&e.failed, "failed", false, "only those that failed; of domains the rows of outcomes, with reasons")
		s.Yes(&e.schema, "schema", false, "print the JSON Schema of the rows, and export nothing")
		s.Text(&e.what, "what", "", "WHAT") // as scripts of before name them
		s.Text(&e.to, "to", "", "FILE")
	}, func(ctx context.Context, w []string) error {
		w = append(w, "", "")
		e.what, e.to = cmp.Or(w[0], e.what), cmp.Or(w[1], e.to, "-")
		return p.exportRows(ctx, &e)
	}, append([]string{"country", "category", "date", "db"}, stored...)...)
	for _, old := range []string{"what", "to"} {
		c.Flags().Lookup(old).Hidden = true
	}
	c.Long = "WHAT is " + usage.Or(export.Names()) + " (see docs/export.md).\n" +
		"FILE is a file; a folder, for a file in it that has WHAT's name; store:exports/NAME, an object of the store; or - for standard output."
	return c
}

func (p *program) exportRows(ctx context.Context, e *exportOptions) error {
	if e.what == "" {
		return usage.Errorf("export: say what: %s", usage.Or(export.Names()))
	}
	what, err := export.Named(e.what)
	if err != nil {
		return err
	}
	if e.schema {
		text, err := what.Schema()
		if err == nil {
			_, err = p.stdout.Write(text)
		}
		return err
	}
	var keep func(explore.Record) bool
	if e.failed {
		if what.FailedIn != "" {
			what, _ = export.Named(what.FailedIn)
		}
		if keep = what.Failed; keep == nil {
			return usage.Errorf("--failed means nothing to %s; use `errors ls`", what.Name)
		}
	}
	filter, err := p.filter(e.choice, what)
	if err != nil {
		return err
	}
	to, err := export.ParseTarget(what.Name, e.to, e.format)
	if err != nil {
		return err
	}
	within, stop := signal.NotifyContext(ctx, launch.Endings()...)
	defer stop()
	s, err := launch.OpenStore(within, &p.o.Options, p.stderr)
	if err != nil {
		return err
	}
	err = p.withRows(within, s, what, filter, func(src export.Source) error {
		n, err := to.Write(within, s, p.stdout, func(out io.Writer) (int64, error) { return what.Write(within, src, keep, to.Format, out) })
		if err == nil {
			_, err = fmt.Fprintf(p.stderr, "wrote %d rows of %s to %s\n", n, what.Name, to)
		}
		return err
	})
	if within.Err() != nil && err != nil {
		err = errExportInterrupted
	}
	return errors.Join(err, s.Close())
}

var errExportInterrupted = errors.New("the export was interrupted and has written nothing; start it again")
