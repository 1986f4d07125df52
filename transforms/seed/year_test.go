package seed_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// A state is how the hosts of a site answer for a time, what a row must say then, and how many requests a visit may cost.
type state struct {
	apex, other  webtest.Kind // of the domain and its other host; "": it has handler
	handler      http.Handler
	host         string // host_used; "": none
	robots       string // kind
	status, last int    // of the sitemap
	sitemap      string // kind
	parsed       bool
	exists       bool   // of the sitemap
	requests     int    // handshakes that fail among them
	site, lost   string // of the metadata, where the site showed more before
}

// A phase is a state until a day of the year.
type phase struct {
	until int
	state state
}

// wall answers every path with a page.
func wall(status int, header, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		name, value, _ := strings.Cut(header, ": ")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if name != "" {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that is gone shows on its own side
	})
}

// behind answers one path with a wall, and the others as a site does.
func behind(path string, wall, site http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			wall.ServeHTTP(w, r)
			return
		}
		site.ServeHTTP(w, r)
	})
}

const (
	captcha = `<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><h1>Verifying you are human.</h1></body></html>`
	forSale = `<!DOCTYPE html><html><head><title>site.com is for sale</title></head><body><h1>This domain is for sale</h1></body></html>`
	missing = `<!DOCTYPE html><html><head><title>Page not found</title></head><body><h1>404</h1><p>No such page.</p></body></html>`
)

// yearOf is what the sites of a simulated year do, by registrable domain. other is the host besides the domain.
func yearOf() (phases map[string][]phase, other map[string]string) {
	site := pages(map[string]string{"/robots.txt": "User-agent: *\nDisallow: /private\n", "/sitemap.xml": urlset(2)})
	bare := pages(map[string]string{"/robots.txt": "User-agent: *\nDisallow:\n"})
	well := func(host string) state {
		return state{handler: site, host: host, robots: "robots", status: 200, last: 200, sitemap: "urlset", parsed: true, exists: true, requests: 2}
	}
	// on is a site of which another host than the domain answers.
	on := func(host string, apex webtest.Kind, requests int) state {
		s := well(host)
		s.apex, s.requests = apex, requests
		return s
	}
	// walled is a site with a wall in place of robots.txt and sitemap.
	walled := func(host string, h http.Handler, kind string, status, last, requests int) state {
		return state{handler: h, host: host, robots: kind, sitemap: kind, status: status, last: last, exists: status == 200, requests: requests}
	}
	noSitemap := state{handler: bare, host: "none.com", robots: "robots", status: 404, last: 404, requests: 4}
	soft := walled("soft.com", behind("/robots.txt", bare, wall(200, "", missing)), "soft_404", 200, 200, 4)
	soft.robots = "robots"
	later := walled("waits.com", wall(429, "Retry-After: 259200", "later"), "error_page", 404, 0, 1)
	later.sitemap = "" // it was not requested
	guarded := well("robots.com")
	guarded.handler, guarded.robots = behind("/robots.txt", wall(200, "", captcha), site), "challenge"
	gone := state{apex: webtest.KindRefused, other: webtest.KindRefused, status: 404}
	// during is a site that is well but for some days.
	during := func(host string, from, until int, s state) []phase {
		return []phase{{from, well(host)}, {until, s}, {1000, well(host)}}
	}
	// not says what a row says of a site that was well before.
	not := func(state, lost string, s state) state {
		s.site, s.lost = state, lost
		return s
	}
	return map[string][]phase{
		"steady.com": {{1000, well("steady.com")}},
		"none.com":   {{1000, noSitemap}},
		"soft.com":   {{1000, soft}},
		"blocks.com": during("blocks.com", 60, 67, not("blocked", "robots sitemap", walled("blocks.com", wall(403, "cf-mitigated: challenge", captcha), "challenge", 404, 403, 4))),
		"waits.com":  during("waits.com", 120, 127, not("down", "robots sitemap", later)),
		"robots.com": during("robots.com", 240, 268, not("blocked", "robots", guarded)),
		"parks.com":  during("parks.com", 200, 300, not("closed", "robots sitemap", walled("parks.com", wall(200, "", forSale), "parked", 200, 200, 4))),
		"cert.com":   during("cert.com", 100, 160, on("www.cert.com", webtest.KindTLSWrongName, 3)),
		"moves.com":  during("moves.com", 150, 999, on("www.moves.com", webtest.KindNoSuchHost, 2)),
		"manual.com": during("manual.com", 30, 90, on("docs.manual.com", webtest.KindRefused, 2)),
		"dies.com":   during("dies.com", 180, 250, not("down", "robots sitemap", gone)),
	}, map[string]string{"cert.com": "www.cert.com", "moves.com": "www.moves.com", "manual.com": "docs.manual.com", "dies.com": "www.dies.com"}
}

