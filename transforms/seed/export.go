package seed

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// Domain is what is known about one domain in one partition.
type Domain struct {
	table.Columns
	URLCount *int64    `parquet:"sitemap_url_count,optional" doc:"elements of the sitemap; null: not known"`
	Total    *int64    `parquet:"sitemap_total_url_count,optional" doc:"entries of all sitemaps that were read; null: only one was, or none"`
	Document rows.JSON `parquet:"document,json" doc:"all of the domain_metadata.json"`
	Web      string    `parquet:"web,dict" doc:"demo: the row is invented, by the simulated web of --web=demo; else empty"`
}

// Feed is a sitemap, RSS or Atom feed of a domain that a run found.
type Feed struct {
	DomainID          string    `parquet:"domain_id" doc:"authority:country:registrable domain"`
	RegistrableDomain string    `parquet:"registrable_domain" doc:"the part of the host name that somebody registered"`
	Country           string    `parquet:"country,dict" doc:"of the partition, two lower-case letters"`
	Category          string    `parquet:"category,dict" doc:"of the partition"`
	Date              string    `parquet:"date,dict" doc:"of the partition, YYYY-MM-DD"`
	CollectedAt       time.Time `parquet:"collected_at,timestamp(millisecond)" doc:"when the domain was visited"`
	URL               string    `parquet:"url" doc:"its address"`
	Source            string    `parquet:"source,dict" doc:"sitemap: the domain's sitemap; feed: found with --feeds; robots: robots.txt names it"`
	Kind              string    `parquet:"kind,dict" doc:"urlset, index, rss, atom or text, or what came in its place, such as challenge; empty: not known"`
	StatusCode        *int64    `parquet:"status_code,optional" doc:"HTTP status, 0: no answer; null: not known"`
	Items             *int64    `parquet:"items,optional" doc:"its URLs or entries; null: not known"`
	Error             string    `parquet:"error,dict" doc:"why there is no answer; empty: there is one, or it was not read"`
}

// Outcome is what became of one domain in one partition in a run.
type Outcome struct {
	RunID             *string   `parquet:"run_id,optional,dict" doc:"the run; null: its record was removed or cannot be read"`
	DomainID          string    `parquet:"domain_id" doc:"authority:country:registrable domain"`
	RegistrableDomain string    `parquet:"registrable_domain" doc:"the part of the host name that somebody registered"`
	Country           string    `parquet:"country,dict" doc:"of the partition, two lower-case letters"`
	Category          string    `parquet:"category,dict" doc:"of the partition"`
	Date              string    `parquet:"date,dict" doc:"of the partition, YYYY-MM-DD"`
	At                time.Time `parquet:"at,timestamp(millisecond)" doc:"when"`
	State             string    `parquet:"state,dict" doc:"collected; unreachable: stored, but robots.txt got no answer; failed: not stored"`
	Reason            string    `parquet:"reason,dict" doc:"unreachable: the word of robots_error; failed: the kind of the dead letter; else empty"`
	Message           string    `parquet:"message" doc:"unreachable: what the network said; failed: the error of the dead letter; else empty"`
	RobotsStatus      *int64    `parquet:"robots_status,optional" doc:"HTTP status of robots.txt, 0: no answer; null: failed"`
	SitemapStatus     *int64    `parquet:"sitemap_status,optional" doc:"HTTP status of the sitemap; 404: no candidate answered 2xx, also where nothing answered; null: failed"`
	RawFilePath       string    `parquet:"raw_file_path,dict" doc:"the raw file that names the domain"`
}

// The states of an Outcome.
const (
	outcomeCollected   = "collected"
	outcomeUnreachable = "unreachable"
	outcomeFailed      = "failed"
)

