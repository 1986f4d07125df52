package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// ofPartition are the options of runs that choose rows of the seed job.
var ofPartition = []string{"country", "category", "date"}

// choice are the options that choose rows and that no run has, by name.
type choice map[string]*string

// tell adds those options to a set that the rows have.
func (c choice) tell(s *option.Set, filters []string) {
	for _, f := range [][2]string{
		{"run", "only of this run; last: of the newest run"},
		{"since", "only what was collected or changed then or later: 2026-01-28, 2026-01-28T12:00:00Z, 7d or 36h ago"},
		{"as-of", "of an earlier version of the table: its number, a time as of --since, or a run that changed it"},
		{"provider", "only of these providers, by id, separated by commas"},
		{"site", "only of these sites, by name, separated by commas"},
		{"publisher", "only of these publishers, by id, separated by commas"},
	} {
		if slices.Contains(filters, f[0]) {
			c[f[0]] = new(string)
			s.Text(c[f[0]], f[0], "", f[1])
		}
	}
}

// filter returns the filter of a kind of rows, and refuses options that mean nothing to it. The run is looked for by runOf.
func (p *program) filter(c choice, what export.What) (f export.Filter, err error) {
	given := map[string]bool{}
	for _, name := range ofPartition {
		given[name] = p.o.from[name] == "flag"
	}
	for name, v := range c {
		if given[name] = *v != ""; !given[name] {
			continue
		}
		switch name {
		case "run":
			f.Run = *v
		case "since":
			if f.Since, err = since(*v, time.Now()); err != nil {
				return f, err
			}
		case "as-of":
			f.AsOf = point(*v)
		default:
			for name := range strings.SplitSeq(*v, ",") {
				f.Names = append(f.Names, strings.TrimSpace(name))
			}
		}
	}
	for name, is := range given {
		if is && !slices.Contains(what.Filters, name) {
			return f, usage.Errorf("--%s means nothing to %s; its filters are --%s", name, what.Name, strings.Join(what.Filters, ", --"))
		}
	}
	f.Country, f.Category, f.Date = p.o.Country, p.o.Category, p.o.Date
	return f, nil
}

// since reads a day, a time, or how long ago it was.
func since(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	age, err := usage.Age(text)
	if err != nil {
		return time.Time{}, usage.Errorf("--since=%s: write a day such as 2026-01-28, a time such as 2026-01-28T12:00:00Z, or how long ago: 7d, 36h", text)
	}
	return now.Add(-age), nil
}

// point is a time in the form of export.Filter, or the text of a version or run as it is.
func point(text string) string {
	if t, err := since(text, time.Now()); err == nil {
		return t.Format(time.RFC3339Nano)
	}
	return text
}

// withRows calls do with where the rows of a kind are. A database that does not exist is refused.
func (p *program) withRows(ctx context.Context, s store.Store, what export.What, f export.Filter, do func(export.Source) error) (err error) {
	src := export.Source{Store: s, Filter: f}
	switch f.Run {
	case "":
	case "last":
		var last ledger.Run
		if last, err = lastRun(ctx, s, what.Job); err == nil {
			src.Run = last.RunID
		}
	default:
		_, err = runNamed(ctx, s, f.Run)
	}
	if err != nil {
		return err
	}
	if what.NeedsDB() {
		p.o.Job = what.Job
		if err := p.o.placeDB(); err != nil {
			return err
		}
		if file, missing := db.Missing(p.o.DB); missing {
			return usage.Errorf("there is no database %s; run --job=%s first, or name another one with --db", file, what.Job)
		}
		if src.DB, err = what.Open(ctx, p.o.DB); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, src.DB.Close()) }()
	}
	return do(src)
}

// lastRun returns the newest run of a job.
func lastRun(ctx context.Context, s store.Store, job string) (ledger.Run, error) {
	for r, err := range ledger.List(ctx, s) {
		if err != nil && r.RunID == "" {
			return r, err
		}
		if err == nil && r.Job == job {
			return r, nil
		}
	}
	return ledger.Run{}, usage.Errorf("there is no run of the %s job in this store; run it first", job)
}

// ls lists what a job found.
func (p *program) ls() *cobra.Command {
	var all []*cobra.Command
	for _, w := range export.All {
		all = append(all, p.lsKind(w))
	}
	return family("ls KIND", "list what the jobs found: domains, pages, products, articles", all...)
}

