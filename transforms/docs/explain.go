package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
)

// maxShown is how many characters of a page's text are shown to a person.
const maxShown = 200

// finding is what one rule says about a URL.
type finding struct {
	Rule string
	Says string
	Stop bool // because of it the URL is not requested
}

// explanation says why one provider's crawl would request a URL, or not.
type explanation struct {
	Provider string
	Accepted bool
	Findings []finding
}

// Explain applies each rule to a URL, for every provider whose host it is on; without one the explanation has no provider. It fetches
// robots.txt alone, if the other rules accept the URL.
func Explain(ctx context.Context, cfg Config, raw string) ([]explanation, error) {
	d := doFn{Config: cfg}
	if err := d.Setup(ctx); err != nil {
		return nil, errors.Join(err, d.Teardown())
	}
	found, err := explain(ctx, cfg, d.Worker, d.db, raw)
	return found, errors.Join(err, d.Teardown())
}

func explain(ctx context.Context, cfg Config, w *lane.Worker, d *db.DB, raw string) ([]explanation, error) {
	off, err := removal.Purged(ctx, d)
	if err != nil {
		return nil, err
	}
	u, uerr := canonical.Address(nil, raw, nil)
	var out []explanation
	for _, p := range cfg.Policies {
		if uerr != nil || canonical.Host(u) != p.Host() {
			continue
		}
		e := explanation{Provider: p.ProviderID}
		x := explainer{cfg: cfg, w: w, db: d, policy: p, off: off[p.ProviderID], raw: raw, e: &e}
		if err := x.run(ctx); err != nil {
			return nil, fmt.Errorf("explaining %s for %s: %w", raw, p.ProviderID, err)
		}
		out = append(out, e)
	}
	if len(out) > 0 {
		return out, nil
	}
	f := finding{Rule: "host", Says: "no policy has a seed on it; pages of other hosts are never requested", Stop: true}
	if uerr != nil {
		f = finding{Rule: "scheme", Says: uerr.Error(), Stop: true}
	}
	return []explanation{{Findings: []finding{f}}}, nil
}

type explainer struct {
	cfg    Config
	w      *lane.Worker
	db     *db.DB
	policy policy.Policy
	off    bool
	raw    string
	e      *explanation
}

func (x *explainer) say(rule string, stop bool, format string, args ...any) {
	x.e.Findings = append(x.e.Findings, finding{rule, fmt.Sprintf(format, args...), stop})
	x.e.Accepted = x.e.Accepted && !stop
}

func (x *explainer) run(ctx context.Context) error {
	x.e.Accepted = true
	p := x.policy
	has, err := onContext7(ctx, x.db, x.w.Pacer.Clock.Now())
	if err != nil {
		return err
	}
	if reason, ok := x.cfg.crawled(p, has); !ok {
		x.say("provider", true, "%s", reason)
	} else if x.off {
		x.say("provider", true, "it was purged; use --enable-provider=%s to crawl it again", p.ProviderID)
	} else {
		x.say("provider", false, "channel %s, tos %s", p.Channel, p.Terms)
	}
	c := newProvider(x.cfg, x.w, x.db, p, part{})
	seed := false
	for _, raw := range p.SeedURLs {
		s, _ := c.link(nil, raw, true)
		l, _ := c.link(nil, x.raw, true)
		seed = seed || s.key == l.key
	}
	l, why := c.link(nil, x.raw, seed)
	x.say("address", false, "requested as %s", l.address)
	x.say("key", false, "known as %s", l.key)
	pattern, _ := c.scope.Rule(canonical.Path(l.key))
	switch {
	case why != "":
		x.say("pattern", true, "%s", why)
	case pattern == "":
		x.say("pattern", false, "a seed, which needs no pattern")
	default:
		x.say("pattern", false, "allowed by %s", pattern)
	}
	if err := x.known(ctx, l); err != nil {
		return err
	}
	x.say("depth", false, "links are followed to depth %d", p.MaxDepth)
	if err := x.budgets(ctx); err != nil {
		return err
	}
	if why != "" {
		x.say("robots", false, "not fetched, because the pattern decides")
		return nil
	}
	if x.off || p.Terms == policy.Prohibited {
		x.say("robots", false, "not fetched, because the provider is not crawled")
		return nil
	}
	return x.robots(ctx, c, l.address)
}

