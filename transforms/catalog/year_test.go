package catalog

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
)

// bazaar is a shop of 24 products, six on a list page, that a test changes between crawls.
type bazaar struct {
	mu      sync.Mutex
	perPage int // 0: six
	listed  []int
	sold    map[int]bool     // their pages answer 404
	all     http.HandlerFunc // answers in place of everything but robots.txt
	repeats bool             // a page beyond the end repeats the last one
	pager   bool             // the list says its last page
	extra   string           // more links on the first page
	failing string           // a path that answers 403

	requests, lists, items int
}

const bazaarSite = `name: shop
key: id
fields: {id: {selector: "#id"}}
list: {url: "https://shop.example/l/{page}", product_link: {selector: a.p}, until_empty: true, total: {selector: .total}}
`

func numbers(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

func (s *bazaar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	n, _ := strconv.Atoi(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	list, item := strings.HasPrefix(r.URL.Path, "/l/"), strings.HasPrefix(r.URL.Path, "/p/")
	if list {
		s.lists++
	} else if item {
		s.items++
	}
	switch {
	case r.URL.Path == "/robots.txt":
		http.NotFound(w, r)
	case s.all != nil:
		s.all(w, r)
	case r.URL.Path == s.failing:
		w.WriteHeader(http.StatusForbidden)
	case item && !s.sold[n]:
		_, _ = fmt.Fprintf(w, "<p id=id>K%02d", n)
	case list:
		size := cmp.Or(s.perPage, 6)
		last := (len(s.listed) + size - 1) / size
		if s.repeats {
			n = min(n, last)
		}
		for _, p := range s.listed[min(size*n-size, len(s.listed)):min(size*n, len(s.listed))] {
			_, _ = fmt.Fprintf(w, "<a class=p href=/p/%d>x</a>", p)
		}
		_, _ = fmt.Fprintf(w, "<b class=total>%d products</b>", len(s.listed))
		if n == 1 {
			_, _ = fmt.Fprint(w, s.extra)
		}
		if s.pager {
			_, _ = fmt.Fprintf(w, "<a class=last>%d</a>", last)
		}
	default:
		http.NotFound(w, r)
	}
}

func answerWith(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}
}

// stored is the data of a site: its products, and those that are gone.
func (j *job) stored() (all, gone []string) {
	j.t.Helper()
	var err error
	all, err = db.Texts(j.t.Context(), j.db, `SELECT product_key || ' ' || url || ' ' || detail FROM catalog_products ORDER BY product_key`)
	require.NoError(j.t, err)
	gone, err = db.Texts(j.t.Context(), j.db, `SELECT product_key FROM catalog_products WHERE state = 'gone' ORDER BY product_key`)
	require.NoError(j.t, err)
	return all, gone
}

// TestYear follows a shop for a year. Whatever it shows, its products stay until they are really gone, each cause is one
// alert in each run, and the shop gets few requests while it is not open.
func TestYear(t *testing.T) {
	t.Parallel()
	s := &bazaar{}
	j := newSite(t, bazaarSite, s.ServeHTTP)
	start := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	clock := politetest.At(start)
	opened, closed, requests := 0, 0, 0
	shop := func(from, to int) {
		s.listed, s.sold = numbers(from, to), map[int]bool{}
	}
	// day crawls once on a day of the year, and returns the alerts.
	day := func(n int) (alerts []string) {
		t.Helper()
		clock.Advance(start.AddDate(0, 0, n).Sub(clock.Now()))
		s.requests = 0
		cfg := j.config()
		v := j.visitOf(cfg, cfg.Sites[0])
		began := time.Now() // a task waits for its next try by the real clock
		v.w.Pacer.Clock, v.clock = clock.Polite(), func() time.Time { return clock.Now().Add(time.Since(began)) }
		v.count = func(tally ledger.Tally) {
			for _, w := range tally.Warnings {
				alerts = append(alerts, w.Kind)
			}
		}
		require.NoError(t, v.run(t.Context()), "day %d", n)
		requests += s.requests
		sites, err := ledger.Sites(t.Context(), j.store, Job)
		require.NoError(t, err)
		report := ledger.Report{RunID: cfg.Lane.RunID}
		report.AddSites(sites)
		return append(alerts, report.Alerts...)
	}
	shop(1, 24)
	require.Empty(t, day(0))
	whole, _ := j.stored()
	require.Len(t, whole, 24)
	gone := []string{}
	// open crawls a day on which the site is open: 24 products, five list pages and robots.txt, and at most more.
	open := func(n, more int) {
		t.Helper()
		require.Empty(t, day(n), "day %d", n)
		require.LessOrEqual(t, s.requests, 1+5+24+more, "day %d", n)
		opened++
		all, now := j.stored()
		require.Equal(t, whole, all, "day %d", n)
		require.Equal(t, gone, append([]string{}, now...), "day %d", n)
	}
	// bad crawls some days on which it is not.
	bad := func(from, days int, state, cause string, requests int, all http.HandlerFunc) {
		t.Helper()
		for n := range days {
			s.all = all
			alerts := day(from + n)
			require.Len(t, alerts, 1, "day %d", from+n)
			require.Contains(t, alerts[0], cause, "day %d", from+n)
			require.Equal(t, state, j.state()[0])
			closed++
			require.LessOrEqual(t, s.requests, requests, "day %d", from+n)
			all, now := j.stored()
			require.Equal(t, whole, all, "day %d", from+n)
			require.Equal(t, gone, append([]string{}, now...), "day %d", from+n)
		}
		s.all = nil
	}
	open(3, 0)
	bad(7, 7, "blocked", "shop.example refuses (403 for 1 of 1 seeds", 7, answerWith(403, "no"))
	open(14, 0)
	bad(21, 2, "blocked", "answers with a challenge for bots (Cloudflare)", 7, answerWith(200, `<html><head><title>Just a moment...</title></head><body><h1>shop.example</h1><script src="/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1"></script></body></html>`))
	open(23, 0)
	bad(30, 2, "moved", "shop.example moved to new.example: change list.url", 7, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://new.example"+r.URL.Path, http.StatusMovedPermanently)
	})
	open(32, 0)
	bad(40, 2, "closed", "shop.example has nothing that was there (404", 7, answerWith(404, "nothing"))
	bad(42, 1, "closed", "is parked", 7, answerWith(200, "<title>shop.example is for sale</title><h1>shop.example is for sale</h1><p>Buy this domain.</p>"))
	open(43, 0)
	s.listed = numbers(1, 19) // a fifth is hidden for an hour
	open(50, 5)
	shop(1, 24)
	open(51, 0)
	s.listed = numbers(1, 12) // half of the list, for two days
	bad(60, 2, "thin", "shop.example lists much less than it did: 12, 24 before", 1+2*3+12, nil)
	shop(1, 24)
	open(62, 0)
	bad(70, 1, "down", "503 for 1 of 1 seeds", 1+3*6, answerWith(503, "busy"))
	open(71, 0)
	s.repeats = true
	open(80, 3)
	s.repeats = false
	bad(90, 2, "blocked", "shows a consent page in place of its pages", 7, answerWith(200, `<html><head><title>Before you continue</title></head><body><form action="https://consent.example.com/save"><h1>Before you continue</h1><p>We use cookies. Accept all cookies to continue to the site.</p><button>Accept all</button><button>Reject all</button></form></body></html>`))
	open(92, 0)

	shop(1, 12) // half of the products are sold
	for n := 13; n <= 24; n++ {
		s.sold[n] = true
		gone = append(gone, fmt.Sprintf("K%02d", n))
	}
	sold := gone
	gone = []string{}
	bad(100, 2, "thin", "lists much less", 1+2*3+12, nil)
	require.Equal(t, []string{"list_shorter"}, day(102), "in the third run the list is believed")
	gone = sold
	open(103, 0)
	shop(1, 24)
	gone = []string{}
	open(110, 0)

	s.listed = numbers(1, 22) // two are no longer listed, but their pages stay
	for n := 120; n < 126; n++ {
		open(n, 2)
	}
	gone = []string{"K23", "K24"}
	open(127, 2)
	shop(1, 24)
	gone = []string{}
	for n := 133; n < 365; n += 7 {
		open(n, 0)
	}
	st, err := ledger.ReadSite(t.Context(), j.store, Job, "shop")
	require.NoError(t, err)
	was := []string{st.State}
	for _, c := range st.History {
		was = append(was, c.State)
	}
	slices.Reverse(was)
	require.Equal(t, []string{"open", "blocked", "open", "blocked", "open", "moved", "open", "closed", "open", "thin", "open", "down", "open", "blocked", "open", "thin", "open"}, was)
	require.Equal(t, [2]int{54, 21}, [2]int{opened, closed}) // and two more: these figures are in docs/operations.md
	t.Logf("%d crawls of an open shop, %d of one that is not, %d requests", opened, closed, requests)
}

