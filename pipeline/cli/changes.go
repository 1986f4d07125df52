package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/asked"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/seed"
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

// change is a line of what changed.
type change struct {
	Kind   string `parquet:"kind" doc:"new, changed, gone or, of a product that was gone, back"`
	Source string `parquet:"source" doc:"seed: country/category/date; else the provider, site or publisher"`
	Item   string `parquet:"item" doc:"the domain, the product's key, or the URL of the page or article"`
	What   string `parquet:"what" doc:"what changed, or the title; empty: nothing to say"`
}

// changesCommand prints what the last run of a job changed.
func changesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet("changes", flag.ContinueOnError)
	job, asJSON := f.String("job", "", ""), f.Bool("json", false, "")
	diff := f.String("diff", "", "")
	o, w, err := controlOptions(f, args, "country", "category", "db")
	if err != nil {
		return err
	}
	what := map[string]string{seed.Job: "domains", docs.Job: "pages", catalog.Job: "products", news.Job: "articles"}[*job]
	switch {
	case len(w) > 0:
		return usage.Errorf("changes takes nothing but flags, not %q; see `help changes`", strings.Join(w, " "))
	case what == "":
		return usage.Errorf("--job=%s: use seed, docs, catalog or news", *job)
	case *diff != "" && *job != catalog.Job:
		return usage.Errorf("--diff is for --job=catalog")
	case *job != seed.Job && o.Country+o.Category != "":
		return usage.Errorf("--country and --category are for --job=seed")
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if *diff != "" {
		return catalogDiff(ctx, s, *diff, &o, *asJSON, stdout, stderr)
	}
	var all iter.Seq2[change, error]
	if *job == seed.Job {
		all = domainChanges(ctx, s, seed.Filter{Country: o.Country, Category: o.Category})
	} else {
		began, err := lastRun(ctx, s, *job)
		if err != nil {
			return err
		}
		w, err := export.Named(what)
		if err != nil {
			return err
		}
		d, err := openForExport(ctx, w, &o)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }() // only read
		if all, err = rowChanges(ctx, d, *job, began); err != nil {
			return err
		}
	}
	n, err := write(*asJSON, stdout, "changes", all, "KIND\tSOURCE\tITEM\tWHAT", func(c change) []string {
		return []string{c.Kind, c.Source, c.Item, cut(c.What)}
	})
	if err == nil && n == 0 {
		_, err = fmt.Fprintln(stderr, "nothing changed")
	}
	return err
}

// rowChanges are the changes since a time in a job's database.
func rowChanges(ctx context.Context, d *db.DB, job string, began time.Time) (iter.Seq2[change, error], error) {
	switch job {
	case catalog.Job:
		return mapped(catalog.Products(ctx, d, catalog.Filter{Since: began}), func(p catalog.ProductRow) change {
			kind := kindOf(!p.FirstSeen.Before(began), p.GoneAt != nil)
			if kind == "changed" && p.State == "back" {
				kind = p.State
			}
			return change{kind, p.Site, p.ProductKey, p.URL}
		}), nil
	case news.Job:
		return mapped(raw.Articles(ctx, d, raw.Filter{Since: began}, d.Now()), func(a raw.ArticleRow) change {
			return change{kindOf(!a.CollectedAt.Before(began), false), a.Publisher, a.URL, a.Title}
		}), nil
	}
	pages, err := asked.ChangesSince(ctx, d, began, "", math.MaxInt32)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pages, func(a, b asked.ChangedPage) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.URL, b.URL))
	})
	return func(yield func(change, error) bool) {
		for _, p := range pages {
			if !yield(change{kindOf(p.Kind == "new", p.Kind == "deleted"), p.Provider, p.URL, p.Title}, nil) {
				return
			}
		}
	}, nil
}

func kindOf(isNew, gone bool) string {
	switch {
	case gone:
		return "gone"
	case isNew:
		return "new"
	}
	return "changed"
}

func domainChanges(ctx context.Context, s store.Store, f seed.Filter) iter.Seq2[change, error] {
	return mapped(seed.Changes(ctx, s, f), func(c seed.Change) change {
		return change{c.Kind, c.Country + "/" + c.Category + "/" + c.Date, c.RegistrableDomain, c.What}
	})
}

func mapped[T any](all iter.Seq2[T, error], to func(T) change) iter.Seq2[change, error] {
	return func(yield func(change, error) bool) {
		for x, err := range all {
			if err != nil {
				yield(change{}, err)
				return
			}
			if !yield(to(x), nil) {
				return
			}
		}
	}
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
