package seed_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
)

// row is the result of a domain as exports have it.
func (j *job) row(name, date string) (found seed.Domain) {
	j.t.Helper()
	n := 0
	for d, err := range seed.Domains(j.t.Context(), j.store, seed.Filter{Date: date}) {
		must(j.t, err)
		if d.RegistrableDomain == name {
			found, n = d, n+1
		}
	}
	require.Equal(j.t, 1, n)
	return found
}

// A good row stays while its site shows a wall or nothing, in both layouts. The next run requests it again.
func TestGoodRowStays(t *testing.T) {
	good := pages(map[string]string{"/robots.txt": "User-agent: *\nDisallow: /private\n", "/sitemap.xml": urlset(2)})
	bare := pages(map[string]string{"/robots.txt": "User-agent: *\nDisallow: /private\n"})
	for name, c := range map[string]struct {
		now     http.Handler // nil: the host refuses connections
		state   string       // "": the row is replaced
		lost    string
		packed  bool
		flicker bool // it is forced once more while the site is not open
	}{
		"a challenge":        {now: wall(403, "cf-mitigated: challenge", captcha), state: "blocked", lost: "robots sitemap"},
		"packed":             {now: wall(403, "cf-mitigated: challenge", captcha), state: "blocked", lost: "robots sitemap", packed: true, flicker: true},
		"a page that is one": {now: wall(200, "", captcha), state: "blocked", lost: "robots sitemap", packed: true, flicker: true},
		"403":                {now: wall(403, "", "no"), state: "blocked", lost: "robots sitemap", flicker: true},
		"maintenance":        {now: wall(503, "", "<title>Under maintenance</title>"), state: "down", lost: "robots sitemap"},
		"the sitemap alone":  {now: behind("/sitemap.xml", wall(403, "", "no"), bare), state: "blocked", lost: "sitemap", packed: true},
		"robots.txt alone":   {now: behind("/robots.txt", wall(200, "", captcha), good), state: "blocked", lost: "robots"},
		"no answer":          {state: "down", lost: "robots sitemap", packed: true},
		"nothing there":      {now: http.NotFoundHandler(), state: "closed", lost: "robots sitemap", packed: true},
		"no robots.txt more": {now: pages(map[string]string{"/sitemap.xml": urlset(3)})},
		"no sitemap more":    {now: bare, packed: true},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, refusing)
			j.clock = politetest.At(time.Now())
			if c.packed {
				j.cfg.Layout = seed.Table
			}
			play := func(h http.Handler) {
				if h == nil {
					j.web.Become("site.com", webtest.KindRefused)
					return
				}
				j.web.Handle("site.com", h)
			}
			j.web.Handle("other.com", good)
			j.put(raw, rawFile("https://site.com/", "https://other.com/"))
			play(good)
			j.run()
			before := j.row("site.com", "")
			require.Empty(t, before.SiteState)

			play(c.now)
			force := func() ledger.Counts {
				j.cfg.ForceID = "force"
				defer func() { j.cfg.ForceID = "" }()
				return j.run().Counts
			}
			n := force()
			now := j.row("site.com", "")
			require.Equal(t, c.state, now.SiteState)
			require.Equal(t, c.lost, now.SiteLost)
			if c.state == "" {
				require.NotEqual(t, before.CollectedAt, now.CollectedAt)
				require.EqualValues(t, 2, n["domains_collected"])
				require.True(t, j.exists(raw+".success"))
				return
			}
			held := func(n ledger.Counts, collected int64) {
				t.Helper()
				now = j.row("site.com", "")
				since := now.SiteSince
				require.Equal(t, c.state, now.SiteState)
				now.SiteState, now.SiteSince, now.SiteLost, now.Document = "", "", "", before.Document
				require.Equal(t, before, now)
				require.NotEmpty(t, since)
				require.Equal(t, [3]int64{1, collected, 0}, [3]int64{n["domains_held"], n["domains_collected"], n["domains_failed"]})
				require.Len(t, j.events("site_not_open"), 1)
				require.False(t, j.exists(raw+".success"))
				st, err := ledger.ReadSite(t.Context(), j.store, seed.Job, "site.com")
				must(t, err)
				require.Equal(t, c.state, st.State)
				require.NotEmpty(t, st.Cause)
			}
			held(n, 1)
			if c.flicker {
				j.cfg.ForceID = "another"
				n = j.run().Counts
				j.cfg.ForceID = ""
				held(n, 1)
			}
			held(j.run().Counts, 0)
			if c.packed {
				rows, evidence := j.rows()
				last := len(rows) - 1
				for ; rows[last].RegistrableDomain != "site.com"; last-- {
				}
				require.Equal(t, map[string]string{"robots.txt": "User-agent: *\nDisallow: /private\n", "sitemap.xml": urlset(2)}, evidence[last])
			} else {
				require.Equal(t, urlset(2), string(j.read(out(raw, "site.com", "sitemap.xml"))))
			}

			play(good)
			n = j.run().Counts
			now = j.row("site.com", "")
			require.Empty(t, now.SiteState)
			require.True(t, now.CollectedAt.After(before.CollectedAt))
			require.EqualValues(t, 1, n["domains_collected"])
			require.True(t, j.exists(raw+".success"))
			st, err := ledger.ReadSite(t.Context(), j.store, seed.Job, "site.com")
			must(t, err)
			require.Equal(t, ledger.SiteOpen, st.State)
			require.Equal(t, c.state, st.History[0].State)
			require.Zero(t, j.run().Counts["files_read"])

			_, err = seed.Purge(t.Context(), j.store, "purge", []string{"site.com"})
			must(t, err)
			require.Empty(t, j.objects("sites/seed/"))
		})
	}
}

