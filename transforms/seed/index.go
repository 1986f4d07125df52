package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

const (
	// maxIndexed is how many domains are counted and listed: 200 bytes of memory each.
	maxIndexed = 1_000_000
	// maxIndexing is the longest time that the index is read for, and indexWait how long a page waits for it.
	maxIndexing = 30 * time.Minute
	indexWait   = 400 * time.Millisecond
	// When a page needs an index, the one in memory serves for indexAge, or for indexRest times as long as reading it took if that is longer.
	indexAge  = 30 * time.Second
	indexRest = 20
)

// The ways to count domains, and the values of the search's field.
var measures = []explore.Measure{{Name: "domains", Title: "All domains"}, {Name: "robots", Title: "With robots.txt"}, {Name: "sitemap", Title: "With a sitemap"},
	{Name: "unreachable", Title: "Unreachable"}, {Name: "wall", Title: "With a wall"}, {Name: "no-training", Title: "Reserving AI training"},
	{Name: "no-answers", Title: "Reserving AI answers"}, {Name: "no-search", Title: "Reserving search"}}

// indexed is what the index has of a domain in a partition.
type indexed struct {
	name, etag string // of an object; "": it is packed
	in         hive.Partition
	at         time.Time
	has        uint8 // a bit for each measure
	old        bool  // there is a later date of its country and category
	robots     int32
	sitemap    int32
	kind       string
	urls       *int64
}

func (d *indexed) before(o *indexed) int {
	return cmp.Or(strings.Compare(d.name, o.name), before(d.in, o.in))
}

// domainIndex is a list of all domains in memory, for those who look through them. It costs the store one listing of the results, and
// what has changed since the one before.
type domainIndex struct {
	mu      sync.Mutex
	reading chan struct{} // closed when the index that is being read is there; nil: none is
	read    atomic.Int64  // domains of that one
	all     []indexed     // by name and partition
	more    bool          // there are more than maxIndexed
	at      time.Time     // when it was read; zero: never
	next    time.Time     // when it may be read again
	err     error         // of the last reading
	packed  map[string][]indexed
}

// get returns the index, or a note that says that it is being read for the first time.
func (x *domainIndex) get(ctx context.Context, s store.Store) (all []indexed, counts explore.Counts, err error) {
	x.mu.Lock()
	if x.reading == nil && !time.Now().Before(x.next) {
		x.reading = make(chan struct{})
		go x.refresh(context.WithoutCancel(ctx), s, x.reading)
	}
	reading := x.reading
	x.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-time.After(indexWait):
		case <-ctx.Done():
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.at.IsZero() && x.err != nil:
		return nil, counts, x.err
	case x.at.IsZero():
		counts.Note = fmt.Sprintf("The domains are being counted for the first time, %d so far. Load the page again in a moment.", x.read.Load())
	case x.err != nil:
		counts.Note = "The store could not be read since; the server's log says why."
	case x.more:
		counts.Note = fmt.Sprintf("These are the first %d domains by their keys; `pipeline export` has all.", maxIndexed)
	}
	counts.At = x.at
	return x.all, counts, nil
}

func (x *domainIndex) refresh(ctx context.Context, s store.Store, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, maxIndexing)
	defer cancel()
	begun := time.Now()
	x.read.Store(0)
	all, packed, err := x.list(ctx, s)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err = err; err == nil {
		x.packed, x.at, x.more = packed, begun, len(all) > maxIndexed
		x.all = all[:min(len(all), maxIndexed)]
	}
	now := time.Now()
	x.next, x.reading = now.Add(max(indexAge, indexRest*now.Sub(begun))), nil
	close(done)
}