// Rows are the kinds of rows that the job finds.
func Rows() []rows.What {
	find := Finds()
	of := rows.What{Job: Job, Version: 2, Filters: []string{"country", "category", "date", "since", "as-of"}, Since: "when the domain was visited"}
	domains, feeds, outcomes := of, of, of
	domains.Name, domains.About = "domains", "What is known about each domain in each partition, when it is done."
	domains.Table, domains.Find = "DOMAIN=registrable_domain COUNTRY CATEGORY DATE COLLECTED=collected_at SITEMAP=sitemap_url", &find
	domains.FailedIn, domains.Changed = "outcomes", changed
	domains.Event = &rows.Event{Type: "domain.collected", Subject: "registrable_domain", ID: []string{"domain_id", "country", "category", "date", "collected_at"}}
	feeds.Name, feeds.About = "feeds", "The sitemaps, RSS and Atom feeds of those domains."
	feeds.Table = "DOMAIN=registrable_domain COUNTRY CATEGORY DATE SOURCE KIND URL"
	feeds.Failed = func(r explore.Record) bool { return r.Column("error").Value != "" }
	outcomes.Name, outcomes.About = "outcomes", "What became of each domain in a run: collected, unreachable or failed, and why."
	outcomes.Filters = append(slices.Clone(of.Filters), "run")
	outcomes.Table = "DOMAIN=registrable_domain COUNTRY CATEGORY DATE AT STATE REASON MESSAGE…"
	outcomes.Failed = func(r explore.Record) bool { return r.Column("state").Value != outcomeCollected }
	return []rows.What{rows.InStore(domains, Domains), rows.InStore(feeds, Feeds), rows.InStore(outcomes, Outcomes)}
}

func changed(ctx context.Context, src rows.Source) iter.Seq2[rows.Change, error] {
	return rows.Map(Changes(ctx, src.Store, src.Filter), func(c Change) rows.Change {
		return rows.Change{Kind: c.Kind, Source: c.Country + "/" + c.Category + "/" + c.Date, Item: c.RegistrableDomain, What: c.What}
	})
}

// Domains yields all domains that are done, in no order.
func Domains(ctx context.Context, s store.Store, f Filter) iter.Seq2[Domain, error] {
	return domainsOf(results(ctx, s, f))
}

func domainsOf(all iter.Seq2[stored, error]) iter.Seq2[Domain, error] {
	return each(all, func(d stored, yield func(Domain, error) bool) bool {
		row, err := d.row()
		return yield(row, err) && err == nil
	})
}

// each yields what of yields for each of all, up to the first error.
func each[T, U any](all iter.Seq2[T, error], of func(T, func(U, error) bool) bool) iter.Seq2[U, error] {
	return func(yield func(U, error) bool) {
		for one, err := range all {
			if err != nil {
				var none U
				yield(none, err)
				return
			}
			if !of(one, yield) {
				return
			}
		}
	}
}

func (d stored) row() (Domain, error) {
	c, err := table.Query(d.in, d.metadata)
	return Domain{c, d.metadata.Sitemap.URLCount, d.metadata.Sitemap.TotalURLCount, rows.JSON(d.document), d.metadata.Web}, err
}

// Feeds yields the sitemaps and feeds of all domains that are done, each once a domain and
// partition.
func Feeds(ctx context.Context, s store.Store, f Filter) iter.Seq2[Feed, error] {
	return each(results(ctx, s, f), func(d stored, yield func(Feed, error) bool) bool {
		for _, found := range d.feeds() {
			if !yield(found, nil) {
				return false
			}
		}
		return true
	})
}

func (d stored) feeds() (all []Feed) {
	m := d.metadata
	add := func(url, source, kind, why string, status, items *int64) {
		if url != "" && !slices.ContainsFunc(all, func(f Feed) bool { return f.URL == url }) {
			all = append(all, Feed{m.DomainID, m.RegistrableDomain, d.in.Country, d.in.Category, d.in.Date, d.at, url, source, kind, status, items, why})
		}
	}
	if m.Sitemap.Parsed || m.Sitemap.Exists && m.Sitemap.LastStatus == 0 {
		status := int64(m.Sitemap.StatusCode)
		add(m.Sitemap.URL, "sitemap", m.Sitemap.Kind, m.Sitemap.Error, &status, m.Sitemap.URLCount)
	}
	for _, feed := range m.Feeds {
		status := int64(feed.StatusCode)
		add(feed.URL, "feed", feed.Kind, feed.Error, &status, feed.ItemCount)
	}
	for _, named := range m.Sitemap.Sitemaps {
		add(named.URL, "robots", named.Kind, "", nil, named.Count)
	}
	for _, url := range m.Robots.SitemapURLs {
		add(url, "robots", "", "", nil, nil)
	}
	return all
}

