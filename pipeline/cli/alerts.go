package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const alertsUsage = `pipeline alerts [list]            what fires, as the server saw it last, and what is silenced
pipeline alerts silence --for=2h [--job=JOB] [--rule=ALERT] [--provider=NAME] [--note=TEXT]
                                  keeps alerts from being sent for a while: all of them, or those of
                                  a job, an alert's name, or a provider, publisher, site or schedule
pipeline alerts end ID            ends a silence
`

// alertsCommand shows alerts and silences them, through the store.
func alertsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("alerts", flag.ContinueOnError)
	var sil alert.Silence
	lasts := f.Duration("for", 0, "")
	f.StringVar(&sil.Rule, "rule", "", "")
	f.StringVar(&sil.Provider, "provider", "", "")
	f.StringVar(&sil.Note, "note", "", "")
	o, w, err := controlOptions(f, args, "job")
	if err != nil {
		return err
	}
	if _, ok := pipeline.Named(o.Job); o.Job != "" && !ok {
		return pipeline.NoJob(o.Job)
	}
	sil.Job = o.Job
	verb := "list"
	if len(w) > 0 {
		verb, w = w[0], w[1:]
	}
	switch {
	case verb == "end" && (len(w) != 1 || !ledger.IsName(w[0])):
		return usage.Errorf("alerts end: name one silence; `alerts list` lists them")
	case verb != "end" && len(w) > 0, verb != "list" && verb != "silence" && verb != "end":
		return usage.Errorf("alerts %s: write alerts list, silence --for=2h, or end ID; see `help alerts`", strings.Join(append([]string{verb}, w...), " "))
	case verb == "silence" && (*lasts < alert.MinSilence || *lasts > alert.MaxSilence):
		return usage.Errorf("alerts silence: --for: write a time from 1m to 720h, such as --for=2h")
	}
	if err := sil.CheckRule(); err != nil {
		return usage.Errorf("--rule: %w", err)
	}
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	switch verb {
	case "silence":
		sil.By = "command"
		if u, err := user.Current(); err == nil {
			sil.By += " of " + u.Username
		}
		if sil, err = alert.AddSilence(ctx, s, sil, *lasts, time.Now()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s: %s, until %s\n", sil.ID, sil.Text(), sil.Until.Format(time.RFC3339))
		return err
	case "end":
		sil, err := alert.EndSilence(ctx, s, w[0])
		if errors.Is(err, alert.ErrNoSilence) {
			return usage.Errorf("there is no silence %s; `alerts list` lists them", w[0])
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "ended: %s\n", sil.Text())
		return err
	}
	return listAlerts(ctx, s, stdout)
}

func listAlerts(ctx context.Context, s store.Store, stdout io.Writer) error {
	now := time.Now()
	firing, err := alert.ReadFiring(ctx, s)
	if err != nil {
		return err
	}
	silences, err := alert.Silences(ctx, s, now)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if err := row(t, "JOB", "ALERT", "PROVIDER", "SINCE", "SILENCED", "TEXT"); err != nil {
		return err
	}
	for _, a := range firing {
		silenced := ""
		for _, sil := range silences {
			if sil.Covers(a.Job, a.Rule, cmp.Or(a.Provider, a.Schedule), now) {
				silenced = sil.ID
			}
		}
		if err := row(t, a.Job, a.Rule, cmp.Or(a.Provider, a.Schedule), a.Since.Format(time.RFC3339), silenced, a.Text); err != nil {
			return err
		}
	}
	if len(silences) > 0 {
		if _, err := fmt.Fprintln(t); err != nil {
			return err
		}
		if err := row(t, "SILENCE", "OF", "UNTIL", "BY", "NOTE"); err != nil {
			return err
		}
	}
	for _, sil := range silences {
		if err := row(t, sil.ID, sil.Text(), sil.Until.Format(time.RFC3339), sil.By, sil.Note); err != nil {
			return err
		}
	}
	return t.Flush()
}