// list reads what is new in the store.
func (x *domainIndex) list(ctx context.Context, s store.Store) (all []indexed, packed map[string][]indexed, err error) {
	parts, err := domaintable.All(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	packed = map[string][]indexed{}
	for _, p := range parts {
		rows, known := x.packed[p.ID]
		if !known {
			if rows, err = packedEntries(ctx, s, p); err != nil {
				return nil, nil, err
			}
		}
		packed[p.ID] = rows
		x.read.Add(int64(len(rows)))
		if all = append(all, rows...); len(all) > maxIndexed {
			break
		}
	}
	if all, err = x.objects(ctx, s, all); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b indexed) int { return cmp.Or(a.before(&b), b.at.Compare(a.at)) })
	all = slices.CompactFunc(all, func(a, b indexed) bool { return a.before(&b) == 0 }) // the newest visit is first
	later := map[[2]string]bool{}
	for i := range all {
		d := &all[i]
		if i > 0 && all[i-1].name != d.name {
			clear(later)
		}
		in := [2]string{d.in.Country, d.in.Category}
		d.old = later[in]
		later[in] = true
	}
	return all, packed, nil
}

func packedEntries(ctx context.Context, s store.Store, p domaintable.Part) (all []indexed, err error) {
	rows, err := p.ReadRows(ctx, s)
	for _, r := range rows {
		r.Country, r.Category, r.Date = strings.Clone(r.Country), strings.Clone(r.Category), strings.Clone(r.Date) // not the whole file
		all = append(all, entry(r.Columns, r.URLCount))
	}
	return all, err
}

// objects appends the domains of the objects' layout. Those whose object is as before are not read.
func (x *domainIndex) objects(ctx context.Context, s store.Store, all []indexed) ([]indexed, error) {
	known := map[string]*indexed{}
	for i := range x.all {
		if d := &x.all[i]; d.etag != "" {
			known[metadataKey(d.in, d.name)] = d
		}
	}
	var reads errgroup.Group
	reads.SetLimit(readTogether)
	var mu sync.Mutex
	etag, metadata := "", "" // of the object before the mark
	for o, err := range s.List(ctx, hive.Processing) {
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listing the results: %w", err), reads.Wait())
		}
		p, _, ok := hive.ParseMark(o.Key)
		if !ok {
			etag, metadata = o.ETag, o.Key
			continue
		}
		if x.read.Add(1) > maxIndexed {
			break
		}
		key, tag := strings.TrimSuffix(o.Key, hive.Success), ""
		if key == metadata {
			tag = etag
		}
		if d := known[key]; d != nil && tag != "" && d.etag == tag {
			mu.Lock()
			all = append(all, *d)
			mu.Unlock()
			continue
		}
		reads.Go(func() error {
			d, err := readResult(ctx, s, p, key)
			if errors.Is(err, store.ErrNotExist) || errors.Is(err, errNoMetadata) {
				return nil // removed since, or one that the next run replaces
			}
			if err != nil {
				return err
			}
			c, err := table.Query(p, d.metadata)
			one := entry(c, d.metadata.Sitemap.URLCount)
			one.etag = tag
			mu.Lock()
			defer mu.Unlock()
			all = append(all, one)
			return err
		})
	}
	err := reads.Wait()
	return all, err
}

func entry(c table.Columns, urls *int64) indexed {
	d := indexed{name: strings.Clone(c.RegistrableDomain), in: hive.Partition{Country: c.Country, Category: c.Category, Date: c.Date}, at: c.CollectedAt,
		robots: c.RobotsStatus, sitemap: c.SitemapStatus, kind: strings.Clone(c.SitemapKind), urls: urls}
	for i, has := range []bool{true, c.RobotsKind == string(answer.Robots) || c.RobotsKind == "" && c.RobotsExists, c.SitemapParsed,
		c.RobotsStatus == 0 && !strings.HasPrefix(c.RobotsError, "http_"),
		answer.Kind(c.RobotsKind) == answer.Challenge || answer.Kind(c.SitemapKind) == answer.Challenge || c.SiteState == "blocked",
		c.AITrain == rights.Reserved, c.AIInput == rights.Reserved, c.Search == rights.Reserved} {
		if has {
			d.has |= 1 << i
		}
	}
	return d
}

// choice are the values of a query, "" and 0 for any.
type choice struct {
	country, category, date string
	has                     uint8
}

func choiceOf(q explore.Query) choice {
	c := choice{q["country"], q["category"], q["date"], 0}
	if i := slices.IndexFunc(measures, func(m explore.Measure) bool { return m.Name == q[explore.MeasureField] }); i >= 0 {
		c.has = 1 << i
	}
	return c
}

