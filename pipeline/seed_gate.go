package pipeline

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// gatePeriod is how far back passGate looks for a smaller sample.
const gatePeriod = 30 * 24 * time.Hour

// share returns the value of --sample, 0 for all.
func share(text string) float64 {
	percent, _ := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64) // checked with the other options
	return percent / 100
}

// passGate refuses a run if too much of the last run with a smaller sample of the same selection failed. A run that is as large as
// this one ends the search: it has passed.
func (o *seedOptions) passGate(ctx context.Context, s store.Store, c *RunOptions) error {
	own := share(c.Share)
	for r, err := range ledger.List(ctx, s) {
		if err != nil && r.RunID == "" {
			return err
		}
		option := func(name string) string {
			v, _ := r.Options[name].(string)
			return v
		}
		of := share(option("sample"))
		switch {
		case err != nil: // the command `runs` shows unreadable states
			continue
		case time.Since(r.StartedAt) > gatePeriod:
			return nil
		case r.Job != seed.Job || !r.State.Over() || option("country") != c.Country || option("category") != c.Category || option("date") != c.Date:
			continue
		case of == 0 || own > 0 && of >= own:
			return nil
		}
		report, err := ledger.ReadReport(ctx, s, r.RunID)
		if err != nil {
			return fmt.Errorf("looking at the sample before: %w", err)
		}
		j := seedJob()
		failed := report.Count(j.Failed)
		all := failed + report.Count(j.Done)
		if r.State == ledger.Failed || float64(failed) > o.Gate*float64(all) {
			return usage.Errorf("%d of %d domains of --sample=%s failed in run %s (%s), more than --sample-gate=%v lets pass: "+
				"mend what `errors ls --run=%[4]s` shows, and run that sample again; --sample-gate=1 passes all the same",
				failed, all, option("sample"), r.RunID, r.State, o.Gate)
		}
		return nil
	}
	return nil
}