// Outcomes yields the domains that are done, with the run that visited them last, and then
// those that could not be stored: as of an earlier version these are not known.
func Outcomes(ctx context.Context, s store.Store, f Filter) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		runs, err := runsOf(ctx, s)
		if err != nil {
			yield(Outcome{}, err)
			return
		}
		for d, err := range results(ctx, s, f) {
			if err != nil {
				yield(Outcome{}, err)
				return
			}
			if o := d.outcome(); (f.Run == "" || runs.at(d.at) == f.Run) && !yield(o.in(runs.at(d.at)), nil) {
				return
			}
		}
		if f.AsOf != "" {
			return
		}
		for d, err := range ledger.ListDeadLetters(ctx, s, Job, f.Run) {
			if err != nil {
				yield(Outcome{}, err)
				return
			}
			o, ok := failedOutcome(d)
			if ok && f.Wants(hive.Partition{Country: o.Country, Category: o.Category, Date: o.Date}) && !o.At.Before(f.Since) && !yield(o.in(cmp.Or(f.Run, d.RunID)), nil) {
				return
			}
		}
	}
}

func (o Outcome) in(run string) Outcome {
	if run != "" {
		o.RunID = &run
	}
	return o
}

func (d stored) outcome() Outcome {
	m := d.metadata
	robots, sitemap := int64(m.Robots.StatusCode), int64(m.Sitemap.StatusCode)
	o := Outcome{DomainID: m.DomainID, RegistrableDomain: m.RegistrableDomain, Country: d.in.Country, Category: d.in.Category, Date: d.in.Date, At: d.at,
		State: outcomeCollected, RobotsStatus: &robots, SitemapStatus: &sitemap}
	if m.Robots.StatusCode == 0 && !strings.HasPrefix(m.Robots.Error, "http_") {
		o.State, o.Reason, o.Message = outcomeUnreachable, m.Robots.Error, m.Robots.ErrorText
	}
	if m.Source != nil {
		o.RawFilePath = m.Source.RawFilePath
	}
	return o
}

// failedOutcome is the outcome of a domain with a dead letter; others are of whole files
// or lanes.
func failedOutcome(d ledger.DeadLetter) (Outcome, bool) {
	p, folder, ok := hive.ParseMark(d.Input.Key + hive.Success)
	if !ok || d.Input.DomainID == "" {
		return Outcome{}, false
	}
	name := d.Input.DomainID[strings.LastIndexByte(d.Input.DomainID, ':')+1:]
	return Outcome{DomainID: d.Input.DomainID, RegistrableDomain: cmp.Or(name, folder), Country: p.Country, Category: p.Category, Date: p.Date, At: d.LastAt,
		State: outcomeFailed, Reason: d.Kind, Message: d.Error, RawFilePath: d.Input.File}, true
}

// runTimes are the runs of the job, the latest first. The job's lease lets one run work at
// a time, so the time of a visit says which run made it.
type runTimes []ledger.Run

func runsOf(ctx context.Context, s store.Store) (all runTimes, err error) {
	for r, err := range ledger.List(ctx, s) {
		switch {
		case err != nil && r.RunID == "":
			return nil, err
		case err == nil && r.Job == Job: // a record that cannot be read is as one that was removed
			all = append(all, r)
		}
	}
	return all, nil
}

// at returns the id of the run that worked at a time, empty if none is known.
func (all runTimes) at(t time.Time) string {
	for _, r := range all {
		if r.WorkedAt(t) {
			return r.RunID
		}
	}
	return ""
}

// Change is a domain that differs between the two newest dates of a country and category, or between two versions of the table.
type Change struct {
	Domain
	Kind string // new, gone or changed
	What string // changed: what, such as "robots.txt: 404 -> 200"
}

// Changes yields the domains that are new, gone or changed in the newest date of each country
// and category whose raw files are all done, compared with the date before: their
// robots.txt and their sitemap; with f.Before those of two versions of the table. Memory does not grow with the domains: they are
// compared in several passes if they are many.
func Changes(ctx context.Context, s store.Store, f Filter) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if f.Before != "" {
			was, is, err := domaintable.Between(ctx, s, f.Before, f.AsOf)
			of := func(parts []domaintable.Part) iter.Seq2[Domain, error] {
				return domainsOf(partResults(ctx, s, f, func() ([]domaintable.Part, error) { return parts, err }))
			}
			(&comparison{older: of(was), newer: of(is), dated: true}).all(yield)
			return
		}
		open := map[hive.Partition]int{} // raw files without their mark
		for o, err := range s.List(ctx, hive.Datasets) {
			if err != nil {
				yield(Change{}, fmt.Errorf("listing the raw files: %w", err))
				return
			}
			key, done := strings.CutSuffix(o.Key, hive.Success)
			if r, ok := hive.ParseRaw(key); ok && f.Wants(r.Partition) {
				open[r.Partition]++
				if done {
					open[r.Partition] -= 2
				}
			}
		}
		dates := map[[2]string][]string{}
		for p, n := range open {
			if n == 0 {
				of := [2]string{p.Country, p.Category}
				dates[of] = append(dates[of], p.Date)
			}
		}
		for _, of := range slices.SortedFunc(maps.Keys(dates), func(a, b [2]string) int { return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1])) }) {
			slices.Sort(dates[of])
			if two := dates[of][max(0, len(dates[of])-2):]; len(two) == 2 {
				at := func(date string) iter.Seq2[Domain, error] {
					return Domains(ctx, s, Filter{Country: of[0], Category: of[1], Date: date})
				}
				if c := (&comparison{older: at(two[0]), newer: at(two[1])}); !c.all(yield) {
					return
				}
			}
		}
	}
}

