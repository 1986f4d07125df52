package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// errors makes the commands of dead letters: failures that need attention.
func (p *program) errors() *cobra.Command {
	var (
		asJSON           bool
		run, state, note string
	)
	ofRun := func(s *option.Set) { s.Text(&run, "run", "", "only those of this run") }
	letters := func(use, short string, own func(*option.Set), do func(ctx context.Context, s store.Store, of []pipeline.Job, ids []string) error) *cobra.Command {
		return p.ofStore(use, short, own, func(ctx context.Context, s store.Store, w []string) error {
			of, err := p.jobsNamed()
			if err != nil {
				return err
			}
			for _, id := range w {
				if !ledger.IsName(id) {
					return usage.Errorf("%q is no dead letter's id; `errors` lists them", id)
				}
			}
			return do(ctx, s, of, w)
		}, "job", "db")
	}
	all := func(use string) *cobra.Command {
		return letters(use, "failures that need attention; show, retry or dismiss one", func(s *option.Set) {
			ofRun(s)
			jsonLines(&asJSON)(s)
			s.Text(&state, "state", ledger.OpenLetters, "which ones").OneOf(ledger.OpenLetters, ledger.DismissedLetters, "all")
		}, func(ctx context.Context, s store.Store, of []pipeline.Job, _ []string) error {
			return listDeadLetters(ctx, s, of, ledger.DeadLetterQuery{RunID: run, State: strings.TrimSuffix(state, "all")}, asJSON, p.stdout)
		})
	}
	c, ls := all("errors"), all("ls")
	c.Aliases, ls.Aliases = []string{"dead-letters"}, []string{"list"}
	retry := letters("retry [ID…]", "let the next runs of their jobs try again: those named, or all", ofRun,
		func(ctx context.Context, s store.Store, of []pipeline.Job, ids []string) error {
			return replay(ctx, s, p.o, of, run, ids, p.stdout)
		})
	retry.Aliases = []string{"replay"}
	c.AddCommand(ls, retry,
		letters("show ID", "a dead letter as JSON", nil, func(ctx context.Context, s store.Store, of []pipeline.Job, ids []string) error {
			return p.showDeadLetter(ctx, s, of, ids[0])
		}),
		letters("dismiss ID…", "nothing will be done about it: it is not listed and not tried again, until the same input fails again",
			func(s *option.Set) { s.Text(&note, "note", "", "why nothing will be done about it") },
			func(ctx context.Context, s store.Store, of []pipeline.Job, ids []string) error {
				if strings.TrimSpace(note) == "" || len(note) > ledger.MaxNote {
					return usage.Errorf("errors dismiss: say by --note=TEXT why nothing will be done about it, in at most %d bytes", ledger.MaxNote)
				}
				return dismiss(ctx, s, p.o, of, ids, &ledger.Dismissal{At: time.Now(), By: person(), Note: note}, p.stdout)
			}),
		letters("reopen ID…", "take a dismissal back", nil, func(ctx context.Context, s store.Store, of []pipeline.Job, ids []string) error {
			return dismiss(ctx, s, p.o, of, ids, nil, p.stdout)
		}))
	return c
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
	for _, d := range letters {
		if _, err := ledger.Dismiss(ctx, s, d.Job, d.ID(), why); err != nil {
			return err
		}
	}
	did := "dismissed %d dead letters; a new failure of the same input opens it again\n"
	if why == nil {
		did = "opened %d dead letters again\n"
	}
	_, err = fmt.Fprintf(stdout, did, len(letters))
	return err
}

// namedLetters are the dead letters that have these ids. Each id must have one.
func namedLetters(ctx context.Context, s store.Store, o Options, of []pipeline.Job, ids []string) (letters []ledger.DeadLetter, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, j := range of {
		some, err := ledger.NamedDeadLetters(ctx, s, j.Name, ids)
		if err != nil {
			return nil, err
		}
		for _, d := range some {
			letters = append(letters, d)
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == d.ID() })
		}
	}
	if len(ids) > 0 {
		return nil, noDeadLetter(o, strings.Join(ids, ", "))
	}
	return letters, nil
}

func (p *program) showDeadLetter(ctx context.Context, s store.Store, of []pipeline.Job, id string) error {
	for _, j := range of {
		d, err := ledger.Get(ctx, s, j.Name, id)
		if errors.Is(err, store.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		return printable.JSON(p.stdout, d)
	}
	return noDeadLetter(p.o, id)
}

// letter is a dead letter in a list for programs.
type letter struct {
	ID string `json:"id"`
	ledger.DeadLetter
}

func listDeadLetters(ctx context.Context, s store.Store, of []pipeline.Job, q ledger.DeadLetterQuery, asJSON bool, stdout io.Writer) error {
	var broken error
	err := list(asJSON, stdout, func(yield func(letter, error) bool) {
		for _, j := range of {
			q.Job = j.Name
			for d, err := range ledger.AllDeadLetters(ctx, s, q) {
				if err != nil { // a dead letter that cannot be read does not end the list
					broken = errors.Join(broken, err)
				} else if !yield(letter{d.ID(), d}, nil) {
					return
				}
			}
		}
	}, "ID\tJOB\tKIND\tTRIES\tLAST\tINPUT\tERROR", func(d letter) []string {
		text := d.Error
		if !d.Open() {
			text = "dismissed by " + d.Dismissed.By + ": " + d.Dismissed.Note
		}
		input := cmp.Or(d.Input.DomainID, d.Input.File, d.Input.URL, d.Input.Source)
		return []string{d.ID, d.Job, d.Kind, strconv.Itoa(d.Attempts), d.LastAt.Format(time.RFC3339), input, text}
	})
	return errors.Join(err, broken)
}

// noDeadLetter is the error for ids that no dead letter has.
func noDeadLetter(o Options, ids string) error {
	if o.Job != "" {
		ids += " of job " + o.Job
	}
	return usage.Errorf("there is no dead letter %s; `errors` lists them", ids)
}
