package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// changes makes the command that shows what the last run of a job changed, or what differs between two runs.
func (p *program) changes() *cobra.Command {
	var (
		asJSON        bool
		diff, between string
	)
	c := p.ofStore("changes [JOB]", "what the last run of a job changed", func(s *option.Set) {
		jsonLines(&asJSON)(s)
		s.Text(&between, "between", "",
			"seed: what differs between two versions of the table, the earlier one first: A,B, each in a form of `ls domains --as-of`")
		s.Text(&diff, "diff", "", "catalog: what differs between what two runs left, RUN..RUN, the earlier one first")
	}, func(ctx context.Context, s store.Store, w []string) error {
		job := append(w, p.o.Job)[0]
		i := slices.IndexFunc(export.All, func(w export.What) bool { return w.Job == job && w.Changed != nil })
		switch {
		case i < 0:
			return usage.Errorf("changes %s: use seed, docs, catalog or news", job)
		case diff != "" && export.All[i].Diff == nil:
			return usage.Errorf("--diff is for the catalog job")
		case export.All[i].NeedsDB() && p.o.Country+p.o.Category != "":
			return usage.Errorf("--country and --category are for the seed job")
		}
		what := export.All[i]
		f := export.Filter{Country: p.o.Country, Category: p.o.Category}
		if between != "" {
			earlier, later, two := strings.Cut(between, ",")
			switch {
			case !slices.Contains(what.Filters, "as-of"):
				return usage.Errorf("--between is for the seed job")
			case !two || earlier == "" || later == "":
				return usage.Errorf("--between=%s: write two versions, times or runs, the earlier one first: --between=A,B", between)
			}
			f.Before, f.AsOf = point(earlier), point(later)
		}
		var runs [2]ledger.Run
		var err error
		if diff != "" {
			runs, err = twoRuns(ctx, s, job, diff)
		} else if what.NeedsDB() {
			runs[0], err = lastRun(ctx, s, job)
			f.Since = runs[0].StartedAt
		}
		if err != nil {
			return err
		}
		return p.withRows(ctx, s, what, f, func(src export.Source) error {
			if diff != "" {
				return writeChanges(p, asJSON, what.Diff(ctx, src.DB, runs[0].FinishedAt, runs[1].FinishedAt), "KIND\tSITE\tPRODUCT\tFIELD\tWAS\tBECAME", func(r rows.Diff) []string {
					return []string{r.Kind, r.Site, r.ProductKey, r.Field, text(r.Was), text(r.Became)}
				})
			}
			return writeChanges(p, asJSON, what.Changed(ctx, src), "KIND\tSOURCE\tITEM\tWHAT", func(c rows.Change) []string {
				return []string{c.Kind, c.Source, c.Item, cut(c.What)}
			})
		})
	}, "job", "country", "category", "db")
	c.Long = "seed: domains that are new, gone, or whose robots.txt or sitemap changed: the newest date of each country and category that is done,\n" +
		"against the date before, or two versions of the table. docs, catalog, news: pages, products and articles that are new, changed, gone or back since the last run began."
	return c
}

// text is a value of a table; "": none.
func text(v *string) string {
	if v == nil {
		return ""
	}
	return cut(*v)
}

func writeChanges[T any](p *program, asJSON bool, all iter.Seq2[T, error], head string, cells func(T) []string) (err error) {
	var n int64
	if asJSON {
		n, err = rows.Write(rows.JSONL, p.stdout, "changes", all)
	} else {
		n, err = printTable(p.stdout, all, head, cells)
	}
	if err == nil && n == 0 {
		_, err = fmt.Fprintln(p.stderr, "nothing changed")
	}
	return err
}

// twoRuns returns the two ended runs of a job that RUN..RUN names.
func twoRuns(ctx context.Context, s store.Store, job, between string) (runs [2]ledger.Run, err error) {
	first, second, two := strings.Cut(between, "..")
	if !two || first == "" || second == "" {
		return runs, usage.Errorf("--diff=%s: write two run ids, the earlier one first: --diff=RUN..RUN; `runs` lists them", between)
	}
	for i, id := range []string{first, second} {
		r, err := runNamed(ctx, s, id)
		switch {
		case err != nil:
			return runs, err
		case r.Job != job:
			return runs, usage.Errorf("run %s is one of the %s job, not of %s", id, r.Job, job)
		case r.FinishedAt.IsZero():
			return runs, usage.Errorf("run %s has not ended; wait for it, or take another", id)
		}
		runs[i] = r
	}
	if !runs[0].FinishedAt.Before(runs[1].FinishedAt) {
		return runs, usage.Errorf("--diff=%s: run %s ended after run %s; write the earlier one first", between, first, second)
	}
	return runs, nil
}