// look is what is compared of a domain.
type look struct{ robots, index string }

func lookOf(d Domain) look {
	said := func(status int64, failure string) string {
		if failure != "" {
			return failure
		}
		return fmt.Sprint(status)
	}
	l := look{robots: said(int64(d.RobotsStatus), d.RobotsError), index: said(int64(d.SitemapStatus), d.SitemapError)}
	if d.RobotsExists {
		l.robots += fmt.Sprintf(", %d sitemaps", len(d.SitemapURLs))
	}
	if d.SitemapExists {
		l.index += ", " + d.SitemapKind
	}
	return l
}

// since says what differs from an earlier look, "" for nothing.
func (l look) since(was look) string {
	var what []string
	if l.robots != was.robots {
		what = append(what, "robots.txt: "+was.robots+" -> "+l.robots)
	}
	if l.index != was.index {
		what = append(what, "sitemap: "+was.index+" -> "+l.index)
	}
	return strings.Join(what, "; ")
}

type comparison struct {
	older, newer iter.Seq2[Domain, error] // each may be read several times
	dated        bool                     // a domain is another one on another date
	passes       uint64
}

func (c *comparison) id(d Domain) visited {
	in := hive.Partition{Country: d.Country, Category: d.Category}
	if c.dated {
		in.Date = d.Date
	}
	return visitedAs(in, d.RegistrableDomain)
}

// of yields the domains of a pass.
func (c *comparison) of(all iter.Seq2[Domain, error], pass uint64) iter.Seq2[Domain, error] {
	return each(all, func(d Domain, yield func(Domain, error) bool) bool {
		id := c.id(d)
		return binary.BigEndian.Uint64(id[:])%c.passes != pass || yield(d, nil)
	})
}

// before returns the older looks of a pass. In the first one it doubles the passes until
// they are few enough.
func (c *comparison) before(pass uint64) (map[visited]look, error) {
	c.passes = max(c.passes, 1)
	texts := map[string]string{} // each once: there are few
	was := map[visited]look{}
	for d, err := range c.of(c.older, pass) {
		if err != nil {
			return nil, err
		}
		l := lookOf(d)
		for _, t := range []*string{&l.robots, &l.index} {
			if _, ok := texts[*t]; !ok {
				texts[*t] = *t
			}
			*t = texts[*t]
		}
		was[c.id(d)] = l
		if pass == 0 && int64(len(was)) > maxCompared {
			c.passes *= 2
			return c.before(0)
		}
	}
	return was, nil
}

// all yields the differences, and reports whether to continue.
func (c *comparison) all(yield func(Change, error) bool) bool {
	c.passes = 1
	for pass := uint64(0); pass < c.passes; pass++ {
		was, err := c.before(pass)
		if err != nil {
			yield(Change{}, err)
			return false
		}
		for d, err := range c.of(c.newer, pass) {
			if err != nil {
				yield(Change{}, err)
				return false
			}
			id := c.id(d)
			before, there := was[id]
			delete(was, id)
			change := Change{Domain: d, Kind: "new"}
			if there {
				change.Kind, change.What = "changed", lookOf(d).since(before)
			}
			if (!there || change.What != "") && !yield(change, nil) {
				return false
			}
		}
		if len(was) == 0 {
			continue
		}
		for d, err := range c.of(c.older, pass) {
			if err != nil {
				yield(Change{}, err)
				return false
			}
			if _, gone := was[c.id(d)]; gone && !yield(Change{Domain: d, Kind: "gone"}, nil) {
				return false
			}
		}
	}
	return true
}
