package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const domainsUsage = `pipeline domains                  what became of each domain, and why, as a table
pipeline domains --failed         those that did not answer, or could not be stored
pipeline domains --index          those whose sitemap is an index of sitemaps
  --run=ID|last  those that this run visited, or the seed job's last one
  --country=CC --category=NAME --date=YYYY-MM-DD
                 only these
  --json         one JSON object a line, as of ` + "`pipeline export`" + ` (see docs/export.md)
`

// domainsFlags are the flags of domains that no run has.
type domainsFlags struct {
	failed, index, json bool
	run                 string
}

// domainsCommand prints what became of the domains of a store, of both layouts.
func domainsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var d domainsFlags
	f := flag.NewFlagSet("domains", flag.ContinueOnError)
	f.BoolVar(&d.failed, "failed", false, "")
	f.BoolVar(&d.index, "index", false, "")
	f.BoolVar(&d.json, "json", false, "")
	f.StringVar(&d.run, "run", "", "")
	o, w, err := controlOptions(f, args, "country", "category", "date")
	if err != nil {
		return err
	}
	switch {
	case len(w) > 0:
		return usage.Errorf("domains takes nothing but flags, not %q; see `help domains`", strings.Join(w, " "))
	case d.index && (d.failed || d.run != ""):
		return usage.Errorf("--index lists domains whatever run visited them; leave --failed and --run out")
	case d.run != "" && !ledger.IsName(d.run):
		return usage.Errorf("--run=%s is no run's id; write --run=last, or an id of `runs`", d.run)
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	src := export.Source{Store: s, Filter: export.Filter{Country: o.Country, Category: o.Category, Date: o.Date}}
	if src.Run, err = d.runID(ctx, s); err != nil {
		return err
	}
	name, keep := "outcomes", func(explore.Record) bool { return true }
	if d.index {
		name, keep = "domains", func(r explore.Record) bool { return r.Column("sitemap_kind").Value == "index" }
	}
	what, err := export.Named(name)
	if err != nil {
		return err
	}
	if d.failed {
		keep = what.Failed
	}
	n, err := listRows(ctx, what, src, keep, d.json, stdout)
	if err == nil && n == 0 {
		_, err = fmt.Fprintln(stderr, "no domain matches; `domains` alone lists all that are done or failed")
	}
	return err
}

// runID is the run that --run names, "" for none.
func (d domainsFlags) runID(ctx context.Context, s store.Store) (string, error) {
	if d.run != "last" {
		if d.run == "" {
			return "", nil
		}
		_, err := ledger.Load(ctx, s, d.run)
		if errors.Is(err, store.ErrNotExist) {
			err = usage.Errorf("there is no run %s in this store; `runs` lists them", d.run)
		}
		return d.run, err
	}
	for r, err := range ledger.List(ctx, s) {
		if err != nil && r.RunID == "" {
			return "", err
		}
		if err == nil && r.Job == "seed" {
			return r.RunID, nil
		}
	}
	return "", usage.Errorf("--run=last: there is no run of the seed job in this store")
}

// listRows prints the rows that keep keeps as a table, or as JSON lines, and returns how many.
func listRows(ctx context.Context, what export.What, src export.Source, keep func(explore.Record) bool, asJSON bool, stdout io.Writer) (int64, error) {
	if asJSON {
		return what.What.Write(ctx, src, keep, rows.JSONL, stdout)
	}
	found := func(yield func(explore.Record, error) bool) {
		for r, err := range what.Records(ctx, src) {
			if (err != nil || keep(r)) && !yield(r, err) {
				return
			}
		}
	}
	return printTable(stdout, found, what.Head(), func(r explore.Record) []string { return what.Cells(r, cut) })
}

// write prints rows as a table, or as JSON lines, and returns how many.
func write[T any](asJSON bool, stdout io.Writer, name string, all iter.Seq2[T, error], head string, cells func(T) []string) (n int64, err error) {
	if asJSON {
		return rows.Write(rows.JSONL, stdout, name, all)
	}
	return printTable(stdout, all, head, cells)
}

func printTable[T any](stdout io.Writer, all iter.Seq2[T, error], head string, cells func(T) []string) (n int64, err error) {
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for x, err := range all {
		if err != nil {
			return n, errors.Join(err, t.Flush())
		}
		if n == 0 {
			if _, err := fmt.Fprintln(t, head); err != nil {
				return n, err
			}
		}
		n++
		if err := row(t, cells(x)...); err != nil {
			return n, err
		}
		if n%1000 == 0 { // a table of millions is not held in memory
			if err := t.Flush(); err != nil {
				return n, err
			}
		}
	}
	return n, t.Flush()
}
