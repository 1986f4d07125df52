package seed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/seed/domain"
)

// maxShown is how much of a file of evidence is shown.
const maxShown = 64 << 10

// Finds are the domains, for those who look at one.
func Finds() explore.Kind {
	x := &domainIndex{}
	ways := []string{}
	for _, m := range measures {
		ways = append(ways, m.Name)
	}
	return explore.Kind{Name: "domains", Title: "Domains", One: "domain",
		About: "The domains by country, category and date, each as it was last visited; or what is stored of one domain, in each partition: " +
			"its metadata, its robots.txt and its sitemap.",
		Fields: []explore.Field{
			{Name: "domain", Label: "Domain", Hint: "such as moh.gov.sg, or the URL of one of its pages; empty for all", About: "The domain, its domain id, or a URL of it. Without it, a list of all, with fewer columns."},
			{Name: "country", Label: "Country", Hint: "two lower-case letters"},
			{Name: "category", Label: "Category"},
			{Name: "date", Label: "Date", Day: true},
			{Name: explore.MeasureField, Label: "Which", Choices: ways, About: "Only those with it; without domain."},
		},
		Keys: []explore.Field{
			{Name: "domain", Label: "Domain", Required: true}, {Name: "country", Label: "Country", Required: true},
			{Name: "category", Label: "Category", Required: true}, {Name: "date", Label: "Date", Day: true, Required: true},
		},
		Shown: []string{"country", "category", "date", "collected_at", "robots_status", "sitemap_status", "sitemap_kind", "sitemap_url_count"},
		Search: func(ctx context.Context, src explore.Source, q explore.Query) (list explore.List, err error) {
			if q["domain"] != "" {
				return searchDomains(ctx, src, q)
			}
			if _, err := filterOf(q); err != nil {
				return list, err
			}
			all, counts, err := x.get(ctx, src.Store)
			if err != nil {
				return list, err
			}
			list, err = choiceOf(q).page(all, q[explore.After])
			list.Note = counts.Note
			return list, err
		},
		Count: func(ctx context.Context, src explore.Source, q explore.Query) (c explore.Counts, err error) {
			if q["domain"] != "" {
				return c, nil
			}
			if _, err := filterOf(q); err != nil {
				return c, err
			}
			all, c, err := x.get(ctx, src.Store)
			if err == nil && len(all) > 0 {
				c.Facets, c.Picture = choiceOf(q).counts(all)
			}
			return c, err
		},
		Show: showDomain,
	}
}

// domainNamed is the registrable domain that a person writes: itself, a domain id, a host
// or a URL, in Unicode or not.
func domainNamed(text string) (string, error) {
	name := text
	if i := strings.LastIndexByte(text, ':'); i > 0 && !strings.Contains(text, "/") && strings.Count(text, ":") == 2 {
		name = text[i+1:]
	}
	d, err := domain.FromURL(name, "zz")
	if err != nil {
		return "", explore.Unknown("domain: %s is no domain: %s; write one such as moh.gov.sg", strconv.Quote(untrusted.Line(text, 80)), errorWords(err))
	}
	return d.Registrable, nil
}

// errorWords is why a domain is refused, without the text that was refused.
func errorWords(err error) string {
	for _, known := range []error{domain.ErrNoHost, domain.ErrBadHost, domain.ErrIP, domain.ErrSingleLabel, domain.ErrUnlisted} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "it cannot be read"
}

// filterOf reads the partition of a query; a partition's words are parts of keys.
func filterOf(q explore.Query) (f Filter, err error) {
	f = Filter{Country: q["country"], Category: q["category"], Date: q["date"]}
	p := hive.Partition{Country: f.Country, Category: f.Category, Date: f.Date}
	if p.Country == "" {
		p.Country = "zz"
	}
	if p.Category == "" {
		p.Category = "any"
	}
	if p.Date == "" {
		p.Date = "2000-01-01"
	}
	if _, _, ok := hive.ParseMark(p.DomainDir("any") + "/" + hive.Metadata + hive.Success); !ok {
		return f, explore.Unknown("country, category or date: write two lower-case letters, a category such as news, and YYYY-MM-DD")
	}
	return f, nil
}

