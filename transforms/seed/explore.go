package seed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/seed/domain"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// maxShown is how much of a file of evidence is shown.
const maxShown = 64 << 10

// Finds are the domains, for those who look at one. agent is the User-Agent of the job.
func Finds(agent string) explore.Kind {
	return explore.Kind{Name: "domains", Title: "Domains", One: "domain", About: "What is stored of one domain, in each partition: its metadata, its robots.txt and its sitemap.",
		Fields: []explore.Field{
			{Name: "domain", Label: "Domain", Hint: "such as moh.gov.sg, or the URL of one of its pages", About: "The domain, its domain id, or a URL of it.", Required: true},
			{Name: "country", Label: "Country", Hint: "two lower-case letters"},
			{Name: "category", Label: "Category"},
			{Name: "date", Label: "Date", Day: true},
		},
		Keys: []explore.Field{
			{Name: "domain", Label: "Domain", Required: true}, {Name: "country", Label: "Country", Required: true},
			{Name: "category", Label: "Category", Required: true}, {Name: "date", Label: "Date", Day: true, Required: true},
		},
		Asks: []explore.Field{
			{Name: "path", Label: "Path or URL", Hint: "such as /news?page=2", About: "Which line of robots.txt decides about this path."},
			{Name: "agent", Label: "User agent", Hint: "empty: this crawler's", About: "The crawler whose group of robots.txt counts."},
		},
		Shown:  []string{"country", "category", "date", "collected_at", "robots_status", "sitemap_status", "sitemap_kind", "sitemap_url_count"},
		Search: searchDomains,
		Show: func(ctx context.Context, src explore.Source, q explore.Query) (explore.Item, error) {
			return showDomain(ctx, src.Store, q, agent)
		},
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

func showDomain(ctx context.Context, s store.Store, q explore.Query, agent string) (item explore.Item, err error) {
	f, err := filterOf(q)
	if err != nil {
		return item, err
	}
	name, err := domainNamed(q["domain"])
	if err != nil {
		return item, err
	}
	places, _, err := placesOf(ctx, s, name, f, nil)
	if err != nil {
		return item, err
	}
	if len(places) == 0 {
		return item, explore.ErrNone
	}
	k, err := places[0].read(ctx, s, name)
	if errors.Is(err, store.ErrNotExist) {
		return item, explore.ErrNone
	}
	if err != nil {
		return item, err
	}
	if item, err = k.item(); err != nil {
		return item, err
	}
	err = k.addEvidence(ctx, s, &item, q, agent)
	return item, err
}

// addEvidence adds the evidence of a result and our reading of it. What metadata says is
// not there may be there of an earlier visit, and is left out.
func (k kept) addEvidence(ctx context.Context, s store.Store, item *explore.Item, q explore.Query, agent string) error {
	r, m := k.metadata.Robots, k.metadata.Sitemap
	if !r.Exists {
		item.Parts = append(item.Parts, noRobots(r, q, agent))
	} else {
		at := k.evidence["robots.txt"]
		file, whole, found, err := at.beginning(ctx, s, maxRobots)
		if err != nil {
			return fmt.Errorf("reading the robots.txt of %s: %w", item.Title, err)
		}
		if !found {
			item.Parts = append(item.Parts, explore.Part{Name: "rule", Title: ruleTitle, Note: "The site has a robots.txt, but it is not stored: what could not be written is only in the run's log."})
		} else {
			reading := readRobots(file, cmp.Or(r.FinalURL, "https://"+k.metadata.RegistrableDomain+"/robots.txt"), q, agent)
			if !whole || r.Truncated {
				reading.Note = "Only the beginning of the file is stored and was read."
			}
			item.Parts = append(item.Parts, reading, textPart("robots.txt", "robots.txt", file, whole, r.ContentLength, at))
		}
	}
	if !m.Exists {
		return nil
	}
	at := k.evidence["sitemap.xml"]
	body, whole, found, err := at.beginning(ctx, s, maxShown)
	if err != nil {
		return fmt.Errorf("reading the sitemap of %s: %w", item.Title, err)
	}
	if found {
		part := textPart("sitemap.xml", "Sitemap", body, whole, m.ContentLength, at)
		part.Note = sitemapNote(k)
		item.Parts = append(item.Parts, part)
	}
	return nil
}

// noRobots is what holds without a robots.txt: by RFC 9309 section 2.3.1 all is allowed if
// the site answers that there is none, and nothing if it does not answer.
func noRobots(r metadata.Robots, q explore.Query, agent string) explore.Part {
	if r.StatusCode >= 200 && r.StatusCode < 500 {
		p := readRobots(nil, "", q, agent)
		p.Note = fmt.Sprintf("There is no robots.txt (status %d), which allows everything.", r.StatusCode)
		return p
	}
	why := r.Error
	if why == "" {
		why = fmt.Sprintf("status %d", r.StatusCode)
	}
	return explore.Part{Name: "rule", Title: ruleTitle, Note: "The site did not answer for its robots.txt (" + why + "), so nothing is known about what it allows."}
}

// textPart is the beginning of a file of evidence as a person may see it.
func textPart(name, title string, body []byte, whole bool, size int64, at object) explore.Part {
	cut := len(body) > maxShown
	if cut {
		body = body[:maxShown]
	}
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	return explore.Part{Name: name, Title: title, Text: untrusted.Text(string(body), 0), Bytes: size, Truncated: cut || !whole, Stored: at.String()}
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

// rule is what a robots.txt says about one path.
type rule struct {
	Path       string   `parquet:"path" doc:"the path or URL that was asked about"`
	Agent      string   `parquet:"agent" doc:"the crawler whose group counts"`
	Allowed    bool     `parquet:"allowed" doc:"whether it may be fetched"`
	Line       *int64   `parquet:"line,optional" doc:"number of the line that decides; null: no line applies, so it is allowed"`
	Rule       string   `parquet:"rule" doc:"that line"`
	Group      string   `parquet:"group" doc:"the group for the agent: its own name, *, or empty: there is none"`
	GroupLines []string `parquet:"group_lines,list" doc:"numbers of the group's User-agent lines"`
	CrawlDelay string   `parquet:"crawl_delay" doc:"the pause that the group asks for; empty: none"`
	Sitemaps   []string `parquet:"sitemaps,list" doc:"sitemaps that the file names, at most 100"`
}

const (
	maxRule     = 500 // bytes of a line that are shown
	maxSitemaps = 100
)

const ruleTitle = "What robots.txt allows"

// readRobots is our reading of the robots.txt at a URL.
func readRobots(file []byte, at string, q explore.Query, agent string) explore.Part {
	const all = "/"
	r := rule{Path: q["path"], Agent: q["agent"]}
	if r.Path == "" {
		r.Path = all
	}
	if r.Agent == "" {
		r.Agent = agent
	}
	from, _ := url.Parse(at) // of a program that checks its URLs
	parsed := robots.ParseAt(file, from)
	line, text, allowed := parsed.Rule(r.Agent, r.Path)
	r.Allowed, r.Rule = allowed, untrusted.Line(text, maxRule)
	if line > 0 {
		n := int64(line)
		r.Line = &n
	}
	token, lines := parsed.Group(r.Agent)
	r.Group = token
	for _, n := range lines[:min(len(lines), maxSitemaps)] {
		r.GroupLines = append(r.GroupLines, strconv.Itoa(n))
	}
	if d, ok := parsed.CrawlDelay(r.Agent); ok {
		r.CrawlDelay = d.Round(time.Millisecond).String()
	}
	for _, u := range parsed.Sitemaps()[:min(len(parsed.Sitemaps()), maxSitemaps)] {
		r.Sitemaps = append(r.Sitemaps, untrusted.Line(u, maxRule))
	}
	return explore.Part{Name: "rule", Title: ruleTitle, Asks: true, Rows: []explore.Record{rows.Record(r)}}
}
