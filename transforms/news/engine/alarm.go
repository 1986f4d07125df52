package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// minPages are the pages of a run that say something about a layout.
const minPages = 5

// What raises an alert of a publisher.
var (
	// parseFailures is the share of a run's pages that could not be read.
	parseFailures = alert.Threshold{Limit: 0.3, Unit: alert.Share, Direction: alert.Above}
	// fieldLoss is how far the share of pages with a field is under that of the past.
	fieldLoss = alert.Threshold{Limit: 0.3, Unit: alert.Share, Direction: alert.Above}
	// barrenRuns in a row without an article, or as many without a new one since
	// staleTime, are not a publisher's quiet days.
	barrenRuns = alert.Threshold{Limit: 3, Unit: alert.Count, Direction: alert.AtLeast}
	staleTime  = alert.Threshold{Limit: 7 * 24 * 60 * 60, Unit: alert.Seconds, Direction: alert.AtLeast}
)

// examine notes how well the pages could be read and raises alerts.
func (v *visit) examine(ctx context.Context) error {
	if v.Reparse { // says nothing about the publisher of today
		return nil
	}
	h := v.result.Health
	before, err := raw.Note(ctx, v.DB, v.p.ID(), v.RunID, h, v.now())
	if err != nil {
		return err
	}
	v.result.Alerts = alerts(v.p.ID(), h, before)
	if v.held && v.result.State != Cut {
		y, err := raw.NoteYield(ctx, v.DB, v.p.ID(), v.RunID, v.there, v.result.Inserted, v.now())
		if err != nil {
			return err
		}
		if a := v.missing(y); a != "" {
			v.result.Alerts = append(v.result.Alerts, a)
		}
	}
	for _, a := range v.result.Alerts {
		v.log.Warn("provider_alarm", "alert", a)
	}
	return nil
}

// missing says in words that a publisher brings nothing, and why; "" where it
// does, or may again.
func (v *visit) missing(y raw.Yield) string {
	id := v.p.ID()
	switch {
	case barrenRuns.Broken(float64(y.Barren)):
		return fmt.Sprintf("provider %s: no article in %d runs in a row: %s", id, y.Barren, v.why())
	case y.Barren > 0 && v.result.State == Ran && y.NewAt.IsZero():
		return fmt.Sprintf("provider %s: no article yet: %s", id, v.why())
	case y.Barren > 0 && len(v.result.Limits) > 0:
		return fmt.Sprintf("provider %s: no article in this run: %s", id, v.why())
	case barrenRuns.Broken(float64(y.Stale)) && !y.NewAt.IsZero() && staleTime.Broken(v.now().Sub(y.NewAt).Seconds()):
		return fmt.Sprintf("provider %s: no new article since %s, in %d runs; do its sitemaps still name the newest?", id, y.NewAt.UTC().Format(time.DateOnly), y.Stale)
	}
	return ""
}

// why says what became of what the sitemaps name.
func (v *visit) why() string {
	r := v.result
	var said []string
	switch {
	case r.State != Ran:
		said = append(said, cmp.Or(r.Reason, "no reason was kept"))
	case v.listed == 0:
		said = append(said, "its sitemaps name no address")
	case r.Found == 0:
		said = append(said, fmt.Sprintf("articleUrl takes none of the %d addresses in its sitemaps, such as %s", v.listed, ledger.Redact(v.other)))
	default:
		said = append(said, fmt.Sprintf("its sitemaps name %d articles; of the newest ones", r.Found))
		var of []string
		for _, c := range []struct {
			n    int64
			what string
		}{{int64(v.old), "are older than the retention"}, {r.Forbidden, "are forbidden by robots.txt"}, {r.Failed, "failed"}, {r.Empty, "have no text"}, {r.Paywalled, "are not free"}} {
			if c.n > 0 {
				of = append(of, fmt.Sprintf("%d %s", c.n, c.what))
			}
		}
		said[0] += " " + cmp.Or(strings.Join(of, ", "), "none could be kept in earlier runs")
	}
	return strings.Join(append(said, r.Limits...), "; ")
}

// alerts says in words what went wrong with a provider's pages.
func alerts(id string, now, before raw.Health) (out []string) {
	if now.Parsed < minPages {
		return nil
	}
	if rate := float64(now.Failed) / float64(now.Parsed); parseFailures.Broken(rate) {
		out = append(out, fmt.Sprintf("provider %s: %.0f%% of %d pages could not be read", id, 100*rate, now.Parsed))
	}
	for _, f := range []struct {
		name     string
		now, was int
	}{{"title", now.Titled, before.Titled}, {"body", now.Bodied, before.Bodied}, {"date", now.Dated, before.Dated}} {
		is := float64(f.now) / float64(now.Parsed)
		if before.Parsed < minPages {
			if f.now == 0 {
				out = append(out, fmt.Sprintf("provider %s: no page has a %s; do its selectors fit?", id, f.name))
			}
			continue
		}
		if was := float64(f.was) / float64(before.Parsed); fieldLoss.Broken(was - is) {
			out = append(out, fmt.Sprintf("provider %s: field %s was found on %.0f%% of %d pages, before on %.0f%%; has it a new layout?", id, f.name, 100*is, now.Parsed, 100*was))
		}
	}
	return out
}
