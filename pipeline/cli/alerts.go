package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// alerts makes the commands that show alerts and silence them, through the store.
func (p *program) alerts() *cobra.Command {
	var (
		asJSON bool
		sil    alert.Silence
		lasts  time.Duration
	)
	all := func(use string) *cobra.Command {
		return p.ofStore(use, "what fires, and what is silenced; silence, end", jsonLines(&asJSON), func(ctx context.Context, s store.Store, _ []string) error {
			return listAlerts(ctx, s, asJSON, p.stdout)
		})
	}
	c, ls := all("alerts"), all("ls")
	ls.Aliases = []string{"list"}
	c.AddCommand(ls, p.ofStore("silence", "keep alerts from being sent for a while: all of them, or those that flags name", func(s *option.Set) {
		s.Pause(&lasts, "for", 0, "how long, such as 2h").Range(alert.MinSilence.Seconds(), alert.MaxSilence.Seconds()).Says("write a time from 1m to 720h, such as --for=2h")
		s.Text(&sil.Rule, "rule", "", "only alerts of this name")
		s.Text(&sil.Provider, "provider", "", "only those of this provider, publisher, site or schedule")
		s.Text(&sil.Note, "note", "", "why")
	}, func(ctx context.Context, s store.Store, _ []string) error {
		sil.Job = p.o.Job
		return silence(ctx, s, sil, lasts, p.stdout)
	}, "job"), p.ofStore("end ID", "end a silence", nil, func(ctx context.Context, s store.Store, w []string) error {
		sil, err := alert.EndSilence(ctx, s, w[0])
		if errors.Is(err, alert.ErrNoSilence) || !ledger.IsName(w[0]) {
			return usage.Errorf("there is no silence %s; `alerts` lists them", w[0])
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "ended: %s\n", sil.Text())
		return err
	}))
	return c
}

// silence keeps alerts from being sent.
func silence(ctx context.Context, s store.Store, sil alert.Silence, lasts time.Duration, stdout io.Writer) error {
	if _, ok := pipeline.Named(sil.Job); sil.Job != "" && !ok {
		return pipeline.NoJob(sil.Job)
	}
	if lasts == 0 {
		return usage.Errorf("alerts silence: --for: write a time from 1m to 720h, such as --for=2h")
	}
	if err := sil.CheckRule(); err != nil {
		return usage.Errorf("--rule: %w", err)
	}
	sil.By = "command"
	if u, err := user.Current(); err == nil {
		sil.By += " of " + u.Username
	}
	sil, err := alert.AddSilence(ctx, s, sil, lasts, time.Now())
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s: %s, until %s\n", sil.ID, sil.Text(), sil.Until.Format(time.RFC3339))
	}
	return err
}

func listAlerts(ctx context.Context, s store.Store, asJSON bool, stdout io.Writer) error {
	now := time.Now()
	firing, err := alert.ReadFiring(ctx, s)
	if err != nil {
		return err
	}
	silences, err := alert.Silences(ctx, s, now)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(map[string]any{"firing": firing, "silences": silences})
	}
	if _, err := printTable(stdout, seq(firing), "JOB\tALERT\tPROVIDER\tSINCE\tSILENCED\tTEXT", func(a alert.Firing) []string {
		silenced := ""
		for _, sil := range silences {
			if sil.Covers(a.Job, a.Rule, cmp.Or(a.Provider, a.Schedule), now) {
				silenced = sil.ID
			}
		}
		return []string{a.Job, a.Rule, cmp.Or(a.Provider, a.Schedule), a.Since.Format(time.RFC3339), silenced, a.Text}
	}); err != nil {
		return err
	}
	_, err = printTable(stdout, seq(silences), "\nSILENCE\tOF\tUNTIL\tBY\tNOTE", func(sil alert.Silence) []string {
		return []string{sil.ID, sil.Text(), sil.Until.Format(time.RFC3339), sil.By, sil.Note}
	})
	return err
}

// seq yields what a list has.
func seq[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range all {
			if !yield(x, nil) {
				return
			}
		}
	}
}
