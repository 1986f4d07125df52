package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// removals makes the commands that show requests to remove what was kept of a source, and do those that are open.
func (p *program) removals() *cobra.Command {
	var asJSON bool
	all := func(use string) *cobra.Command {
		return p.ofStore(use, "requests to remove what was kept of a source, and until when; show one, do the open ones", jsonLines(&asJSON),
			func(ctx context.Context, s store.Store, _ []string) error {
				all, err := removal.All(ctx, s)
				return errors.Join(err, list(asJSON, p.stdout, seq(all), "REQUEST\tJOB\tNAME\tASKED\tDUE\tSTATE\tFROM\tNOTE", removalCells))
			})
	}
	c, ls := all("removals"), all("ls")
	ls.Aliases = []string{"list"}
	c.AddCommand(ls, p.ofStore("show ID", "a request with its receipt, as JSON", nil, func(ctx context.Context, s store.Store, w []string) error {
		e, err := removal.Find(ctx, s, w[0])
		if errors.Is(err, removal.ErrNone) {
			return usage.Errorf("there is no request %s; `removals` lists them", w[0])
		}
		if err != nil {
			return err
		}
		return printable.JSON(p.stdout, e)
	}), p.ofStore("do", "do the open requests, as a server does by itself, and each docs run for providers", nil, func(ctx context.Context, s store.Store, _ []string) error {
		return p.doRemovals(ctx, s)
	}, "db"))
	return c
}

func removalCells(e removal.Entry) []string {
	state := "open"
	if e.Receipt != nil {
		state = "done " + e.Receipt.DoneAt.Format(time.RFC3339)
	}
	return []string{e.ID, e.Job, e.Provider, e.At.Format(time.RFC3339), e.Due.Format(time.RFC3339), state, e.From, e.Note}
}

// doRemovals does the open requests of all jobs. A job whose requests cannot be done does not keep it from the others.
func (p *program) doRemovals(ctx context.Context, s store.Store) error {
	none := true
	var failed []error
	for _, j := range p.o.Jobs {
		open, err := removal.OpenOf(ctx, s, j.Name, "")
		if err != nil {
			return err
		}
		if len(open) == 0 || j.Removal == nil {
			continue
		}
		none = false
		its := p.o
		its.Job = j.Name
		if err = its.placeDB(); err == nil {
			err = j.Removals(ctx, its.DB, s, p.stdout)
		}
		failed = append(failed, err)
	}
	if none {
		_, err := fmt.Fprintln(p.stdout, "no request is open")
		return err
	}
	return errors.Join(failed...)
}
