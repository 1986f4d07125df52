package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/canonical"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
	"github.com/newsfork/seed-engine/transforms/site"
)

// beginJudging begins to judge the publisher's site: its sources are the seeds, its articles are known.
func (v *visit) beginJudging(ctx context.Context) error {
	before, err := v.Worker.Site(ctx, v.p.ID())
	if err == nil {
		v.known, v.was, err = raw.Past(ctx, v.DB, v.p.ID())
	}
	if err != nil {
		return err
	}
	keys := []string{"baseUrl"}
	if len(v.policy.Feeds) > 0 {
		keys = append(keys, "feeds")
	}
	if len(v.p.SitemapHints()) > 0 {
		keys = append(keys, "sitemapHints")
	}
	v.before, v.named = before.State, raw.Named{At: v.now(), Sources: map[string]int{}}
	v.judge = site.Begin(site.About{Name: v.base.Hostname(), Known: v.known, Before: before, SeedKey: strings.Join(keys, ", ")})
	return nil
}

// leaves reports whether a request of the publisher's host was redirected to another one.
func (v *visit) leaves(from, to string) bool {
	f, err := url.Parse(from)
	t, terr := url.Parse(to)
	return err == nil && terr == nil && t.Host != "" && provider.Hosts(v.base.String(), f) && !provider.Hosts(v.base.String(), t)
}

// recent is how far back the articles count that a sitemap of an index names.
const recent = 48 * time.Hour

// compare counts the articles that a source names, to compare them with what it named in the last run.
func (s *search) compare(c child, articles []candidate) {
	if s.judge == nil {
		return
	}
	since := func(at time.Time) (n int) {
		for _, one := range articles {
			if c.depth == 0 || one.when().IsZero() || one.when().After(at.Add(-recent)) {
				n++
			}
		}
		return n
	}
	s.named.Sources[c.address] = since(s.named.At)
	switch was, now := s.was.Sources[c.address], since(s.was.At); {
	case was == 0:
	case c.depth > 0:
		s.shown[1][0], s.shown[1][1] = s.shown[1][0]+now, s.shown[1][1]+was
	case was > s.shown[0][1]:
		s.shown[0] = [2]int{now, was}
	}
}

// whereTo says of a source whether the articles in it are on another host. A publisher of which
// nothing is stored may have had such a source from the beginning.
func (s *search) whereTo(a *site.Answer, base *url.URL, entries []sitemap.Entry) {
	first := ""
	for _, e := range entries {
		u, err := canonical.Address(base, e.Loc, []string{"*"})
		switch {
		case err != nil:
		case provider.Hosts(s.base.String(), u):
			a.To = ""
			return
		case first == "":
			first = u.String()
		}
	}
	if s.known > 0 && first != "" {
		a.To = first
	}
}

// answered adds the answer to a request to the judgement; r is nil if there was none.
func (v *visit) answered(a site.Answer, r *web.Response, err error) {
	var failure *web.Error
	var abandoned *polite.AbandonedError
	switch {
	case v.judge == nil:
		return
	case r != nil:
		a.Status = r.Status
	case errors.As(err, &failure) && failure.Status > 0 && v.leaves(a.URL, failure.URL): // a redirect that is not followed
		a.Status, a.To = failure.Status, failure.URL
		a.Verdict = answer.Classify(answer.Response{URL: a.URL, Final: failure.URL, Body: []byte("<html>")})
	case errors.As(err, &failure) && failure.Kind != web.KindBlocked:
		a.Failure = string(failure.Kind)
	case errors.As(err, &abandoned) && abandoned.Hours == "":
		a.Status = abandoned.Status
	default:
		return
	}
	v.judge.Add(a)
}

// ifOpen does what follows from an answer, if the site is open at the end. If it is not, or after a
// kill, the article is requested again.
func (v *visit) ifOpen(ctx context.Context, do func(context.Context) error) error {
	if v.judge == nil {
		return do(ctx)
	}
	v.onceOpen = append(v.onceOpen, do)
	return nil
}

// settleOpen does what ifOpen has held.
func (v *visit) settleOpen(ctx context.Context) error {
	for _, do := range v.onceOpen {
		if err := do(ctx); err != nil {
			return err
		}
	}
	v.onceOpen = nil
	return nil
}

// conclude judges the site by its answers. ended is what ended the crawl. If the site is not open,
// the error has its state. A crawl that was cut leaves the judgement to the next run.
func (v *visit) conclude(ctx context.Context, ended error) error {
	var stop *errStop
	if v.judge == nil || ended != nil && !errors.As(ended, &stop) {
		return ended
	}
	if ended == nil && len(v.onceOpen) > 0 && v.judge.Doubtful() { // a source once more
		r, wall, _, err := v.getSitemap(ctx, v.readable)
		if errors.As(err, new(*errStop)) || ctx.Err() != nil {
			return err
		}
		v.answered(site.Answer{Role: site.Seed, URL: v.readable.address, Verdict: wall}, r, err)
	}
	verdict := v.judge.Verdict()
	if v.oneText != "" {
		verdict = site.Verdict{State: site.Blocked, Cause: v.oneText, Advice: "look at the site; the next run asks again"}
	}
	open := verdict.State == site.Open
	if stop != nil && stop.state == Cut {
		if !open {
			return ended
		}
		return errors.Join(ended, v.settleOpen(ctx))
	}
	if v.refused != nil {
		row := raw.Row{Source: v.p.ID(), Canonical: v.refused.canonical, SitemapAt: v.refused.at}
		if err := raw.Refuse(ctx, v.DB, row, v.now(), open); err != nil {
			return err
		}
	}
	if !open || v.readable.address != "" {
		if err := v.Worker.KeepSite(ctx, v.p.ID(), verdict); err != nil {
			return fmt.Errorf("keeping the state of a site: %w", err)
		}
	}
	if !open {
		return &errStop{State(verdict.State), verdict.String(), "site_" + string(verdict.State)}
	}
	return errors.Join(v.settleOpen(ctx), ended)
}
