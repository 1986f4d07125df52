package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const removalsUsage = `pipeline removals [list]           requests to remove what was kept of a docs provider, and until when
pipeline removals request --provider=ID [--from=WHO] [--note=TEXT] [--db=…] [--policies=DIR]
                                   records such a request; it must be done within 48 hours. A
                                   provider without a policy must have left something in the database
pipeline removals do [--db=…]      does the open requests: removes everything, rewrites the database's
                                   files, and writes a receipt of each (every docs run does it too)
pipeline removals show ID          a request with its receipt, as JSON
`

// removalsCommand records requests to remove what was kept of a provider, and does them.
func removalsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet("removals", flag.ContinueOnError)
	provider, from, note := f.String("provider", "", ""), f.String("from", "", ""), f.String("note", "", "")
	o, w, err := controlOptions(f, args, "db", "policies")
	if err != nil {
		return err
	}
	verb := "list"
	if len(w) > 0 {
		verb, w = w[0], w[1:]
	}
	known := verb == "list" || verb == "do" || verb == "request" || verb == "show"
	switch {
	case !known, verb != "show" && len(w) > 0:
		return usage.Errorf("removals %s: write removals list, request --provider=ID, do, or show ID; see `help removals`", strings.Join(append([]string{verb}, w...), " "))
	case verb == "show" && (len(w) != 1 || !ledger.IsName(w[0])):
		return usage.Errorf("removals show: name one request; `removals list` lists them")
	case verb == "request" && *provider == "":
		return usage.Errorf("removals request: name the provider, by --provider=ID")
	case verb != "request" && *provider+*from+*note != "":
		return usage.Errorf("--provider, --from and --note are for removals request")
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if verb == "request" || verb == "do" {
		o.Job = "docs"
		if err := o.placeDB(); err != nil {
			return err
		}
	}
	switch verb {
	case "request":
		r, err := pipeline.RecordRemoval(ctx, o.DB, o.Flags.Value("policies"), s, *provider, *from, *note)
		if err == nil {
			_, err = fmt.Fprintf(stdout, "%s: everything of %s must be removed until %s; `removals do` does it, and so does the next docs run\n", r.ID, r.Provider, r.Due.Format(time.RFC3339))
		}
		return err
	case "do":
		return pipeline.Removals(ctx, o.DB, s, stdout)
	case "show":
		e, err := removal.Find(ctx, s, w[0])
		if errors.Is(err, removal.ErrNone) {
			return usage.Errorf("there is no request %s; `removals list` lists them", w[0])
		}
		if err != nil {
			return err
		}
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		return out.Encode(e)
	}
	return listRemovals(ctx, s, stdout)
}

func listRemovals(ctx context.Context, s store.Store, stdout io.Writer) error {
	all, err := removal.All(ctx, s)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if err := row(t, "REQUEST", "PROVIDER", "ASKED", "DUE", "STATE", "FROM", "NOTE"); err != nil {
		return err
	}
	for _, e := range all {
		state := "open"
		if e.Receipt != nil {
			state = "done " + e.Receipt.DoneAt.Format(time.RFC3339)
		}
		if err := row(t, e.ID, e.Provider, e.At.Format(time.RFC3339), e.Due.Format(time.RFC3339), state, e.From, e.Note); err != nil {
			return err
		}
	}
	return t.Flush()
}