// wants reports whether a domain is chosen. Without a date each domain of a country and category is there once, as it was last visited.
func (c choice) wants(d *indexed) bool {
	return (c.country == "" || c.country == d.in.Country) && (c.category == "" || c.category == d.in.Category) &&
		(c.date == "" && !d.old || c.date == d.in.Date) && d.has&c.has == c.has
}

// counts counts the domains that a query chooses.
func (c choice) counts(all []indexed) (facets []explore.Facet, p *explore.Picture) {
	type cell struct{ country, category string }
	cells := map[cell][]int64{}
	by := [4]map[string]int64{{}, {}, {}, {}}
	any := [4]choice{c, c, c, c}
	any[0].country, any[1].category, any[2].date, any[3].has = "", "", "", 0
	for i := range all {
		d := &all[i]
		if any[0].wants(d) {
			by[0][d.in.Country]++
		}
		if any[1].wants(d) {
			by[1][d.in.Category]++
		}
		if date := (choice{c.country, c.category, d.in.Date, c.has}); date.wants(d) {
			by[2][d.in.Date]++
		}
		if !any[3].wants(d) {
			continue
		}
		in := cell{d.in.Country, d.in.Category}
		if cells[in] == nil {
			cells[in] = make([]int64, len(measures))
		}
		for m := range measures {
			if d.has&(1<<m) != 0 {
				cells[in][m]++
				if m > 0 {
					by[3][measures[m].Name]++
				}
			}
		}
	}
	for i, field := range []string{"country", "category", "date", explore.MeasureField} {
		facets = append(facets, explore.FacetOf(field, by[i]))
	}
	countries, categories := map[string]bool{}, map[string]bool{}
	for in := range cells {
		countries[in.country], categories[in.category] = true, true
	}
	p = &explore.Picture{Title: "Domains by country and category", Row: "country", Column: "category", Measures: measures,
		Columns: slices.Sorted(maps.Keys(categories))}
	for _, country := range slices.Sorted(maps.Keys(countries)) {
		for i, category := range p.Columns {
			for m, n := range cells[cell{country, category}] {
				p.Add(country, i, measures[m].Name, n)
			}
		}
	}
	return facets, p
}

// page returns the domains of a query after a place.
func (c choice) page(all []indexed, after string) (list explore.List, err error) {
	from := 0
	if after != "" {
		words := strings.Split(after, "/")
		if len(words) != 4 {
			return list, explore.Unknown("after: take next of the page before")
		}
		last := indexed{name: words[0], in: hive.Partition{Date: words[1], Country: words[2], Category: words[3]}}
		at, found := slices.BinarySearchFunc(all, &last, func(d indexed, to *indexed) int { return d.before(to) })
		if from = at; found {
			from++
		}
	}
	for i := from; i < len(all); i++ {
		d := &all[i]
		if !c.wants(d) {
			continue
		}
		if len(list.Items) == explore.PerPage {
			last := list.Items[explore.PerPage-1].Key
			list.Next = strings.Join([]string{last["domain"], last["date"], last["country"], last["category"]}, "/")
			break
		}
		list.Items = append(list.Items, d.item())
	}
	return list, nil
}

// item is what the index has of the domain.
func (d *indexed) item() explore.Item {
	var urls any
	if d.urls != nil {
		urls = *d.urls
	}
	return explore.Item{
		Key:   explore.Query{"domain": d.name, "country": d.in.Country, "category": d.in.Category, "date": d.in.Date},
		Title: shownName(d.name), URL: "https://" + d.name + "/", At: d.at,
		Record: explore.Record{{Name: "registrable_domain", Value: d.name}, {Name: "country", Value: d.in.Country},
			{Name: "category", Value: d.in.Category}, {Name: "date", Value: d.in.Date}, {Name: "collected_at", Value: d.at.UTC()},
			{Name: "robots_status", Value: d.robots}, {Name: "sitemap_status", Value: d.sitemap}, {Name: "sitemap_kind", Value: d.kind},
			{Name: "sitemap_url_count", Value: urls}},
	}
}
