package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const changesUsage = `pipeline changes --job=JOB         what the last run of a job changed, as a table
  --job=seed     domains that are new, gone, or whose robots.txt or sitemap changed: the newest
                 date of each country and category that is done, against the date before
  --job=docs, catalog, news
                 pages, products and articles that are new, changed, gone or back since the last run began
  --diff=RUN..RUN
                 catalog: what differs between what these two runs left: products that are new, gone or
                 back, and each changed field with its values before and after
  --country=CC --category=NAME
                 seed: only these
  --json         one JSON object a line
  --db=DSN       docs, catalog and news: their database
`

// changesCommand prints what the last run of a job changed.
func changesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet("changes", flag.ContinueOnError)
	job, asJSON := f.String("job", "", ""), f.Bool("json", false, "")
	diff := f.String("diff", "", "")
	o, w, err := controlOptions(f, args, "country", "category", "db")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(export.All, func(w export.What) bool { return w.Job == *job && w.Changed != nil })
	switch {
	case len(w) > 0:
		return usage.Errorf("changes takes nothing but flags, not %q; see `help changes`", strings.Join(w, " "))
	case i < 0:
		return usage.Errorf("--job=%s: use seed, docs, catalog or news", *job)
	case *diff != "" && export.All[i].Diff == nil:
		return usage.Errorf("--diff is for --job=catalog")
	case export.All[i].NeedsDB() && o.Country+o.Category != "":
		return usage.Errorf("--country and --category are for --job=seed")
	}
	what := export.All[i]
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if *diff != "" {
		return runsDiff(ctx, s, what, *diff, &o, *asJSON, stdout, stderr)
	}
	src := export.Source{Store: s, Filter: export.Filter{Country: o.Country, Category: o.Category}}
	if what.NeedsDB() {
		if src.Since, err = lastRun(ctx, s, *job); err != nil {
			return err
		}
		if src.DB, err = openForExport(ctx, what, &o); err != nil {
			return err
		}
		defer func() { _ = src.DB.Close() }() // only read
	}
	n, err := write(*asJSON, stdout, "changes", what.Changed(ctx, src), "KIND\tSOURCE\tITEM\tWHAT", func(c rows.Change) []string {
		return []string{c.Kind, c.Source, c.Item, cut(c.What)}
	})
	if err == nil && n == 0 {
		_, err = fmt.Fprintln(stderr, "nothing changed")
	}
	return err
}

// lastRun returns when the last run of a job began.
func lastRun(ctx context.Context, s store.Store, job string) (time.Time, error) {
	for r, err := range ledger.List(ctx, s) {
		if err != nil && r.RunID == "" {
			return time.Time{}, err
		}
		if err == nil && r.Job == job {
			return r.StartedAt, nil
		}
	}
	return time.Time{}, usage.Errorf("there is no run of the %s job in this store; run it first", job)
}
