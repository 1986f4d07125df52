package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const lsUsage = `lists what a job found, as a table
  --failed       those that failed, where the rows tell it
  --since=TIME   what was collected or changed then or later: 2026-01-28, 7d
  --provider=ID,… --site=NAME,… --publisher=ID,…
                 only of these
  --limit=N      the first N
  --json         one JSON object a line, as of export
`

// ls lists what a job found.
func (p *program) ls() *cobra.Command {
	all := []*cobra.Command{p.pass("domains", "what became of each domain, and why", domainsUsage+controlFlags, domainsCommand)}
	for _, w := range export.All {
		if w.Name != "domains" {
			all = append(all, p.pass(w.Name, w.About, lsUsage+controlFlags, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
				return lsCommand(ctx, w, args, stdout, stderr)
			}))
		}
	}
	return family("ls KIND", "list what the jobs found: domains, pages, products, articles", all...)
}

func lsCommand(ctx context.Context, what export.What, args []string, stdout, stderr io.Writer) (err error) {
	var e exportFlags
	f := flag.NewFlagSet("ls "+what.Name, flag.ContinueOnError)
	failed, asJSON, limit := f.Bool("failed", false, ""), f.Bool("json", false, ""), f.Int("limit", 0, "")
	for name, to := range map[string]*string{"run": &e.run, "since": &e.since, "provider": &e.provider, "site": &e.site, "publisher": &e.publisher} {
		f.StringVar(to, name, "", "")
	}
	o, w, err := controlOptions(f, args, "country", "category", "date", "db")
	switch {
	case err != nil:
		return err
	case len(w) > 0:
		return usage.Errorf("ls %s takes nothing but flags, not %q", what.Name, strings.Join(w, " "))
	case *failed && what.Failed == nil:
		return usage.Errorf("--failed means nothing to %s; `errors ls` lists the failures", what.Name)
	}
	src := export.Source{}
	if src.Filter, err = e.filter(f, what, o); err != nil {
		return err
	}
	if src.Store, err = launch.OpenStore(ctx, &o.Options, stderr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Store.Close()) }()
	if what.NeedsDB() {
		if src.DB, err = openForExport(ctx, what, &o); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, src.DB.Close()) }()
	}
	n := 0
	found, err := listRows(ctx, what, src, func(r explore.Record) bool {
		if *failed && !what.Failed(r) {
			return false
		}
		n++
		return *limit <= 0 || n <= *limit
	}, *asJSON, stdout)
	if err == nil && found == 0 {
		if err = what.Known(ctx, src); err == nil {
			_, err = fmt.Fprintln(stderr, "nothing matches")
		}
	}
	return err
}

// get shows one thing that a job found.
func (p *program) get() *cobra.Command {
	var all []*cobra.Command
	for _, w := range export.All {
		if w.Find == nil {
			continue
		}
		use := w.Name
		for _, k := range w.Find.Keys {
			use += " " + strings.ToUpper(k.Name)
		}
		all = append(all, p.pass(use, "one "+w.Find.One+", with all that is kept of it, as JSON", use+controlFlags, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
			return getCommand(ctx, w, args, stdout, stderr)
		}))
	}
	return family("get KIND ID", "one thing that a job found: a domain, page, chunk, product or article", all...)
}

func getCommand(ctx context.Context, what export.What, args []string, stdout, stderr io.Writer) (err error) {
	o, w, err := controlOptions(flag.NewFlagSet("get "+what.Name, flag.ContinueOnError), args, "db")
	if err != nil {
		return err
	}
	q, keys := explore.Query{}, []string{}
	for i, k := range what.Find.Keys {
		keys = append(keys, strings.ToUpper(k.Name))
		q[k.Name] = slices.Concat(w, make([]string, len(what.Find.Keys)))[i]
	}
	if len(w) != len(keys) {
		return usage.Errorf("get %s: write its %s; `ls %s --json` has them", what.Name, strings.Join(keys, ", "), what.Name)
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	src, err := o.source(ctx, s, what.Job)
	if src.DB != nil {
		defer func() { err = errors.Join(err, src.DB.Close()) }()
	}
	var item explore.Item
	if err == nil {
		item, err = what.Find.Show(ctx, src, q)
	}
	var refused *explore.RefusedError
	switch {
	case errors.Is(err, explore.ErrNone), errors.Is(err, explore.ErrNothingYet), errors.As(err, &refused):
		return usage.Errorf("get %s: %w", what.Name, err)
	case err != nil:
		return err
	}
	out := json.NewEncoder(stdout)
	out.SetIndent("", "  ")
	return out.Encode(item)
}
