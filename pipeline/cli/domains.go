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
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/seed"
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
	filter := seed.Filter{Country: o.Country, Category: o.Category, Date: o.Date}
	if filter.Run, err = d.runID(ctx, s); err != nil {
		return err
	}
	n, err := d.print(ctx, s, filter, stdout)
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
		if err == nil && r.Job == seed.Job {
			return r.RunID, nil
		}
	}
	return "", usage.Errorf("--run=last: there is no run of the seed job in this store")
}

func (d domainsFlags) print(ctx context.Context, s store.Store, filter seed.Filter, stdout io.Writer) (n int64, err error) {
	if d.index {
		found := only(seed.Domains(ctx, s, filter), func(x seed.Domain) bool { return x.SitemapKind == "index" })
		return write(d.json, stdout, "domains", found, "DOMAIN\tCOUNTRY\tCATEGORY\tDATE\tCOLLECTED\tSITEMAP", func(x seed.Domain) []string {
			return []string{x.RegistrableDomain, x.Country, x.Category, x.Date, x.CollectedAt.Format(time.RFC3339), x.SitemapURL}
		})
	}
	found := only(seed.Outcomes(ctx, s, filter), func(x seed.Outcome) bool { return !d.failed || x.Failed() })
	return write(d.json, stdout, "outcomes", found, "DOMAIN\tCOUNTRY\tCATEGORY\tDATE\tAT\tSTATE\tREASON\tMESSAGE", func(x seed.Outcome) []string {
		return []string{x.RegistrableDomain, x.Country, x.Category, x.Date, x.At.Format(time.RFC3339), x.State, x.Reason, cut(x.Message)}
	})
}

// only yields the rows that are wanted, and the error.
func only[T any](all iter.Seq2[T, error], wanted func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for x, err := range all {
			if (err != nil || wanted(x)) && !yield(x, err) {
				return
			}
		}
	}
}

// write prints rows as a table, or as JSON lines, and returns how many.
func write[T any](asJSON bool, stdout io.Writer, name string, all iter.Seq2[T, error], head string, cells func(T) []string) (n int64, err error) {
	if asJSON {
		return rows.Write(rows.JSONL, stdout, name, all)
	}
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
