package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	judging "github.com/newsfork/seed-engine/transforms/site"
)

var (
	// errNotOpen stops the crawl of a site whose first answers show that it is not open.
	errNotOpen = errors.New("the site is not open")
	// errHeld keeps a failed task in the journal until the site is judged.
	errHeld = errors.New("held until the site is judged")
)

// maxAsked is how many stored products are requested where the first list page cannot be read.
const maxAsked = 5

// held is a task that has failed for the last time, if the site is open.
type held struct {
	entry
	stage string
	why   *failure
}

// beginJudging begins to judge the site by the answers of this run.
func (v *visit) beginJudging(ctx context.Context) (err error) {
	about := judging.About{Name: v.reader.base.Hostname(), Seeds: 1, SeedKey: "list.url in the site's file"}
	if about.Before, err = v.w.Site(ctx, v.reader.site.Name); err != nil {
		return err
	}
	if v.reader.site.Detail.Format != formatNone { // else no page of a product is requested
		err = v.journal.db.QueryRowContext(ctx, `SELECT count(*) FROM catalog_products WHERE site = $1 AND state <> 'gone'`, v.journal.site).Scan(&about.Known)
		if err != nil {
			return fmt.Errorf("counting the products of %s: %w", v.journal.site, err)
		}
	}
	v.judge, v.journal.about = judging.Begin(about), about
	return nil
}

// answered adds the final answer to a task's request to the judgement, and stops the crawl once the answers show
// that the site is not open.
func (v *visit) answered(ctx context.Context, e entry, a judging.Answer) {
	a.URL, a.Role = e.URL, judging.New
	switch {
	case e.Kind == KindFetchListPage && e.Page == v.reader.firstPage():
		a.Role = judging.Seed
	case e.Known || e.Asked != "":
		a.Role = judging.Known
	}
	v.judging.Lock()
	if a.Nth == 0 {
		a.Nth = v.came.Add(1)
	}
	v.judge.Add(a)
	stop, tired := v.judge.Stop(), v.judge.Tired()
	v.judging.Unlock()
	switch {
	case stop:
		v.control.stop(errNotOpen)
	case tired:
		v.askSeed(ctx)
	}
}

// askSeed requests the first list page once more, only to judge the site.
func (v *visit) askSeed(ctx context.Context) {
	e := v.seeds()[0]
	got, err := v.fetchList(ctx, e)
	var f *failure
	switch {
	case err == nil:
		a := judging.Answer{Status: http.StatusOK}
		if p, err := v.reader.readList(redirected(e.URL, got.at), got.HTMLContent); err != nil || len(p.products)+len(p.children) == 0 {
			a.Verdict = got.verdict()
		}
		v.answered(ctx, e, a)
	case errors.As(err, &f) && f.answer != nil:
		v.answered(ctx, e, *f.answer)
	}
}

// withoutRobots keeps what a robots.txt that cannot be reached says about the site.
func (v *visit) withoutRobots(ctx context.Context, why error) error {
	var f *failure
	if !errors.As(why, &f) || f.answer == nil {
		return nil
	}
	a := *f.answer
	a.Role, a.URL = judging.Robots, v.reader.base.Scheme+"://"+v.reader.base.Host+"/robots.txt"
	v.judge.Add(a)
	return v.w.KeepSite(ctx, v.reader.site.Name, v.judge.Verdict())
}

// conclude judges the site at the end of a crawl. Only if it is open, products may be gone, and what failed has failed.
func (v *visit) conclude(ctx context.Context, complete bool) error {
	var c comparison
	var err error
	if complete {
		if v.judge.Doubtful() {
			v.askSeed(ctx)
		}
		if c, err = v.journal.compared(ctx, v.cfg.Restart); err != nil {
			return err
		}
	}
	absent := c.allAbsent() // the list is there, but leads nowhere: its file is wrong
	if c.thin && !absent {
		v.judge.Listed(int(c.left), int(c.before))
	}
	verdict := v.judge.Verdict()
	if verdict.State == judging.Thin && (v.cfg.Restart || absent) {
		verdict = judging.Verdict{State: judging.Open}
	}
	if !complete { // the stop of the crawl ends its requests, not this
		ctx = context.WithoutCancel(ctx)
	}
	if err := v.w.KeepSite(ctx, v.reader.site.Name, verdict); err != nil {
		return err
	}
	if verdict.State != judging.Open {
		return v.journal.leave(ctx, v.seeds()[0].URL, verdict.State == judging.Thin, v.clock())
	}
	stages := v.plan()
	for _, h := range v.held {
		if err := v.letter(ctx, h.entry, h.stage, h.why); err != nil {
			return err
		}
		if err := v.journal.end(ctx, h.entry); err != nil {
			return err
		}
		if at := slices.IndexFunc(stages, func(s *stage) bool { return s.name == h.stage }); at >= 0 {
			v.state.Stats.fail(stages[at].fails)
		}
	}
	return v.close(ctx)
}

// stated remembers how many products a list page says that there are.
func (l *listing) stated(p listPage) {
	if p.total == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.totals[0] == 0 || p.total < l.totals[0] {
		l.totals[0] = p.total
	}
	l.totals[1] = max(l.totals[1], p.total)
}

// checkTotal compares what the list states with the products that it names. The number may change while the list is read.
func (v *visit) checkTotal(n int) {
	differs := max(v.totals[0]-n, n-v.totals[1])
	if v.totals[1] > 0 && differs > 0 {
		v.log.Warn("list_total", "stated", v.totals[1], "found", n)
		v.warn(listTotal, "", differs)
	}
}