// play gives the hosts of a site what they do in a state.
func (j *job) play(name, other string, s state) {
	for host, kind := range map[string]webtest.Kind{name: s.apex, other: s.other} {
		switch {
		case host == "":
		case kind != "":
			j.web.Become(host, kind)
		default:
			j.web.Handle(host, s.handler)
		}
	}
}

func (s state) check(t *testing.T, when string, m metadata.Domain) {
	t.Helper()
	assert.True(t, m.HostUsed == s.host && m.Robots.Kind == s.robots && m.Robots.Exists == (s.robots != "" && m.Robots.StatusCode == 200),
		"%s: host_used %q, robots %+v, want %q, %q", when, m.HostUsed, m.Robots, s.host, s.robots)
	got := m.Sitemap
	if m.Site == nil {
		m.Site = &metadata.Site{}
	}
	assert.True(t, m.Site.State == s.site && strings.Join(m.Site.Lost, " ") == s.lost,
		"%s: site %+v, want %s, %s", when, m.Site, s.site, s.lost)
	if got.StatusCode != s.status || got.LastStatus != s.last || got.Kind != s.sitemap ||
		got.Parsed != s.parsed || got.Exists != s.exists || (got.URLCount != nil) != s.parsed {
		t.Errorf("%s: sitemap %+v, want %+v", when, got, s)
	}
}

// calendar is the job and the sites of a simulated year.
type calendar struct {
	*job
	phases                           map[string][]phase
	kept                             map[string]string // metadata by key
	visits, requests, walls, content int
}

// now is the state of a site on a day. What the site was before is told for less than four weeks.
func (c *calendar) now(name string, day int) state {
	i := slices.IndexFunc(c.phases[name], func(p phase) bool { return day < p.until })
	s := c.phases[name][i].state
	if i > 0 && day-(c.phases[name][i-1].until+6)/7*7 >= 28 {
		s.site, s.lost = "", ""
	}
	return s
}

// visit runs the job once, and compares the rows for a raw file, the counts and the requests with the states of a day.
func (c *calendar) visit(day int, raw string) {
	t := c.t
	t.Helper()
	robots, sitemaps := int64(0), int64(0)
	c.web.ResetLog()
	total := c.run()
	c.visits++
	asked := map[string]int{}
	for _, r := range c.web.Requests() {
		for name := range c.phases {
			if r.Host == name || strings.HasSuffix(r.Host, "."+name) {
				asked[name]++
			}
		}
	}
	for name := range c.phases {
		s, when := c.now(name, day), fmt.Sprintf("day %d, %s", day, name)
		m := c.metadata(raw, name)
		s.check(t, when, m)
		assert.True(t, c.exists(out(raw, name, "robots.txt")) == m.Robots.Exists && c.exists(out(raw, name, "sitemap.xml")) == m.Sitemap.Exists,
			"%s: the evidence is not that of this visit", when)
		assert.Equal(t, s.requests, asked[name], when)
		c.requests += asked[name]
		for _, kind := range []string{m.Robots.Kind, m.Sitemap.Kind} { // those that check expects
			if answer.Kind(kind).Wall() {
				c.walls++
			} else if kind != "" {
				c.content++
			}
		}
		if s.robots == "robots" {
			robots++
		}
		if s.parsed {
			sitemaps++
		}
		c.kept[out(raw, name, hive.Metadata)] = string(c.read(out(raw, name, hive.Metadata)))
	}
	if n := total.Counts; n["robots_found"] != robots || n["sitemaps_found"] != sitemaps || n["domains_collected"] != int64(len(c.phases)) {
		t.Errorf("day %d: %v, want %d robots.txt and %d sitemaps", day, n, robots, sitemaps)
	}
}

