package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/export"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// runsDiff prints what differs between what two runs of a job left.
func runsDiff(ctx context.Context, s store.Store, what export.What, between string, o *Options, asJSON bool, stdout, stderr io.Writer) (err error) {
	first, second, two := strings.Cut(between, "..")
	if !two || first == "" || second == "" {
		return usage.Errorf("--diff=%s: write two run ids, the earlier one first: --diff=RUN..RUN; `pipeline runs` lists them", between)
	}
	var runs [2]ledger.Run
	for i, id := range []string{first, second} {
		if runs[i], err = endedRun(ctx, s, what.Job, id); err != nil {
			return err
		}
	}
	if !runs[0].FinishedAt.Before(runs[1].FinishedAt) {
		return usage.Errorf("--diff=%s: run %s ended after run %s; write the earlier one first", between, first, second)
	}
	d, err := openForExport(ctx, what, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	value := func(v *string) string {
		if v == nil {
			return ""
		}
		return cut(*v)
	}
	n, err := write(asJSON, stdout, "diff", what.Diff(ctx, d, runs[0].FinishedAt, runs[1].FinishedAt), "KIND\tSITE\tPRODUCT\tFIELD\tWAS\tBECAME", func(r rows.Diff) []string {
		return []string{r.Kind, r.Site, r.ProductKey, r.Field, value(r.Was), value(r.Became)}
	})
	if err == nil && n == 0 {
		_, err = fmt.Fprintln(stderr, "nothing changed")
	}
	return err
}

// endedRun returns a run of a job that has ended.
func endedRun(ctx context.Context, s store.Store, job, id string) (ledger.Run, error) {
	for r, err := range ledger.List(ctx, s) {
		switch {
		case err != nil && r.RunID == "":
			return r, err
		case r.RunID != id:
		case err != nil:
			return r, err
		case r.Job != job:
			return r, usage.Errorf("run %s is one of the %s job, not of %s", id, r.Job, job)
		case r.FinishedAt.IsZero():
			return r, usage.Errorf("run %s has not ended; wait for it, or take another", id)
		default:
			return r, nil
		}
	}
	return ledger.Run{}, usage.Errorf("there is no run %s in this store; `pipeline runs` lists those that there are", id)
}
