package engine

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane/permit"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/charset"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// What robots.txt reserves for the run's purpose is not requested. Of an article that its own pages or their
// responses reserve nothing is stored: no text, title or kept page. Its address stays with the line that says so.

// maxDecisions is how many decisions a report lists of one publisher; the export has all.
const maxDecisions = 100

// withheld is one decision in the report.
type withheld struct {
	URL string `json:"url"`
	rights.Decision
}

// saidOf reads what robots.txt, an article's pages and their responses say about use.
func (v *visit) saidOf(e raw.Evidence) rights.Rights {
	var answers []permit.Answer
	for _, p := range append([]raw.Page{{URL: e.URL, HTML: e.HTML, Header: e.Header, FetchedAt: e.FetchedAt, ContentType: e.ContentType}}, e.More...) {
		text, _, err := charset.Bytes(p.HTML, p.ContentType)
		if err != nil {
			text = nil // the parser reports it
		}
		answers = append(answers, permit.Answer{URL: p.URL, Status: http.StatusOK, Header: p.Header, Body: p.HTML, HTML: text, At: p.FetchedAt})
	}
	return v.gate.Read(v.rules, rights.Rights{}, e.URL, answers...)
}

// reserved withholds an article that is reserved for the run's purpose, and reports whether it is.
func (v *visit) reserved(ctx context.Context, w raw.Withheld) (bool, error) {
	if w.Decision == nil {
		w.Decision = w.Rights.Decision(v.Purpose)
	}
	if w.Decision == nil {
		return false, nil
	}
	is := raw.Hash(w.Canonical[0])
	if v.withheld[is] { // what was stored of it was withdrawn in this run
		return true, nil
	}
	v.withheld[is] = true
	v.result.Reserved++
	if len(v.result.Withheld) < maxDecisions {
		v.result.Withheld = append(v.result.Withheld, withheld{w.URL, *w.Decision})
	}
	v.leftOut(w.URL, rights.Reserved, w.Decision.Error())
	w.Source = v.p.ID()
	gone := raw.Expired{}
	for _, canonical := range w.Canonical {
		gone[w.Source+"/"+raw.Hash(canonical)] = true
	}
	if _, err := raw.Sweep(ctx, v.Store, gone, time.Time{}); err != nil {
		return true, err
	}
	return true, raw.Withhold(ctx, v.DB, w, v.now())
}

// disallowed withholds an article that robots.txt reserves. It reports whether that is the reason of an error.
func (v *visit) disallowed(ctx context.Context, err error, address, canonical string) (bool, error) {
	var d *rights.Decision
	if !errors.As(err, &d) {
		return false, nil
	}
	return v.reserved(ctx, raw.Withheld{URL: address, Canonical: []string{canonical}, Decision: d, Rights: v.gate.Read(v.rules, rights.Rights{}, address)})
}

// sold withholds an article whose page is for sale, if the site is open: one that sells all its pages may not do so for long.
func (v *visit) sold(ctx context.Context, r *web.Response, c candidate) (bool, error) {
	if r == nil || r.Status != http.StatusPaymentRequired {
		return false, nil
	}
	said := v.gate.Read(v.rules, rights.Rights{}, r.FinalURL, permit.Answer{URL: r.FinalURL, Status: r.Status, Header: r.Header, Body: r.Body, At: v.now()})
	d := said.Decision(v.Purpose)
	if d == nil {
		return false, nil
	}
	w := raw.Withheld{URL: c.url.String(), Canonical: []string{c.canonical}, SitemapAt: c.at, Requested: true, Decision: d, Rights: said}
	return true, v.ifOpen(ctx, func(ctx context.Context) error {
		_, err := v.reserved(ctx, w)
		return err
	})
}

// judgeStored withholds what is stored and reserved by what is known of it and of robots.txt now, as with another
// purpose than before, and releases what is no longer reserved.
func (v *visit) judgeStored(ctx context.Context) error {
	all, err := raw.ToJudge(ctx, v.DB, v.p.ID())
	if err != nil {
		return err
	}
	for _, j := range all {
		proof := j.Rights
		if v.rules != nil { // reparse knows what robots.txt said
			proof = v.gate.Read(v.rules, j.Rights, j.URL)
		}
		d := proof.Decision(v.Purpose)
		_, again := d.Sold(v.now())
		switch {
		case j.Withheld && (d == nil || again):
			err = raw.Release(ctx, v.DB, v.p.ID(), j.Canonical)
		case !j.Withheld && d != nil:
			_, err = v.reserved(ctx, raw.Withheld{URL: j.URL, Canonical: []string{j.Canonical}, Requested: true, Decision: d, Rights: proof})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// site records what robots.txt says about the whole site.
func (v *visit) site() {
	if v.rules == nil {
		return
	}
	r := v.gate.Ledger(v.rules).Rights("")
	v.result.Rights = &r
}

// within refuses redirects out of the publisher's site and to what robots.txt disallows or reserves.
func (v *visit) within(hosts func(*url.URL) bool) func(*url.URL) error {
	return func(u *url.URL) error {
		var no *polite.DisallowedError
		switch err := v.rules.Check(u); {
		case errors.As(err, &no) && no.Reserved != nil:
			return no
		case err != nil || !hosts(u):
			return errors.New("it redirects to an address that may not be requested")
		}
		return nil
	}
}
