package engine

import (
	"context"
	"fmt"

	"github.com/newsfork/seed-engine/transforms/news/raw"
)

const (
	// leastPages are the pages of a run that say something about a layout.
	leastPages = 5
	// mostFailures is the part of a run's pages whose parsing may fail.
	mostFailures = 0.3
	// fall is how far a field's rate may be under its own past.
	fall = 0.3
)

// examine notes how well the pages could be read and raises alerts.
func (v *visit) examine(ctx context.Context) error {
	if v.Reparse { // says nothing about the publisher of today
		return nil
	}
	h := v.result.Health
	before, err := raw.Note(ctx, v.DB, v.p.ID(), v.RunID, h, v.Now())
	if err != nil {
		return err
	}
	v.result.Alerts = alerts(v.p.ID(), h, before)
	for _, a := range v.result.Alerts {
		v.log.Warn("layout_alarm", "alert", a)
	}
	return nil
}

// alerts says in words what went wrong with a provider's pages.
func alerts(id string, now, before raw.Health) (out []string) {
	if now.Parsed < leastPages {
		return nil
	}
	if rate := float64(now.Failed) / float64(now.Parsed); rate > mostFailures {
		out = append(out, fmt.Sprintf("provider %s: %.0f%% of %d pages could not be read", id, 100*rate, now.Parsed))
	}
	for _, f := range []struct {
		name     string
		now, was int
	}{{"title", now.Titled, before.Titled}, {"body", now.Bodied, before.Bodied}, {"date", now.Dated, before.Dated}} {
		is := float64(f.now) / float64(now.Parsed)
		if before.Parsed < leastPages {
			if f.now == 0 {
				out = append(out, fmt.Sprintf("provider %s: no page has a %s; do its selectors fit?", id, f.name))
			}
			continue
		}
		if was := float64(f.was) / float64(before.Parsed); is < was-fall {
			out = append(out, fmt.Sprintf("provider %s: field %s was found on %.0f%% of %d pages, before on %.0f%%; has it a new layout?", id, f.name, 100*is, now.Parsed, 100*was))
		}
	}
	return out
}