func (p *program) lsKind(kind export.What) *cobra.Command {
	shown := kind
	if kind.FailedIn != "" { // its rows are things that did not fail
		shown, _ = export.Named(kind.FailedIn)
	}
	var (
		failed, index, asJSON bool
		limit                 int
		c                     = choice{}
	)
	indexed := slices.ContainsFunc(kind.Columns(), func(c rows.Column) bool { return c.Name == "sitemap_kind" })
	takes := slices.DeleteFunc(slices.Clone(shown.Filters), func(name string) bool { return !slices.Contains(ofPartition, name) })
	if kind.NeedsDB() {
		takes = append(takes, "db")
	}
	return p.ofStore(kind.Name, shown.About, func(s *option.Set) {
		s.Yes(&failed, "failed", false, "only those that failed, where the rows tell it")
		if indexed {
			s.Yes(&index, "index", false, "only those whose sitemap is an index of sitemaps")
		}
		c.tell(s, shown.Filters)
		s.Number(&limit, "limit", 0, "the first N; 0: all").From(0)
		jsonLines(&asJSON)(s)
	}, func(ctx context.Context, s store.Store, _ []string) error {
		what, keep := shown, func(explore.Record) bool { return true }
		switch {
		case index && failed:
			return usage.Errorf("--index lists what did not fail; leave --failed out")
		case index:
			what, keep = kind, func(r explore.Record) bool { return r.Column("sitemap_kind").Value == "index" }
		case failed && shown.Failed == nil:
			return usage.Errorf("--failed means nothing to %s; `errors ls` lists the failures", kind.Name)
		case failed:
			keep = shown.Failed
		}
		f, err := p.filter(c, what)
		if err != nil {
			return err
		}
		return p.withRows(ctx, s, what, f, func(src export.Source) error {
			n := 0
			found, err := p.listRows(ctx, what, src, asJSON, func(r explore.Record) bool {
				if !keep(r) {
					return false
				}
				n++
				return limit == 0 || n <= limit
			})
			if err == nil && found == 0 {
				if err = what.Known(ctx, src); err == nil {
					_, err = fmt.Fprintln(p.stderr, "nothing matches")
				}
			}
			return err
		})
	}, takes...)
}

// listRows prints the rows that keep keeps as a table, or as JSON lines, and returns how many.
func (p *program) listRows(ctx context.Context, what export.What, src export.Source, asJSON bool, keep func(explore.Record) bool) (int64, error) {
	if asJSON {
		return what.What.Write(ctx, src, keep, rows.JSONL, p.stdout)
	}
	return printTable(p.stdout, func(yield func(explore.Record, error) bool) {
		for r, err := range what.Records(ctx, src) {
			if (err != nil || keep(r)) && !yield(r, err) {
				return
			}
		}
	}, what.Head(), func(r explore.Record) []string { return what.Cells(r, cut) })
}

// get shows one thing that a job found.
func (p *program) get() *cobra.Command {
	var all []*cobra.Command
	for _, w := range export.All {
		if w.Find != nil {
			all = append(all, p.getKind(w))
		}
	}
	return family("get KIND ID", "one thing that a job found: a domain, page, chunk, product or article", all...)
}

func (p *program) getKind(what export.What) *cobra.Command {
	use := what.Name
	for i, k := range what.Find.Keys {
		use += " " + []string{strings.ToUpper(k.Name), "[" + strings.ToUpper(k.Name) + "]"}[min(i, 1)]
	}
	return p.ofStore(use, "one "+what.Find.One+", with all that is kept of it, as JSON", nil, func(ctx context.Context, s store.Store, w []string) error {
		q := explore.Query{}
		for i, word := range w {
			q[what.Find.Keys[i].Name] = word
		}
		src, err := p.o.source(ctx, s, what.Job)
		if src.DB != nil {
			defer func() { _ = src.DB.Close() }() // it is only read from
		}
		var item explore.Item
		if err == nil {
			q, err = onlyOne(ctx, what, src, q)
		}
		if err == nil {
			item, err = what.Find.Show(ctx, src, q)
		}
		switch {
		case errors.Is(err, explore.ErrNone):
			return usage.Errorf("get %s %s: %w: `ls %[1]s` lists what is stored", what.Name, strings.Join(w, " "), err)
		case errors.Is(err, explore.ErrNothingYet) || usage.Is(err):
			return usage.Errorf("get %s: %w", what.Name, err)
		case err != nil:
			return err
		}
		return printable.JSON(p.stdout, item)
	}, "db")
}

// onlyOne completes the first keys of a thing, if only one has them, and else names the first of those that do.
func onlyOne(ctx context.Context, what export.What, src explore.Source, q explore.Query) (explore.Query, error) {
	if len(q) == len(what.Find.Keys) {
		return q, nil
	}
	found, err := what.Find.Search(ctx, src, q)
	switch {
	case err != nil:
		return nil, err
	case len(found.Items) == 0:
		return nil, explore.ErrNone
	case len(found.Items) == 1 && found.Next == "":
		return found.Items[0].Key, nil
	}
	var whole []string
	for _, item := range found.Items[:min(len(found.Items), 5)] {
		words := []string{"get", what.Name}
		for _, k := range what.Find.Keys {
			words = append(words, item.Key[k.Name])
		}
		whole = append(whole, "`"+strings.Join(words, " ")+"`")
	}
	return nil, explore.Refuse("several have this key; write the whole of one, such as %s", usage.Or(whole))
}