// The values of Config.Details.
const (
	DetailsAll        = "all"
	DetailsNew        = "new"
	DetailsIncomplete = "incomplete"
)

// skips returns how to judge by a stored product's fields, as JSON, that its page is not fetched; nil: all are fetched.
func (r *reader) skips(details string) func(detail string) bool {
	switch {
	case r.site.Detail.Format == formatNone:
	case details == DetailsNew:
		return func(string) bool { return true }
	case details == DetailsIncomplete:
		return r.complete
	}
	return nil
}

// complete reports whether a product's fields, as JSON, have all that are required.
func (r *reader) complete(detail string) bool {
	var has map[string]json.RawMessage
	if json.Unmarshal([]byte(detail), &has) != nil {
		return false
	}
	return !slices.ContainsFunc(r.fields, func(f fieldReader) bool { return f.required && has[f.name] == nil })
}

const (
	// minBreak pages in a row without a field are a layout break if no page
	// of the crawl had it, or if their products had it before.
	minBreak = 3
	// minAnyBreak pages in a row without a field are always a layout break.
	minAnyBreak = 10
	// minMoved pages in a row that do not exist mean that the site has moved its pages.
	minMoved = 20
	// minCollisions pages with the key of another page, if they are at least a third of
	// all pages, mean that the key field does not distinguish products.
	minCollisions = 10
	// minNeverMatched pages without a field, and none with it, raise an alert.
	minNeverMatched = 3
)

// What is observed on a page in addition to its fields.
const (
	aspectKey  = "\x00key"
	aspectPage = "\x00page" // the page exists
)

// layout detects that a site's pages can no longer be read as its file says.
type layout struct {
	mu       sync.Mutex
	aspects  map[string]aspect
	saved    int
	collided int
}

// aspect has the figures of one field over the pages of a crawl.
type aspect struct {
	pages int // number of pages that were read
	had   int // how many of them had it
	row   int // pages in a row that lack it but should have it
	drops int // how many pages of the row had it in an earlier crawl
}

// observation says whether one page has one field.
type observation struct {
	aspect   string
	has      bool
	expected bool // the page should have it
	drop     bool // the product had it before
	url, why string
}

// observe adds observations. The error is a layout break.
func (l *layout) observe(all ...observation) error {
	seen, err := l.judge(all)
	l.commit(seen)
	return err
}

// judge returns the aspects with these observations added, for commit. The error is a
// layout break, and then nothing of these pages may be saved.
func (l *layout) judge(all []observation) (seen map[string]aspect, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen = map[string]aspect{}
	for _, s := range all {
		a, ok := seen[s.aspect]
		if !ok {
			a = l.aspects[s.aspect]
		}
		a.pages++
		switch {
		case s.has:
			a.had++
			a.row, a.drops = 0, 0
		case s.expected || s.drop:
			a.row++
			if s.drop {
				a.drops++
			}
		}
		seen[s.aspect] = a
		any, first := minAnyBreak, minBreak
		if s.aspect == aspectPage { // removed products may be at the head of a list
			any, first = minMoved, minMoved
		}
		if a.row >= any || a.row >= first && (a.had == 0 || a.drops >= minBreak) {
			return nil, broken(s, a)
		}
	}
	return seen, nil
}

// commit stores the aspects that judge returned. Parallel workers may overwrite an
// observation of each other, which detects a break one page later.
func (l *layout) commit(seen map[string]aspect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aspects == nil {
		l.aspects = map[string]aspect{}
	}
	maps.Copy(l.aspects, seen)
}

// whereMoved says what to do about pages that do not exist.
const whereMoved = "check whether the site has moved them, correct list.product_link in its file, and start the same command again"

func broken(s observation, a aspect) error {
	f := &failure{kind: "layout_break", final: true}
	const nothing = "nothing was overwritten"
	switch s.aspect {
	case aspectKey:
		f.err = fmt.Errorf("%d product pages in a row do not have the key (the last is %s: %s); %s; correct the key's field in the site's file and start the same command again", a.row, s.url, s.why, nothing)
	case aspectPage:
		f.err = fmt.Errorf("%d product pages in a row do not exist (the last is %s: %s); %s", a.row, s.url, s.why, whereMoved)
	default:
		f.err = fmt.Errorf("%d product pages in a row lack a field that they should have (the last is %s: %s); %s; correct fields.%s in the site's file, or make it optional, or volatile if products lose it, and start the same command again",
			a.row, s.url, s.why, nothing, s.aspect)
	}
	return f
}

// keys adds how many pages were saved, and how many were not saved because of a key
// collision.
func (l *layout) keys(saved, collided int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saved, l.collided = l.saved+saved, l.collided+collided
	if collided == 0 || l.collided < minCollisions || 2*l.collided < l.saved {
		return nil
	}
	return &failure{kind: "key_collisions", final: true, err: fmt.Errorf(
		"%d of %d product pages have the key of another page with other values, so the key field does not distinguish products; choose another in the site's file and start the same command again", l.collided, l.collided+l.saved)}
}

// savedPages returns how many pages were saved.
func (l *layout) savedPages() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saved
}

// never returns the fields that no page of the crawl had.
func (l *layout) never() (fields []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, a := range l.aspects {
		if name != aspectKey && name != aspectPage && a.had == 0 && a.pages >= minNeverMatched {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}
