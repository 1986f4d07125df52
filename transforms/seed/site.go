package seed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
	"github.com/newsfork/seed-engine/transforms/seed/table"
	judging "github.com/newsfork/seed-engine/transforms/site"
)

const (
	// maxBlocked is how long a wall in place of a robots.txt or sitemap is doubted.
	maxBlocked = 28 * 24 * time.Hour
	// maxDatesBack is how many earlier dates are searched for a row of a domain.
	maxDatesBack = 4
)

// The values of metadata.Site.Lost.
const (
	lostRobots  = "robots"
	lostSitemap = "sitemap"
)

// earlier is what a row of an earlier visit says.
type earlier struct {
	robots, sitemap bool // the site had one
	state           string
	since           time.Time // if there is a state
	lost            string
	part            domaintable.Part // zero: the row is an object
}

func earlierOf(c table.Columns, of domaintable.Part) *earlier {
	since, _ := time.Parse(time.RFC3339, c.SiteSince) // zero for a time that cannot be read: the row is replaced
	return &earlier{c.RobotsKind == string(answer.Robots) || c.RobotsKind == "" && c.RobotsExists, c.SitemapParsed, c.SiteState, since, c.SiteLost, of}
}

// against judges a visit by what there was. Only a wall or no answer in its place counts, and that nothing of it is there: a
// site may remove its robots.txt.
func (f findings) against(robots, sitemap bool) (v judging.Verdict, lost []string) {
	r, s := f.metadata.Robots, f.metadata.Sitemap
	known := 0
	if robots && sitemap && r.Kind != string(answer.Robots) && !s.Parsed {
		known = 1
	}
	judge := func(name, url, failure, kind string, status int) {
		a := judging.Answer{Role: judging.Seed, URL: url, Status: status, Verdict: answer.Verdict{Kind: answer.Kind(kind)}}
		switch {
		case failure == metadata.Disallowed, failure == metadata.CrawlDelay: // the site's own rules
			return
		case failure != "" && !strings.HasPrefix(failure, "http_"):
			a.Status, a.Failure = 0, failure
		case name == lostSitemap && a.Verdict.Kind == answer.Empty:
			a.Status, a.Failure = 0, kind
		}
		j := judging.Begin(judging.About{Name: f.metadata.RegistrableDomain, Seeds: 1, Known: known, SeedKey: "the raw file"})
		j.Add(a)
		if one := j.Verdict(); one.State != judging.Open {
			lost = append(lost, name)
			if v.State == "" {
				v = one
			}
		}
	}
	if robots && r.Kind != string(answer.Robots) {
		judge(lostRobots, homeOf(f.metadata.RegistrableDomain)+"robots.txt", r.Error, r.Kind, r.LastStatus)
	}
	if sitemap && !s.Parsed {
		judge(lostSitemap, s.URL, s.Error, s.Kind, s.LastStatus)
	}
	return v, lost
}

// sites are what the lanes of a process share about sites that are not open.
type sites struct {
	mu    sync.Mutex
	held  map[string]bool        // domains whose rows stay until they answer again; nil: not read
	dates map[[2]string][]string // by country and category, newest first
}

func sitesOf(ctx context.Context, cfg Config, w *lane.Worker) (*sites, error) {
	s := new(sites)
	if !cfg.Lane.Running {
		s = lane.Shared[sites](w)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		return s, nil
	}
	all, err := ledger.Sites(ctx, w.Store, Job)
	if err != nil {
		return nil, err
	}
	s.held = map[string]bool{}
	for _, st := range all {
		if st.State != ledger.SiteOpen {
			s.held[st.Site] = true
		}
	}
	return s, nil
}

// before returns the dates before a partition's of which there are raw files.
func (s *sites) before(ctx context.Context, w *lane.Worker, p hive.Partition) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := [2]string{p.Country, p.Category}
	if s.dates[of] == nil {
		all, err := partitionsOf(ctx, w.Store, Filter{Country: p.Country, Category: p.Category})
		if err != nil && !errors.Is(err, errTooMany) {
			return nil, err
		}
		dates := []string{}
		for p := range maps.Keys(all) {
			dates = append(dates, p.Date)
		}
		slices.SortFunc(dates, func(a, b string) int { return strings.Compare(b, a) })
		if s.dates == nil {
			s.dates = map[[2]string][]string{}
		}
		s.dates[of] = dates
	}
	dates := s.dates[of]
	if i := slices.IndexFunc(dates, func(d string) bool { return d < p.Date }); i >= 0 {
		return dates[i:min(i+maxDatesBack, len(dates))], nil
	}
	return nil, nil
}

// packedRows are the rows of the table that can be a lane's.
type packedRows struct {
	mu    sync.Mutex
	parts []domaintable.Part // those that a forced run has staged last
	rows  map[hive.Partition]map[string]*earlier
}