func searchDomains(ctx context.Context, src explore.Source, q explore.Query) (list explore.List, err error) {
	name, err := domainNamed(q["domain"])
	if err != nil {
		return list, err
	}
	f, err := filterOf(q)
	if err != nil {
		return list, err
	}
	var after *hive.Partition
	if q[explore.After] != "" {
		words := strings.Split(q[explore.After], "/")
		if len(words) != 3 {
			return list, explore.Unknown("after: take next of the page before")
		}
		after = &hive.Partition{Date: words[0], Country: words[1], Category: words[2]}
	}
	places, more, err := placesOf(ctx, src.Store, name, f, after)
	if errors.Is(err, errTooMany) {
		return list, explore.Refuse("the store has over %d raw files, too many to look for the partitions of a domain; add country, category or date", maxRawFiles)
	}
	if err != nil {
		return list, err
	}
	if more != nil {
		list.Next = more.Date + "/" + more.Country + "/" + more.Category
	}
	for _, p := range places {
		k, err := p.read(ctx, src.Store, name)
		if errors.Is(err, store.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return list, err
		}
		item, err := k.item()
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, item)
	}
	if len(list.Items) == 0 {
		list.Note = "Nothing is stored of " + shownName(name) + " here: no raw file names it, or it could not be stored. Its dead letters say why."
	}
	return list, nil
}

// shownName is a domain for a person: an internationalised one in both forms.
func shownName(name string) string {
	if u, err := idna.Display.ToUnicode(name); err == nil && u != name {
		return name + " (" + u + ")"
	}
	return name
}

// item is the result without its parts.
func (k kept) item() (explore.Item, error) {
	d, err := k.row()
	if err != nil {
		return explore.Item{}, err
	}
	name := d.RegistrableDomain
	return explore.Item{Key: explore.Query{"domain": name, "country": d.Country, "category": d.Category, "date": d.Date}, Title: shownName(name),
		Record: rows.Record(d), URL: "https://" + name + "/", RunID: k.run, At: k.at, Failures: name}, nil
}

func showDomain(ctx context.Context, src explore.Source, q explore.Query) (item explore.Item, err error) {
	f, err := filterOf(q)
	if err != nil {
		return item, err
	}
	name, err := domainNamed(q["domain"])
	if err != nil {
		return item, err
	}
	places, _, err := placesOf(ctx, src.Store, name, f, nil)
	if err != nil {
		return item, err
	}
	if len(places) == 0 {
		return item, explore.ErrNone
	}
	k, err := places[0].read(ctx, src.Store, name)
	if errors.Is(err, store.ErrNotExist) {
		return item, explore.ErrNone
	}
	if err != nil {
		return item, err
	}
	if item, err = k.item(); err != nil {
		return item, err
	}
	err = k.addEvidence(ctx, src.Store, &item)
	return item, err
}

// addEvidence adds the evidence of a result. What metadata says is not there may be there of
// an earlier visit, and is left out.
func (k kept) addEvidence(ctx context.Context, s store.Store, item *explore.Item) error {
	for _, e := range []struct {
		file, title string
		exists      bool
		size        int64
	}{
		{"robots.txt", "robots.txt", k.metadata.Robots.Exists, k.metadata.Robots.ContentLength},
		{"sitemap.xml", "Sitemap", k.metadata.Sitemap.Exists, k.metadata.Sitemap.ContentLength},
	} {
		if !e.exists {
			continue
		}
		at := k.evidence[e.file]
		body, whole, found, err := at.beginning(ctx, s, maxShown)
		if err != nil {
			return fmt.Errorf("reading the %s of %s: %w", e.file, item.Title, err)
		}
		if !found { // what could not be written is only in the run's log
			continue
		}
		part := textPart(e.file, e.title, body, whole, e.size, at)
		if e.file == "sitemap.xml" {
			part.Note = sitemapNote(k)
		}
		item.Parts = append(item.Parts, part)
	}
	return nil
}

// textPart is the beginning of a file of evidence as a person may see it.
func textPart(name, title string, body []byte, whole bool, size int64, at object) explore.Part {
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	return explore.Part{Name: name, Title: title, Text: untrusted.Text(string(body), 0), Bytes: size, Truncated: !whole, Stored: at.String()}
}

func sitemapNote(k kept) string {
	m := k.metadata.Sitemap
	note := "Read as " + m.Kind
	if m.Kind == "" {
		note = "Of no kind that is known"
	}
	count := func(n *int64, what string) {
		if n != nil {
			note += fmt.Sprintf(", %d %s", *n, what)
		}
	}
	count(m.URLCount, "entries")
	count(m.ChildCount, "of its sitemaps read")
	count(m.TotalURLCount, "entries in them")
	return note + "."
}
