package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const exportUsage = `pipeline export --what=WHAT --to=FILE [filters]
                                  writes what the jobs found to a file (see docs/export.md)
  --what=WHAT    %s
  --to=FILE      a file; a folder: a file in it that has WHAT's name; store:exports/NAME: an object
                 of the store; - : standard output, as JSON lines
  --format=NAME  parquet, jsonl or csv (default: by the file's ending); pages: also markdown, a folder
                 with one file a page
  --country=CC --category=NAME --date=YYYY-MM-DD
                 domains, feeds, outcomes: only these
  --run=ID       outcomes: of this run
  --provider=ID,… --site=NAME,… --publisher=ID,…
                 pages, chunks, links; products, product-history, product-images; articles,
                 article-versions: only of these
  --since=TIME   only what was collected or changed then or later: 2026-01-28, 2026-01-28T12:00:00Z,
                 7d or 36h ago
  --schema       prints the JSON Schema of WHAT's rows, and exports nothing
  --policies=DIR markdown: the policies of the providers, which say tos: allowed (default: those
                 shipped with the program); of other pages only the first 200 characters are written
  --db=DSN       docs, catalog and news: their database
`

// exportFlags are the flags of export that no run has.
type exportFlags struct {
	what, to, format, run, since string
	provider, site, publisher    string
	policies                     string
	schema                       bool
}

func (e *exportFlags) define(f *flag.FlagSet) {
	f.StringVar(&e.what, "what", "", "")
	f.StringVar(&e.to, "to", "", "")
	f.StringVar(&e.format, "format", "", "")
	f.StringVar(&e.run, "run", "", "")
	f.StringVar(&e.since, "since", "", "")
	f.StringVar(&e.provider, "provider", "", "")
	f.StringVar(&e.site, "site", "", "")
	f.StringVar(&e.publisher, "publisher", "", "")
	f.StringVar(&e.policies, "policies", "", "")
	f.BoolVar(&e.schema, "schema", false, "")
}

func exportCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var e exportFlags
	f := flag.NewFlagSet("export", flag.ContinueOnError)
	e.define(f)
	o, w, err := controlOptions(f, args, "country", "category", "date", "db")
	if err != nil {
		return err
	}
	if len(w) > 0 {
		return usage.Errorf("export takes nothing but flags, not %q; see `help export`", strings.Join(w, " "))
	}
	if e.what == "" {
		return usage.Errorf("--what is missing; use --what=%s", usage.Or(export.Names()))
	}
	what, err := export.Named(e.what)
	if err != nil {
		return err
	}
	if e.schema {
		text, err := what.Schema()
		if err == nil {
			_, err = stdout.Write(text)
		}
		return err
	}
	filter, err := e.filter(f, what, o)
	if err != nil {
		return err
	}
	var to export.Target
	if e.format == markdown {
		err = e.forMarkdown(what)
	} else if to, err = export.ParseTarget(what.Name, e.to, e.format); err == nil && e.policies != "" {
		err = usage.Errorf("--policies is for --format=%s", markdown)
	}
	if err != nil {
		return err
	}
	within, stop := signal.NotifyContext(ctx, launch.Endings()...)
	defer stop()
	s, err := launch.OpenStore(within, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	src := export.Source{Store: s, Filter: filter}
	if what.NeedsDB() {
		if src.DB, err = openForExport(within, what, &o); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, src.DB.Close()) }()
	}
	if e.format == markdown {
		loaded, err := pipeline.ProviderPolicies(within, s, e.policies)
		if err == nil {
			err = what.Known(within, src)
		}
		if err == nil {
			err = pipeline.WriteMarkdown(within, src.DB, s, "to", e.to, filter.Names, loaded, stdout)
		}
		if within.Err() != nil && err != nil {
			return errors.New("the export was interrupted; the pages that it has written are whole: start it again for the others")
		}
		return err
	}
	n, err := to.Write(within, s, stdout, func(out io.Writer) (int64, error) { return what.Write(within, src, to.Format, out) })
	switch {
	case within.Err() != nil && err != nil:
		return errExportInterrupted
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(stderr, "wrote %d rows of %s to %s\n", n, what.Name, to)
	return err
}

// markdown is the format of a folder with one file a page.
const markdown = "markdown"

// forMarkdown checks what an export as Markdown asks for.
func (e *exportFlags) forMarkdown(what export.What) error {
	switch info, err := os.Stat(e.to); {
	case what.Name != "pages":
		return usage.Errorf("--format=%s is for --what=pages; use parquet, jsonl or csv", markdown)
	case e.since != "":
		return usage.Errorf("--since means nothing to --format=%s, which writes all pages", markdown)
	case e.to == "" || e.to == "-" || strings.HasPrefix(e.to, "store:") || strings.Contains(e.to, "://") || err == nil && !info.IsDir():
		return usage.Errorf("--to=%s: --format=%s needs a folder", e.to, markdown)
	}
	_, err := pipeline.Policies(e.policies)
	return err
}

var errExportInterrupted = errors.New("the export was interrupted and has written nothing; start it again")

// openForExport opens the database of a What's job, which must exist.
func openForExport(ctx context.Context, what export.What, o *Options) (*db.DB, error) {
	o.Job = what.Job
	if err := o.placeDB(); err != nil {
		return nil, err
	}
	if file, missing := db.Missing(o.DB); missing {
		return nil, usage.Errorf("there is no database %s; run --job=%s first, or name another one with --db", file, what.Job)
	}
	return what.Open(ctx, o.DB)
}

// filter returns the filters of a What, and refuses those of others.
func (e *exportFlags) filter(f *flag.FlagSet, what export.What, o Options) (filter export.Filter, err error) {
	f.Visit(func(g *flag.Flag) {
		if slices.Contains([]string{"country", "category", "date", "run", "since", "provider", "publisher", "site"}, g.Name) && !slices.Contains(what.Filters, g.Name) && err == nil {
			err = usage.Errorf("--%s means nothing to --what=%s; its filters are --%s", g.Name, what.Name, strings.Join(what.Filters, ", --"))
		}
	})
	if err != nil {
		return filter, err
	}
	if e.run != "" && !ledger.IsName(e.run) {
		return filter, usage.Errorf("%q is no run's id; `runs` lists them", e.run)
	}
	filter = export.Filter{Country: o.Country, Category: o.Category, Date: o.Date, Run: e.run}
	for _, name := range strings.FieldsFunc(e.provider+","+e.site+","+e.publisher, func(r rune) bool { return r == ',' }) {
		filter.Names = append(filter.Names, strings.TrimSpace(name))
	}
	filter.Since, err = since(e.since, time.Now())
	return filter, err
}

// since reads a day, a time, or how long ago it was.
func since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	age, err := days(text)
	if err != nil {
		return time.Time{}, usage.Errorf("--since=%s: write a day such as 2026-01-28, a time such as 2026-01-28T12:00:00Z, or how long ago: 7d, 36h", text)
	}
	return now.Add(-age), nil
}