// again visits the sites of a raw file that was done, by force or because blocks.com refused when it was forced.
func (c *calendar) again(day int, raw string, force bool) {
	t := c.t
	t.Helper()
	before := c.metadata(raw, "blocks.com")
	visited, stays := int64(1), c.now("blocks.com", day).site != ""
	if force {
		c.cfg.ForceID, c.cfg.Files, visited = fmt.Sprint("force-", day), []string{raw}, int64(len(c.phases))
	}
	c.web.ResetLog()
	began := c.clock.Now()
	n := c.run().Counts
	c.visits++
	c.cfg.ForceID, c.cfg.Files = "", nil
	held := int64(0)
	if m := c.metadata(raw, "blocks.com"); stays {
		held = 1
		if before.Site == nil {
			since, err := time.Parse(time.RFC3339, m.Site.Since)
			must(t, err)
			assert.True(t, !since.Before(began) && !since.After(c.clock.Now()), "day %d: since %s", day, since)
			before.Site = &metadata.Site{State: "blocked", Since: m.Site.Since, Lost: []string{"robots", "sitemap"}, Cause: "blocks.com answers with a challenge for bots"}
		}
		if want, err := metadata.Marshal(before); err != nil || string(want) != string(c.read(out(raw, "blocks.com", hive.Metadata))) || !c.exists(out(raw, "blocks.com", "sitemap.xml")) {
			t.Errorf("day %d: the row became %s, want %s, %v", day, c.read(out(raw, "blocks.com", hive.Metadata)), want, err)
		}
		events := c.events("site_not_open")
		assert.True(t, len(events) == 1 && events[0]["site"] == "blocks.com", "day %d: %v", day, events)
	} else {
		c.now("blocks.com", day).check(t, fmt.Sprint("day ", day), m)
	}
	if n["domains_held"] != held || n["domains_collected"] != visited-held || n["domains_failed"] != 0 || c.exists(raw+hive.Success) == stays {
		t.Errorf("day %d: %v", day, n)
	}
	assert.Equal(t, c.now("blocks.com", day).requests, len(c.asked("blocks.com")), "day %d", day)
	for name := range c.phases {
		c.kept[out(raw, name, hive.Metadata)] = string(c.read(out(raw, name, hive.Metadata)))
	}
}

// A year in which sites block, lose a certificate, move to another host, park, die and come back. Runs look for raw files once a
// day, and one comes each week: a site is visited for each of them once, and again only by force, and after that until it is open.
func TestYear(t *testing.T) {
	year := time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)
	phases, other := yearOf()
	c := &calendar{job: newJob(t, refusing), phases: phases, kept: map[string]string{}}
	c.clock = politetest.At(year)
	records := []string{"https://docs.manual.com/start"}
	for name := range phases {
		if name != "manual.com" {
			records = append(records, "https://"+name+"/news")
		}
	}
	raw := func(day int) string {
		return "datasets/country=sg/category=news/date=" + year.AddDate(0, 0, day).Format(time.DateOnly) + "/raw_0001.json"
	}
	for day := range 365 {
		for name := range phases {
			c.play(name, other[name], c.now(name, day))
		}
		if day%7 == 0 {
			c.put(raw(day), rawFile(records...))
		}
		open, err := seed.ListRaw(t.Context(), c.store, c.cfg)
		must(t, err)
		switch due := len(open.Files) > 0; {
		case day == 65, day == 66, day == 67: // a row of a good week stays while the site refuses, and is good again by itself
			c.again(day, raw(56), day == 65)
		case due != (day%7 == 0):
			t.Fatalf("day %d: %d files are open", day, len(open.Files))
		case due:
			c.visit(day, raw(day))
		}
		if day == 63 {
			c.changes(t, map[string]string{"blocks.com": "robots.txt: 200, 0 sitemaps -> 403; sitemap: 200, urlset -> http_403"})
		}
		c.clock.Advance(24 * time.Hour)
	}
	for key, document := range c.kept { // a later visit for another date changes nothing
		assert.Equal(t, document, string(c.read(key)), "%s became", key)
	}
	assert.Empty(t, c.deadLetters())
	if want := [2]int{88, 1004}; want != [2]int{c.walls, c.content} { // these figures are in docs/operations.md
		t.Errorf("%d walls and %d other answers, want %d", c.walls, c.content, want)
	}
	t.Logf("%d runs with visits, %d sites, %d requests, %d walls, %d other answers", c.visits, len(phases), c.requests, c.walls, c.content)
}

// changes compares what changed between the two newest dates.
func (j *job) changes(t *testing.T, want map[string]string) {
	t.Helper()
	for c, err := range seed.Changes(t.Context(), j.store, seed.Filter{}) {
		must(t, err)
		assert.Equal(t, want[c.RegistrableDomain], c.What, "%s: %s", c.RegistrableDomain, c.Kind)
		delete(want, c.RegistrableDomain)
	}
	assert.LessOrEqual(t, len(want), 0, "no change: %q", want)
}