// robots reports what robots.txt says.
func (x *explainer) robots(ctx context.Context, c *provider, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	r, err := c.robots(ctx, u)
	var abandoned *polite.AbandonedError
	switch {
	case errors.Is(err, errUnreachable), errors.As(err, &abandoned), errors.Is(err, polite.ErrBudget):
		x.say("robots", true, "%s", err)
		return nil
	case err != nil:
		return err
	}
	no := r.Check(u)
	switch {
	case no != nil:
		x.say("robots", true, "%s", no)
	case r.Slow:
		x.say("robots", false, "robots.txt answers %d: crawled slowly", r.Status)
	default:
		n, text, _ := r.File.Rule(c.client.Agent(u), u.String())
		if n > 0 {
			x.say("robots", false, "allowed by robots.txt line %d: %s", n, text)
		} else {
			x.say("robots", false, "no line of robots.txt (status %d) applies", r.Status)
		}
	}
	return nil
}

// known reports what the database has about the page.
func (x *explainer) known(ctx context.Context, l link) error {
	var blocked int64
	if err := x.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs_blocked_urls WHERE provider = $1 AND key = $2`, x.policy.ProviderID, l.key).Scan(&blocked); err != nil {
		return err
	}
	if blocked > 0 {
		x.say("known", true, "it answered 403 and is never requested again (docs_blocked_urls)")
	}
	var (
		status, reason, title, hash string
		depth                       int
		fetched                     int64
	)
	err := x.db.QueryRowContext(ctx, `SELECT status, reason, depth, title, content_hash, fetched_at FROM docs_pages WHERE provider = $1 AND key = $2`, x.policy.ProviderID, l.key).
		Scan(&status, &reason, &depth, &title, &hash, &fetched)
	if errors.Is(err, sql.ErrNoRows) {
		x.say("known", false, "never seen")
		return nil
	}
	if err != nil {
		return err
	}
	x.say("known", false, "status %s%s at depth %d", status, inBrackets(reason), depth)
	if hash == "" {
		return nil
	}
	var preview string
	err = x.db.QueryRowContext(ctx, `SELECT preview FROM docs_chunks WHERE provider = $1 AND key = $2 ORDER BY ordinal LIMIT 1`, x.policy.ProviderID, l.key).Scan(&preview)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	x.say("content", false, "%q, last seen %s: %s (the original: %s)", title, db.Time(fetched).Format(time.RFC3339), shown(preview), l.address)
	return nil
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// shown returns the beginning of a text for a person: at most 200 characters on one line.
func shown(text string) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > maxShown {
		r = append(r[:maxShown-1], '…')
	}
	return string(r)
}

// budgets reports how much of the budgets is used.
func (x *explainer) budgets(ctx context.Context) error {
	var hour, day int64
	minute := x.w.Pacer.Clock.Now().Unix() / 60
	if err := x.db.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN minute >= $1 THEN requests ELSE 0 END), 0), COALESCE(SUM(requests), 0) FROM docs_budget WHERE minute >= $2`,
		minute-60, minute-24*60).Scan(&hour, &day); err != nil {
		return err
	}
	most, mostDay := int64(cmp.Or(x.cfg.HourBudget, HourBudget)), int64(cmp.Or(x.cfg.DayBudget, DayBudget))
	x.say("budget", day >= mostDay && !x.cfg.NoDelay, "%d of %d requests used in the last hour, %d of %d in the last day", hour, most, day, mostDay)
	return nil
}

// String returns the explanation for a terminal.
func (e explanation) String() string {
	var b strings.Builder
	verdict := "would be requested"
	if !e.Accepted {
		verdict = "would not be requested"
	}
	fmt.Fprintf(&b, "%s: %s\n", cmp.Or(e.Provider, "no provider"), verdict)
	for _, f := range e.Findings {
		mark := " "
		if f.Stop {
			mark = "✗"
		}
		fmt.Fprintf(&b, "  %s %-9s %s\n", mark, f.Rule, f.Says)
	}
	return b.String()
}