// A packed row that stays is as it was while its segment cannot be read, which is a dead letter.
func TestKeptRowOfADamagedSegment(t *testing.T) {
	j := newJob(t, refusing)
	j.cfg.Layout = seed.Table
	j.put(raw, rawFile("https://site.com/"))
	j.web.Handle("site.com", pages(map[string]string{"/robots.txt": "User-agent: *\n"}))
	j.run()
	before, p := j.row("site.com", ""), j.parts()[0]
	key := domaintable.Root + p.Evidence()
	records := string(j.read(key))
	j.put(key, "damaged")
	j.web.Handle("site.com", wall(403, "", "no"))
	j.cfg.ForceID = "force"
	require.EqualValues(t, 1, j.run().Counts["domains_held"])
	require.Equal(t, before, j.row("site.com", ""))
	letters := j.deadLetters()
	require.Len(t, letters, 1)
	require.Equal(t, p.Key(), letters[0].Input.Key)
	j.put(key, records)
	require.EqualValues(t, 1, j.run().Counts["domains_held"])
	require.Equal(t, "blocked", j.row("site.com", "").SiteState)
	require.Empty(t, j.deadLetters())
}

// A forced run replaces a row that cannot be read, or that is not there, whatever the site answers.
func TestUnreadableRowIsReplaced(t *testing.T) {
	j := newJob(t, refusing)
	j.put(raw, rawFile("https://old.com/", "https://none.com/", "https://since.com/"))
	for _, name := range []string{"old.com", "none.com", "since.com"} {
		j.web.Handle(name, wall(403, "", "no"))
		j.put(out(raw, name, "domain_metadata.json.success"), "")
	}
	j.put(out(raw, "old.com", "domain_metadata.json"), `{"robots":{}}`)
	j.put(out(raw, "since.com", "domain_metadata.json"),
		`{"registrable_domain":"since.com","collected_at":"2026-01-01T00:00:00Z","robots":{"exists":true},"site":{"state":"blocked","since":"x"}}`)
	j.cfg.ForceID = "force"
	n := j.run().Counts
	require.Equal(t, [3]int64{0, 3, 0}, [3]int64{n["domains_held"], n["domains_collected"], n["domains_failed"]})
	require.Empty(t, j.objects("dead-letters/"))
	require.EqualValues(t, 403, j.row("old.com", "").RobotsLast)
	require.Empty(t, j.row("since.com", "").SiteState)
}

// After four weeks the site is believed.
func TestWallIsBelieved(t *testing.T) {
	j := newJob(t, refusing)
	j.clock = politetest.At(time.Now())
	j.put(raw, rawFile("https://site.com/"))
	j.web.Handle("site.com", pages(map[string]string{"/robots.txt": "User-agent: *\n"}))
	j.run()
	j.web.Handle("site.com", wall(200, "", forSale))
	j.cfg.ForceID = "force"
	j.run()
	j.cfg.ForceID = ""
	for d := range 27 {
		j.clock.Advance(24 * time.Hour)
		require.EqualValues(t, 1, j.run().Counts["domains_held"], "day %d", d+1)
	}
	j.clock.Advance(24 * time.Hour)
	require.EqualValues(t, 1, j.run().Counts["domains_collected"])
	m := j.metadata(raw, "site.com")
	require.Nil(t, m.Site)
	require.Equal(t, "parked", m.Robots.Kind)
	require.True(t, j.exists(raw+".success"))
}

// The first row of a date says since when the site is not open, in both layouts.
func TestNewDateSaysThatASiteIsNotOpen(t *testing.T) {
	for _, layout := range []seed.Layout{seed.Objects, seed.Table} {
		j := newJob(t, refusing)
		j.clock = politetest.At(time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC))
		j.cfg.Layout = layout
		date := func() string { return j.clock.Now().Format(time.DateOnly) }
		visit := func(hosts ...string) ledger.Counts {
			j.put("datasets/country=sg/category=news/date="+date()+"/raw_0001.json", rawFile(hosts...))
			return j.run().Counts
		}
		good := pages(map[string]string{"/robots.txt": "User-agent: *\n"})
		j.web.Handle("site.com", good)
		j.web.Handle("first.com", wall(403, "", "no"))
		visit("https://site.com/", "https://first.com/")
		require.Empty(t, j.row("first.com", date()).SiteState, "nothing was known of it")

		since := ""
		for d := range 2 {
			j.clock.Advance(24 * time.Hour)
			visit("https://other.com/") // a date without it
			j.clock.Advance(24 * time.Hour)
			j.web.Handle("site.com", wall(403, "", "no"))
			n := visit("https://site.com/", "https://first.com/")
			require.EqualValues(t, 1, n["results_not_open"])
			require.EqualValues(t, 1, n["files_completed"])
			now := j.row("site.com", date())
			require.Equal(t, "blocked", now.SiteState)
			require.Equal(t, "robots", now.SiteLost, "it had no sitemap")
			require.EqualValues(t, 403, now.RobotsStatus, "the row is what answered")
			if d == 0 {
				since = now.SiteSince
				require.Equal(t, date(), since[:10])
			}
			require.Equal(t, since, now.SiteSince)
			require.Empty(t, j.row("first.com", date()).SiteState)
			require.Len(t, j.events("site_not_open"), 1)
		}
		j.clock.Advance(24 * time.Hour)
		j.web.Handle("site.com", good)
		visit("https://site.com/")
		require.Empty(t, j.row("site.com", date()).SiteState)
	}
}