// packedIn returns the rows of a partition by domain.
func (l *laneRun) packedIn(ctx context.Context, p hive.Partition) (map[string]*earlier, error) {
	l.packed.mu.Lock()
	defer l.packed.mu.Unlock()
	if rows := l.packed.rows[p]; rows != nil {
		return rows, nil
	}
	rows := map[string]*earlier{}
	for _, of := range l.packed.parts {
		if !slices.Contains(of.In, p) {
			continue
		}
		all, err := of.ReadRows(ctx, l.fn.Worker.Store)
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if r.Partition() == p {
				rows[strings.Clone(r.RegistrableDomain)] = earlierOf(r.Columns, of)
			}
		}
	}
	if l.packed.rows == nil {
		l.packed.rows = map[hive.Partition]map[string]*earlier{}
	}
	l.packed.rows[p] = rows
	return rows, nil
}

// before returns what is stored of a domain in a partition, nil for nothing, or nothing that can be read.
func (l *laneRun) before(ctx context.Context, p hive.Partition, name string) (*earlier, error) {
	w := l.fn.Worker
	if l.fn.Config.Layout.Packs() {
		rows, err := l.packedIn(ctx, p)
		return rows[name], err
	}
	if done, err := store.Exists(ctx, w.Store, metadataKey(p, name)+hive.Success); !done || err != nil {
		return nil, err
	}
	d, err := objectResult(ctx, w.Store, p, name)
	switch {
	case errors.Is(err, errNoMetadata), errors.Is(err, store.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	c, err := table.Query(p, d.metadata)
	return earlierOf(c, domaintable.Part{}), err
}

// hold compares a visit with the row of the partition or of an earlier date. If the site shows a wall or nothing in
// place of what there was, the row of the partition stays, and the next run requests the domain again. A first row says
// so.
func (l *laneRun) hold(ctx context.Context, r *result, q *request, got *findings) (held bool, err error) {
	got.metadata.Site = nil
	if _, lost := got.against(true, true); len(lost) == 0 {
		return false, nil
	}
	name, w := r.host.name, l.fn.Worker
	var was *earlier
	here := false
	err = store.Retry(ctx, func() (err error) {
		was = nil
		if !l.fresh(ctx, q.in) || l.fn.Config.Layout.Packs() {
			was, err = l.before(ctx, q.in, name)
		}
		here = was != nil
		if was == nil && err == nil {
			was, err = l.onEarlierDate(ctx, q.in, name)
		}
		return err
	})
	if err != nil || was == nil {
		return false, err
	}
	_, own := got.against(was.robots, was.sitemap)
	v, lost := got.against(was.robots || strings.Contains(was.lost, lostRobots), was.sitemap || strings.Contains(was.lost, lostSitemap))
	if len(lost) == 0 {
		return false, nil
	}
	now := w.Pacer.Clock.Now()
	since := now
	if was.state != "" {
		since = was.since
	}
	if now.Sub(since) >= maxBlocked {
		return false, nil
	}
	s := metadata.Site{State: string(v.State), Since: metadata.Timestamp(since), Lost: lost, Cause: v.Cause}
	if !here || len(own) == 0 {
		got.metadata.Site = &s
		q.notOpen = true
		w.Log.Warn("site_not_open", "site", name, "state", s.State, "since", s.Since, "cause", s.Cause)
		return false, nil
	}
	if err := w.KeepSite(ctx, name, v); err != nil {
		return false, err
	}
	if was.state == s.State {
		return true, nil // its row says it
	}
	return true, l.keepRow(ctx, r, keptRow{q.in, name, s, was.part})
}

// onEarlierDate returns what the newest earlier date has of a domain.
func (l *laneRun) onEarlierDate(ctx context.Context, p hive.Partition, name string) (*earlier, error) {
	dates, err := l.sites.before(ctx, l.fn.Worker, p)
	if err != nil {
		return nil, err
	}
	for _, p.Date = range dates {
		if was, err := l.before(ctx, p, name); was != nil || err != nil {
			return was, err
		}
	}
	return nil, nil
}

// keptRow is a row of an earlier visit whose site is not open.
type keptRow struct {
	in   hive.Partition
	name string
	site metadata.Site
	part domaintable.Part // that has it; zero: the row is an object
}

// document returns the metadata of the earlier visit, with the state of the site.
func (k keptRow) document(was stored) (m metadata.Domain, doc []byte, err error) {
	was.metadata.Site = &k.site
	doc, err = metadata.Marshal(was.metadata)
	return was.metadata, doc, err
}

// keepRow writes to the row of an earlier visit that the site is not open: a packed one at the end of the lane, with the
// others of its part.
func (l *laneRun) keepRow(ctx context.Context, r *result, k keptRow) error {
	if l.fn.Config.Layout.Packs() {
		r.kept = append(r.kept, k)
		return nil
	}
	s := l.fn.Worker.Store
	was, err := objectResult(ctx, s, k.in, k.name)
	if err != nil {
		return err
	}
	m, doc, err := k.document(was)
	if err != nil {
		return err
	}
	return store.Write(ctx, s, metadataKey(k.in, k.name), doc, metadataOptions(k.in, m.DomainID, k.name))
}

// packKept writes the packed rows that stay once more. One that cannot be written stays as it is: the next run
// requests its domain again.
func (l *laneRun) packKept() {
	slices.SortFunc(l.kept, func(a, b keptRow) int { return strings.Compare(a.part.ID, b.part.ID) })
	for kept := l.kept; len(kept) > 0; {
		n := 1
		for n < len(kept) && kept[n].part.ID == kept[0].part.ID {
			n++
		}
		err := l.packKeptOf(kept[:n])
		d := l.segmentDeadLetter(kept[0].part.Key())
		switch {
		case l.within.Err() != nil: // they are no failures
		case err == nil:
			err = l.fn.Worker.Resolve(l.within, d)
		default:
			d.Error = err.Error()
			l.deadLetter(l.within, d)
		}
		if err != nil {
			l.fn.Worker.Log.Error("store_failed", "writer", l.sink.log.Name, "domains", n, "error", ledger.Redact(err.Error()))
		}
		kept = kept[n:]
	}
}

// packKeptOf is packKept for the rows of one part.
func (l *laneRun) packKeptOf(kept []keptRow) error {
	rows, err := kept[0].part.ReadRows(l.within, l.fn.Worker.Store)
	if err != nil {
		return err
	}
	records, err := kept[0].part.ReadWARC(l.within, l.fn.Worker.Store)
	if err != nil {
		return err
	}
	for _, k := range kept {
		i := slices.IndexFunc(rows, func(r table.Row) bool { return r.Partition() == k.in && r.RegistrableDomain == k.name })
		if i < 0 {
			return fmt.Errorf("the part of %s has no row of it", k.name)
		}
		was, err := newStored(k.in, []byte(rows[i].Document))
		if err != nil {
			return err
		}
		m, doc, err := k.document(was)
		if err != nil {
			return err
		}
		row, err := table.New(k.in, m, doc)
		if err != nil {
			return err
		}
		e, err := copyEvidence(records, rows[i].Evidence)
		if err != nil {
			return fmt.Errorf("the evidence of %s: %w", k.name, err)
		}
		if err := l.sink.pending.add(e, row); err != nil {
			return err
		}
		l.sink.again.Add(k.in, k.name)
		l.flushFull()
	}
	return nil
}

// openAgain notes that a site answers again whose row had stayed.
func (l *laneRun) openAgain(ctx context.Context, r *result) error {
	stays := slices.ContainsFunc(r.requests, func(q request) bool { return q.state == held || q.state == unfinished })
	if stays || !l.sites.held[r.host.name] {
		return nil
	}
	return l.fn.Worker.KeepSite(ctx, r.host.name, judging.Verdict{State: judging.Open})
}

// maxSlowHosts is how many other hosts may time out before no further one is requested.
const maxSlowHosts = 2

// apex is where a domain is requested first.
func apex(name string) *url.URL { return &url.URL{Scheme: "https", Host: name} }

// otherHost requests the next hosts of a domain until one answers, and leaves c.origin
// there. first is what the domain itself came to: a failure below HTTP.
func (c *collector) otherHost(first exchange, next []*url.URL, request func() exchange) (exchange, bool) {
	unknown, slow := map[string]bool{}, 0 // hosts that do not resolve
	rules := c.rules
	c.asking = true
	defer func() { c.asking = false }()
	for failed := first; ; failed = request() {
		if failed.status > 0 {
			return failed, true
		}
		switch failed.kind {
		case web.KindDNS:
			unknown[c.origin.Host] = true
		case web.KindTimeout:
			slow++
		}
		next = slices.DeleteFunc(next, func(u *url.URL) bool { return unknown[u.Host] })
		if len(next) == 0 || slow > maxSlowHosts {
			c.origin, c.rules = apex(c.name), rules
			return exchange{}, false
		}
		c.origin, next = next[0], next[1:]
	}
}

// maxOwnHosts is how many hosts of records are requested in place of their domain.
const maxOwnHosts = 2

// ownHosts are the hosts that the records of open requests name besides the domain and its www.
func ownHosts(requests []request) (hosts []string) {
	for _, q := range requests {
		if own := sourceOf(q.source, "").Host; q.state == unfinished && own != "" && len(hosts) < maxOwnHosts && !slices.Contains(hosts, own) {
			hosts = append(hosts, own)
		}
	}
	return hosts
}

// others are where a domain is requested that does not answer at apex, the hosts of its records first.
func others(name string, own []string) (all []*url.URL) {
	hosts := slices.Clip(own)
	if !strings.HasPrefix(name, "www.") {
		hosts = append(hosts, "www."+name)
	}
	for _, h := range hosts {
		all = append(all, &url.URL{Scheme: "https", Host: h})
	}
	for _, h := range append([]string{name}, hosts...) {
		all = append(all, &url.URL{Scheme: "http", Host: h})
	}
	return all
}