// A run that is killed while it reads the list a second time, or while it requests the pages of products that the list
// does not name, is resumed: what is there is not gone, and what is sold is.
func TestKilledWhileItDoubts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listed, back int  // on the day of the kill, and in the run after it
		sold         bool // what is not listed then
		requests     int  // of the run without a kill
		state        string
		gone         int
	}{
		"second reading, the list is whole again":   {12, 24, false, 1 + 2*3 + 12, "open", 0},
		"second reading, the list stays":            {12, 12, false, 1 + 2*3 + 12, "thin", 0},
		"missing products that are there":           {19, 19, false, 1 + 5 + 24, "open", 0},
		"missing products that are sold":            {19, 19, true, 1 + 5 + 24, "open", 5},
		"missing products, the list is whole again": {19, 24, false, 1 + 5 + 24, "open", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for killed := c.requests - 4; killed <= c.requests; killed++ { // in the last requests
				s := &bazaar{listed: numbers(1, 24)}
				var kill func()
				j := newSite(t, bazaarSite, func(w http.ResponseWriter, r *http.Request) {
					s.ServeHTTP(w, r)
					s.mu.Lock()
					defer s.mu.Unlock()
					if kill != nil && s.requests == killed {
						kill()
					}
				})
				j.cfg.ListFetchers, j.cfg.DetailFetchers = 1, 1
				j.run()
				s.listed, s.sold = numbers(1, c.listed), map[int]bool{}
				for n := c.listed + 1; c.sold && n <= 24; n++ {
					s.sold[n] = true
				}
				ctx, cancel := context.WithCancel(t.Context())
				s.requests, kill = 0, cancel
				cfg := j.config()
				if err := j.visitOf(cfg, cfg.Sites[0]).run(ctx); err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
				cancel()
				require.Equal(t, killed, s.requests)
				_, gone := j.stored()
				require.Empty(t, gone, "killed at request %d", killed)
				require.Positive(t, j.left())

				kill, s.requests, s.listed = nil, 0, numbers(1, c.back)
				cfg = j.config()
				require.NoError(t, j.visitOf(cfg, cfg.Sites[0]).run(t.Context()))
				_, gone = j.stored()
				require.Len(t, gone, c.gone, "killed at request %d", killed)
				require.Equal(t, c.state, j.state()[0], "killed at request %d", killed)
				require.LessOrEqual(t, s.requests, 1+2*5+24)
				require.Zero(t, j.left())
			}
		})
	}
}

