package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const deadLettersUsage = `pipeline dead-letters [list] [--job=NAME] [--run=ID] [--state=open|dismissed|all]
                                  of all jobs, unless one is named; open ones, unless --state says so
pipeline dead-letters show ID [--job=NAME]
pipeline dead-letters replay [ID …] [--job=NAME] [--run=ID]
                                  lets the next runs of their jobs try again
pipeline dead-letters dismiss ID … --note=TEXT [--job=NAME]
                                  nothing will be done about it: it is not listed and not replayed any
                                  more, until the same input fails again
pipeline dead-letters reopen ID … [--job=NAME]
                                  takes a dismissal back
`

func deadLettersCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("dead-letters", flag.ContinueOnError)
	run, state, note := f.String("run", "", ""), f.String("state", "", ""), f.String("note", "", "")
	o, w, err := controlOptions(f, args, "job", "db")
	if err != nil {
		return err
	}
	of := pipeline.All()
	if o.Job != "" {
		j, ok := pipeline.Named(o.Job)
		if !ok {
			return pipeline.NoJob(o.Job)
		}
		of = []pipeline.Job{j}
	}
	verb := "list"
	if len(w) > 0 {
		verb, w = w[0], w[1:]
	}
	if err := checkLetterWords(verb, w, *state, *note); err != nil {
		return err
	}
	for _, id := range w {
		if !ledger.IsName(id) {
			return usage.Errorf("%q is no dead letter's id; `dead-letters list` lists them", id)
		}
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	switch verb {
	case "show":
		return showDeadLetter(ctx, s, o, of, w[0], stdout)
	case "replay":
		return replay(ctx, s, o, of, *run, w, stdout)
	case "dismiss":
		return dismiss(ctx, s, o, of, w, &ledger.Dismissal{At: time.Now(), By: person(), Note: *note}, stdout)
	case "reopen":
		return dismiss(ctx, s, o, of, w, nil, stdout)
	}
	return listDeadLetters(ctx, s, of, ledger.DeadLetterQuery{RunID: *run, State: letterStates[*state]}, stdout)
}

// letterStates are what --state may be; "" is the default.
var letterStates = map[string]string{"": ledger.OpenLetters, ledger.OpenLetters: ledger.OpenLetters, ledger.DismissedLetters: ledger.DismissedLetters, "all": ""}

// checkLetterWords checks what follows `dead-letters`.
func checkLetterWords(verb string, ids []string, state, note string) error {
	least, most := 0, len(ids)
	switch verb {
	case "list":
		most = 0
	case "show":
		least, most = 1, 1
	case "dismiss", "reopen":
		least = 1
	case "replay":
	default:
		least = len(ids) + 1
	}
	if len(ids) < least || len(ids) > most {
		return usage.Errorf("dead-letters %s: write dead-letters list, show ID, replay [ID …], dismiss ID … --note=TEXT, or reopen ID …; see `help dead-letters`", strings.Join(append([]string{verb}, ids...), " "))
	}
	_, known := letterStates[state]
	switch {
	case !known:
		return usage.Errorf("--state=%s: use open, dismissed or all", state)
	case state != "" && verb != "list":
		return usage.Errorf("--state is for dead-letters list")
	case verb == "dismiss" && strings.TrimSpace(note) == "":
		return usage.Errorf("dead-letters dismiss: say by --note=TEXT why nothing will be done about it")
	case note != "" && verb != "dismiss":
		return usage.Errorf("--note is for dead-letters dismiss")
	case len(note) > ledger.MaxNote:
		return usage.Errorf("--note: write at most %d bytes", ledger.MaxNote)
	}
	return nil
}

// person names who uses the command line.
func person() string {
	name := "command line"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	return name
}

// dismiss dismisses dead letters, or opens them again when why is nil. It changes none
// unless it finds all.
func dismiss(ctx context.Context, s store.Store, o Options, of []pipeline.Job, ids []string, why *ledger.Dismissal, stdout io.Writer) error {
	letters, err := namedLetters(ctx, s, o, of, ids)
	if err != nil {
		return err
	}
	n := 0
	for i, j := range of {
		for _, d := range letters[i] {
			if _, err := ledger.Dismiss(ctx, s, j.Name, d.ID(), why); err != nil {
				return err
			}
			n++
		}
	}
	did := "dismissed %d dead letters; a new failure of the same input opens it again\n"
	if why == nil {
		did = "opened %d dead letters again\n"
	}
	_, err = fmt.Fprintf(stdout, did, n)
	return err
}

// namedLetters are the dead letters that have these ids, by job. Each id must have one.
func namedLetters(ctx context.Context, s store.Store, o Options, of []pipeline.Job, ids []string) ([][]ledger.DeadLetter, error) {
	letters, missing := make([][]ledger.DeadLetter, len(of)), map[string]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	ids = slices.Sorted(maps.Keys(missing))
	for i, j := range of {
		var err error
		if letters[i], err = ledger.NamedDeadLetters(ctx, s, j.Name, ids); err != nil {
			return nil, err
		}
		for _, d := range letters[i] {
			delete(missing, d.ID())
		}
	}
	if len(missing) > 0 {
		return nil, noDeadLetter(o, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return letters, nil
}

func showDeadLetter(ctx context.Context, s store.Store, o Options, of []pipeline.Job, id string, stdout io.Writer) error {
	for _, j := range of {
		d, err := ledger.Get(ctx, s, j.Name, id)
		if errors.Is(err, store.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(d)
	}
	return noDeadLetter(o, id)
}

func listDeadLetters(ctx context.Context, s store.Store, of []pipeline.Job, q ledger.DeadLetterQuery, stdout io.Writer) error {
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "ID\tJOB\tKIND\tTRIES\tLAST\tINPUT\tERROR"); err != nil {
		return err
	}
	var broken error
	for _, j := range of {
		q.Job = j.Name
		for d, err := range ledger.AllDeadLetters(ctx, s, q) {
			if err != nil { // a dead letter that cannot be read does not end the list
				broken = errors.Join(broken, err)
				continue
			}
			text := d.Error
			if !d.Open() {
				text = "dismissed by " + d.Dismissed.By + ": " + d.Dismissed.Note
			}
			input := cmp.Or(d.Input.DomainID, d.Input.File, d.Input.URL, d.Input.Source)
			if err := row(t, d.ID(), j.Name, d.Kind, strconv.Itoa(d.Attempts), d.LastAt.Format(time.RFC3339), input, text); err != nil {
				return err
			}
		}
	}
	return errors.Join(t.Flush(), broken)
}

// noDeadLetter is the error for ids that no dead letter has.
func noDeadLetter(o Options, ids string) error {
	if o.Job != "" {
		ids += " of job " + o.Job
	}
	return usage.Errorf("there is no dead letter %s; `dead-letters list` lists them", ids)
}
