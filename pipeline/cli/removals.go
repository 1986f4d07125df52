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
	"text/tabwriter"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const removalsUsage = `pipeline removals [list]           requests to remove what was kept of a source, and until when
pipeline removals request --provider=ID|--site=NAME|--publisher=ID|--domain=NAME
         [--from=WHO] [--note=TEXT] [--db=…] [--policies=DIR]
                                   records such a request; it must be done within 48 hours. Something of the
                                   source must be kept; a provider may have only a policy
pipeline removals do [--db=…]      does the open requests: removes everything, rewrites the database's files, and
                                   writes a receipt of each (a server does it too, and each docs run for providers)
pipeline removals show ID          a request with its receipt, as JSON
`

// removalsCommand records requests to remove what was kept of a source, and does them.
func removalsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet("removals", flag.ContinueOnError)
	from, note := f.String("from", "", ""), f.String("note", "", "")
	var of []pipeline.Job // whose sources can be removed
	var kinds []string
	names := map[string]*string{}
	for _, j := range pipeline.All() {
		if j.Removal != nil {
			of, kinds = append(of, j), append(kinds, "--"+j.Removal.Kind)
			names[j.Name] = f.String(j.Removal.Kind, "", "")
		}
	}
	o, w, err := controlOptions(f, args, "db", "policies")
	if err != nil {
		return err
	}
	verb := "list"
	if len(w) > 0 {
		verb, w = w[0], w[1:]
	}
	asked := slices.DeleteFunc(slices.Clone(of), func(j pipeline.Job) bool { return *names[j.Name] == "" })
	known := verb == "list" || verb == "do" || verb == "request" || verb == "show"
	switch {
	case !known, verb != "show" && len(w) > 0:
		return usage.Errorf("removals %s: write removals list, request, do, or show ID; see `help removals`", strings.Join(append([]string{verb}, w...), " "))
	case verb == "show" && (len(w) != 1 || !ledger.IsName(w[0])):
		return usage.Errorf("removals show: name one request; `removals list` lists them")
	case verb == "request" && len(asked) != 1:
		return usage.Errorf("removals request: name the source, by one of %s", usage.Or(kinds))
	case verb != "request" && (len(asked) > 0 || *from+*note != ""):
		return usage.Errorf("%s, --from and --note are for removals request", strings.Join(kinds, ", "))
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	switch verb {
	case "request":
		return requestRemoval(ctx, o, s, asked[0], *names[asked[0].Name], *from, *note, stdout)
	case "do":
		return doRemovals(ctx, o, s, of, stdout)
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

func requestRemoval(ctx context.Context, o Options, s store.Store, j pipeline.Job, name, from, note string, stdout io.Writer) error {
	o.Job = j.Name
	if err := o.placeDB(); err != nil {
		return err
	}
	r, err := j.RecordRemoval(ctx, &o.RunOptions, o.Flags.Value("policies"), s, name, from, note)
	if err != nil {
		return err
	}
	then := "; take it out of what is crawled, or a run finds it again"
	if j.Name == "docs" {
		then = ", and so does the next docs run"
	}
	_, err = fmt.Fprintf(stdout, "%s: everything of %s must be removed until %s; `removals do` does it%s\n", r.ID, r.Provider, r.Due.Format(time.RFC3339), then)
	return err
}

// doRemovals does the open requests of all jobs. A job whose requests cannot be done does not keep it from the others.
func doRemovals(ctx context.Context, o Options, s store.Store, of []pipeline.Job, stdout io.Writer) error {
	none := true
	var failed []error
	for _, j := range of {
		open, err := removal.OpenOf(ctx, s, j.Name, "")
		if err != nil {
			return err
		}
		if len(open) == 0 {
			continue
		}
		none = false
		its := o
		its.Job = j.Name
		if err = its.placeDB(); err == nil {
			err = j.Removals(ctx, its.DB, s, stdout)
		}
		failed = append(failed, err)
	}
	if none {
		_, err := fmt.Fprintln(stdout, "no request is open")
		return err
	}
	return errors.Join(failed...)
}

func listRemovals(ctx context.Context, s store.Store, stdout io.Writer) error {
	all, err := removal.All(ctx, s)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if err := row(t, "REQUEST", "JOB", "NAME", "ASKED", "DUE", "STATE", "FROM", "NOTE"); err != nil {
		return err
	}
	for _, e := range all {
		state := "open"
		if e.Receipt != nil {
			state = "done " + e.Receipt.DoneAt.Format(time.RFC3339)
		}
		if err := row(t, e.ID, e.Job, e.Provider, e.At.Format(time.RFC3339), e.Due.Format(time.RFC3339), state, e.From, e.Note); err != nil {
			return err
		}
	}
	return t.Flush()
}