// A site that begins to refuse in the middle of a crawl gets few more requests, and loses nothing: the next run asks only for
// what is left. What answered 404 meanwhile is requested again, too.
func TestSiteThatRefusesInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known  bool // a crawl was before
		answer http.HandlerFunc
		left   int // requests of the next run at most
	}{
		"403, the first crawl": {false, answerWith(403, "no"), 1 + 1 + 60 - 30},
		"403":                  {true, answerWith(403, "no"), 1 + 1 + 60 - 30},
		"404, then 403":        {true, answerWith(403, "no"), 1 + 1 + 60 - 25},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &bazaar{listed: numbers(1, 60), sold: map[int]bool{}}
			j := newSite(t, bazaarSite, func(w http.ResponseWriter, r *http.Request) {
				s.mu.Lock()
				if c.answer != nil && s.requests == 1+11+30 {
					s.all = c.answer
				}
				s.mu.Unlock()
				s.ServeHTTP(w, r)
			})
			j.cfg.ListFetchers, j.cfg.DetailFetchers = 1, 1
			answer := c.answer
			if c.known {
				c.answer = nil
				j.run()
				c.answer = answer
			}
			if strings.HasPrefix(name, "404") {
				s.sold = map[int]bool{11: true, 22: true, 33: true}
			}
			s.requests = 0
			total := j.run()
			require.Equal(t, map[string]int64{"products_gone": 0, "failed_tasks": 0, "sites_failed": 0, "dead_letters": 0},
				counted(total, "products_gone", "failed_tasks", "sites_failed", "dead_letters"))
			require.Equal(t, "blocked", j.state()[0])
			require.LessOrEqual(t, s.requests, 1+11+30+25, "refusals")
			s.requests, s.all, s.sold, c.answer = 0, nil, map[int]bool{}, nil
			total = j.run()
			require.Equal(t, "open", j.state()[0])
			require.LessOrEqual(t, s.requests, c.left+j.cfg.DetailParsers, "pages that were not read when the crawl stopped are requested again")
			all, gone := j.stored()
			require.Len(t, all, 60)
			require.Empty(t, gone)
			require.Empty(t, j.deadLetters())
			require.Zero(t, j.left())
			require.Zero(t, total.Counts["products_missing"])
		})
	}
}
