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

// minPages is the minimum number of pages of a run for a statement about a layout.
const minPages = 5

// The thresholds of the alerts about a publisher.
var (
	// parseFailures is the share of a run's pages that could not be read.
	parseFailures = alert.Threshold{Limit: 0.3, Unit: alert.Share, Direction: alert.Above}
	// fieldLoss is how much the share of pages with a field is below that of earlier runs.
	fieldLoss = alert.Threshold{Limit: 0.3, Unit: alert.Share, Direction: alert.Above}
	// barrenRuns is how many runs in a row may bring no article, or no new one for
	// staleTime. More runs are not just quiet days of a publisher.
	barrenRuns = alert.Threshold{Limit: 3, Unit: alert.Count, Direction: alert.AtLeast}
	staleTime  = alert.Threshold{Limit: 7 * 24 * 60 * 60, Unit: alert.Seconds, Direction: alert.AtLeast}
)

// examine records how well the pages could be read, and raises alerts.
func (v *visit) examine(ctx context.Context) error {
	if v.Reparse { // old pages say nothing about the publisher's present pages
		return nil
	}
	if v.ahead > 0 {
		v.limit(fmt.Sprintf("%d articles have a date of publication that is ahead of now: it was left out", v.ahead))
	}
	h := v.result.Health
	before, err := raw.Note(ctx, v.DB, v.p.ID(), v.RunID, h, v.now())
	if err != nil {
		return err
	}
	told := v.result.State.told() // then what its pages lack says nothing about them
	if !told {
		v.result.Alerts = alerts(v.p.ID(), h, before)
	}
	if v.notices > 0 && !told {
		v.result.Alerts = append(v.result.Alerts, fmt.Sprintf("provider %s: addresses of articles show one title and text: they are not stored; the dead letters same_text name them", v.p.ID()))
	}
	if n := len(v.refusing); n > 0 && !told {
		v.result.Alerts = append(v.result.Alerts, fmt.Sprintf("provider %s: a source of its articles refuses the crawler (%s): the others are read; if it stays so, remove it from feeds or sitemapHints",
			v.p.ID(), strings.Join(v.refusing[:min(n, 3)], ", ")))
	}
	switch {
	case v.result.Left > 0 && v.result.State != Stopped: // it brings less only because of the limit
	case v.leased && v.result.State != Cut && (!told || v.result.State == Stopped):
		y, err := raw.NoteYield(ctx, v.DB, v.p.ID(), v.RunID, v.stored, v.result.Inserted, v.named, v.now())
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

// missing returns the text of an alert that a publisher brings no articles, and why; ""
// if there is no such alert.
func (v *visit) missing(y raw.Yield) string {
	id := v.p.ID()
	switch {
	case v.result.State.told():
		return ""
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

// why says what became of the articles in the sitemaps.
func (v *visit) why() string {
	r := v.result
	var said []string
	switch {
	case r.State != Ran:
		said = append(said, cmp.Or(r.Reason, "no reason is known"))
	case v.listed == 0:
		said = append(said, "neither its sitemaps nor feeds nor links name an article: look at sitemapHints, feeds and articleUrl")
	case r.Found == 0:
		said = append(said, fmt.Sprintf("articleUrl (without it: the usual form of articles' addresses) matches none of the %d addresses in its sitemaps, such as %s", v.listed, ledger.Redact(v.other)))
	default:
		said = append(said, fmt.Sprintf("its sitemaps name %d articles; of the newest ones", r.Found))
		var of []string
		for _, c := range []struct {
			n    int64
			what string
		}{{int64(v.old), "are older than the retention"}, {int64(v.expired), "have expired"}, {r.Forbidden, "are forbidden by robots.txt"}, {r.Failed, "failed"}, {r.Empty, "have no text"}, {r.Paywalled, "are not free"}} {
			if c.n > 0 {
				of = append(of, fmt.Sprintf("%d %s", c.n, c.what))
			}
		}
		said[0] += " " + cmp.Or(strings.Join(of, ", "), "none could be stored in earlier runs")
	}
	return strings.Join(append(said, r.Limits...), "; ")
}

// alerts returns the texts of alerts about a provider's pages.
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
				out = append(out, fmt.Sprintf("provider %s: no page has a %s; are its selectors right?", id, f.name))
			}
			continue
		}
		if was := float64(f.was) / float64(before.Parsed); fieldLoss.Broken(was - is) {
			out = append(out, fmt.Sprintf("provider %s: field %s was found on %.0f%% of %d pages, in earlier runs on %.0f%%; has its layout changed?", id, f.name, 100*is, now.Parsed, 100*was))
		}
	}
	return out
}
