package catalog

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

// shop is a site whose pages a test writes itself.
type shop struct {
	*job
	mu    sync.Mutex
	pages map[string]string // by path; "" answers 404
}

const shopFile = `
name: shop
list: {url: "https://shop.example/", product_link: {selector: a.p}}
key: id
fields:
  id: {selector: "#id"}
  price: {selector: .price, type: number}
  label: {selector: .label, optional: true}
  offer: {selector: .offer, volatile: true}
`

func newShop(t *testing.T, dsn, file string) *shop {
	t.Helper()
	s := &shop{job: newJob(t, dsn, webtest.Options{}), pages: map[string]string{}}
	site, err := ParseSite([]byte(file))
	require.NoError(t, err)
	s.cfg.Sites = []Site{site}
	s.cfg.DetailFetchers, s.cfg.Lane.Polite.HostDelay = 1, time.Millisecond // one page after the other
	s.web.Handle("shop.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		text, ok := s.pages[r.URL.RequestURI()]
		s.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, text)
	}))
	return s
}

// lay writes the list and the pages of n products, each by page.
func (s *shop) lay(n int, page func(i int) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = map[string]string{"/robots.txt": ""}
	var list strings.Builder
	for i := range n {
		path := fmt.Sprintf("/p/%02d", i)
		fmt.Fprintf(&list, "<a class=p href=%s>x</a>", path)
		if text := page(i); text != "" {
			s.pages[path] = text
		}
	}
	s.pages["/"] = list.String()
}

func whole(i int) string {
	return fmt.Sprintf("<p id=id>K%02d<p class=price>%d.50<p class=label>L%d<p class=offer>O", i, i+1, i)
}

func (s *shop) one(query string, args ...any) (out string) {
	s.t.Helper()
	require.NoError(s.t, s.db.QueryRowContext(context.Background(), query, args...).Scan(&out), query)
	return out
}

// state is what the latest run said about the site, and its cause.
func (j *job) state() []string {
	j.t.Helper()
	st, err := ledger.ReadSite(j.t.Context(), j.store, Job, "shop")
	require.NoError(j.t, err)
	return []string{st.State, st.Cause}
}

func (s *shop) kinds() (kinds []string) {
	for _, l := range s.deadLetters() {
		kinds = append(kinds, l.Kind)
	}
	return kinds
}

func eachDB(t *testing.T, test func(t *testing.T, dsn string)) {
	eachDBs(t, func(t *testing.T, dsn func(testing.TB) string) { test(t, dsn(t)) })
}

// eachDBs is for tests that need several databases of a kind.
func eachDBs(t *testing.T, test func(t *testing.T, dsn func(testing.TB) string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, dbtest.SQLite) })
	t.Run("postgres", func(t *testing.T) { test(t, dbtest.Postgres) })
}

// A page in place of robots.txt has no rules, and its site is crawled. Behind a challenge it is not known what the site allows.
func TestPageForRobots(t *testing.T) {
	for name, c := range map[string]struct {
		body, state string
		requests    int
	}{
		"challenge": {`<html><head><title>Just a moment...</title></head><body><div id="challenge-error-text">Enable JavaScript and cookies to continue</div><script src="/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1"></script></body></html>`, "blocked", 1},
		"page":      {`<!doctype html><html><head><title>Shop</title></head><body><h1>Shop</h1><p>Many things</p></body></html>`, ledger.SiteOpen, 5},
		"error":     {`<html><head><title>500 Internal Server Error</title></head><body><h1>500 Internal Server Error</h1></body></html>`, ledger.SiteOpen, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, dbtest.SQLite(t), shopFile)
			s.lay(3, whole)
			s.pages["/robots.txt"] = c.body
			s.run()
			assert.Len(t, s.asked("shop.example"), c.requests)
			assert.Equal(t, c.state, s.state()[0])
		})
	}
}

// When a field stops matching, nothing is overwritten, the site's crawl stops after a few
// pages, and the run after the correction resumes it.
func TestLayoutBreakErasesNothing(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		for name, broken := range map[string]func(i int) string{
			"a required field": func(i int) string { return strings.ReplaceAll(whole(i), "class=price", "class=cost") + "<!-- -->" },
			"an optional field that was filled": func(i int) string {
				return strings.ReplaceAll(strings.ReplaceAll(whole(i), "class=label", "class=tag"), ".50", ".99")
			},
			"a value that cannot be read any more": func(i int) string { return strings.ReplaceAll(whole(i), ".50", ".500") },
			"the key":                              func(i int) string { return strings.ReplaceAll(whole(i), "id=id", "id=sku") },
		} {
			t.Run(name, func(t *testing.T) {
				if strings.HasPrefix(dsn, "postgres") {
					if name != "a required field" {
						return
					}
				} else {
					dsn = ""
				}
				s := newShop(t, dsn, shopFile)
				s.cfg.QueueLength, s.cfg.DetailParsers = 1, 1
				s.lay(30, whole)
				first := s.run()
				require.EqualValues(t, 30, first.Counts["products_new"])
				before := s.products("shop")

				s.lay(30, broken)
				s.web.ResetLog()
				total := s.run()
				assert.Equal(t, map[string]int64{"sites": 1, "sites_failed": 1, "sites_held": 1}, counted(total, "sites", "sites_failed", "sites_held"))
				assert.Less(t, total.Counts["products_saved"], int64(minBreak), "the alarm is at once")
				assert.Less(t, len(s.asked("shop.example")), 2+minBreak+8)
				now := s.products("shop")
				for key, row := range before {
					for field, v := range row.Detail {
						if field == "price" && name == "an optional field that was filled" {
							continue // it was read well
						}
						assert.Equal(t, v, now[key].Detail[field], "%s of %s", field, key)
					}
				}
				assert.Contains(t, s.kinds(), "layout_break")
				assert.Positive(t, s.left(), "what is queued is kept")

				s.web.ResetLog()
				again := s.run()
				assert.EqualValues(t, 1, again.Counts["sites_held"], "held again while it is broken")
				assert.Less(t, len(s.asked("shop.example")), 2+minBreak+8)

				s.lay(30, whole)
				mended := s.run()
				assert.Zero(t, mended.Counts["sites_failed"])
				assert.NotContains(t, s.kinds(), "layout_break")
				assert.Len(t, s.products("shop"), 30)
				assert.Zero(t, s.left())
			})
		}
	})
}

// A page that lacks a value does not erase the stored one, which is then shown as an
// earlier value. A volatile value is removed. The changes can be looked up.
func TestMissingValueStaysAndChangesAreKept(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		s := newShop(t, dsn, shopFile)
		s.lay(8, whole)
		s.run()
		s.lay(8, func(i int) string {
			switch i {
			case 1:
				return "<p id=id>K01<p class=label>new<p class=offer>O" // no price
			case 2:
				return strings.ReplaceAll(whole(2), "<p class=label>L2", "") // no label any more
			case 3:
				return strings.ReplaceAll(whole(3), "<p class=offer>O", "") // the offer is over
			case 4:
				return strings.ReplaceAll(whole(4), "5.50", "1.299") // two readings
			}
			return whole(i)
		})
		total := s.run()
		now := s.products("shop")
		assert.Equal(t, map[string]any{"id": "K01", "price": 2.5, "label": "new", "offer": "O"}, now["K01"].Detail)
		assert.Equal(t, map[string]any{"id": "K02", "price": 3.5, "label": "L2", "offer": "O"}, now["K02"].Detail)
		assert.Equal(t, map[string]any{"id": "K03", "price": 4.5, "label": "L3"}, now["K03"].Detail)
		assert.Equal(t, 5.5, now["K04"].Detail["price"])
		assert.Contains(t, s.one(`SELECT kept FROM catalog_products WHERE product_key = 'K01'`), `"price":`)
		assert.Equal(t, "{}", s.one(`SELECT kept FROM catalog_products WHERE product_key = 'K03'`))
		assert.Equal(t, map[string]int64{"products_saved": 8, "products_changed": 2, "products_unchanged": 6, "failed_tasks": 0, "sites_held": 0},
			counted(total, "products_saved", "products_changed", "products_unchanged", "failed_tasks", "sites_held"))
		assert.Equal(t, []ledger.Warning{{Kind: "field_unreadable", Source: "shop", Field: "price", Count: 1}}, total.Warnings)
		assert.Equal(t, []string{"unreadable_field"}, s.kinds())
		assert.Contains(t, s.deadLetters()[0].Error, `"1.299": it may be 1.299 or 1299`)

		assert.Equal(t, `"L1" "new"`, s.one(`SELECT CAST(was AS TEXT) || ' ' || CAST(became AS TEXT) FROM catalog_changes WHERE product_key = 'K01' AND field = 'label'`))
		assert.Equal(t, `"O"`, s.one(`SELECT was FROM catalog_changes WHERE product_key = 'K03' AND field = 'offer' AND became IS NULL`))
		assert.Equal(t, "2", s.one(`SELECT count(*) FROM catalog_changes`))
		assert.Equal(t, "changed", s.one(`SELECT state FROM catalog_products WHERE product_key = 'K01'`))

		s.lay(8, whole)
		s.run()
		assert.Empty(t, s.kinds(), "a good page takes the dead letter away")
		assert.Equal(t, "{}", s.one(`SELECT kept FROM catalog_products WHERE product_key = 'K01'`))
		assert.Equal(t, "2", s.one(`SELECT count(*) FROM catalog_changes WHERE product_key = 'K01'`), "there and back")
	})
}

// A saver gathers products only while the pages are what the site's file says.
func TestSaverDoesNotGatherDoubtfulPages(t *testing.T) {
	v := &visit{layout: &layout{}}
	batch := func(whole, lacking int) (results []result) {
		for i := range whole + lacking {
			var p ProductDetail
			if i >= whole {
				p.lacks = []lack{{field: "price"}}
			}
			results = append(results, result{task: SaveProduct{ProductDetail: p}})
		}
		return results
	}
	assert.True(t, v.layout.enough(batch(1, 0)), "the first product")
	require.NoError(t, v.layout.keys(20, 0))
	assert.False(t, v.layout.enough(batch(19, 0)))
	assert.True(t, v.layout.enough(batch(20, 0)))
	assert.False(t, v.layout.enough(batch(5, minBreak-1)))
	assert.True(t, v.layout.enough(batch(5, minBreak)))
}

// Of two pages with one key the first that arrives is saved, and the second has a dead
// letter. If most pages share keys, the site's crawl stops.
func TestKeysThatCollide(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		s := newShop(t, dsn, shopFile)
		s.cfg.DetailParsers, s.cfg.Savers = 1, 1 // in the order of the pages
		s.lay(8, func(i int) string {
			switch i {
			case 5:
				return strings.ReplaceAll(whole(5), "K05", "K04") // another product
			case 6:
				return whole(3) // the same one under another address
			}
			return whole(i)
		})
		for range 2 {
			total := s.run()
			assert.Equal(t, map[string]int64{"products_saved": 6, "products_again": 1, "failed_tasks": 1, "sites_failed": 0},
				counted(total, "products_saved", "products_again", "failed_tasks", "sites_failed"))
			assert.Equal(t, []ledger.Warning{{Kind: "keys_collided", Source: "shop", Count: 1}}, total.Warnings)
			assert.Equal(t, []string{"key_collision"}, s.kinds())
			assert.Contains(t, s.deadLetters()[0].Error, "https://shop.example/p/04")
			assert.Equal(t, 5.5, s.products("shop")["K04"].Detail["price"])
		}

		s = newShop(t, "", strings.NewReplacer("key: id", "key: label", ", optional: true", "").Replace(shopFile))
		s.cfg.QueueLength, s.cfg.DetailParsers = 1, 1
		s.lay(200, func(i int) string { return strings.ReplaceAll(whole(i), fmt.Sprint("L", i), fmt.Sprint("brand", i%5)) })
		total := s.run()
		assert.EqualValues(t, 1, total.Counts["sites_held"])
		assert.Contains(t, s.kinds(), "key_collisions")
		assert.Less(t, len(s.asked("shop.example")), 60)
		assert.Len(t, s.products("shop"), 5)
	})
}

// A page with the key of another one says nothing about the site's layout: that it lacks an
// optional field is a difference between two products.
func TestCollidingPagesWithoutAField(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		without := func(i int) string { return strings.ReplaceAll(whole(i), "class=label", "class=none") }
		s := newShop(t, dsn, shopFile)
		s.cfg.QueueLength, s.cfg.DetailParsers = 1, 1
		s.lay(60, func(i int) string {
			if i >= 30 && i < 33 {
				return without(i - 30)
			}
			return whole(i)
		})
		for range 2 {
			total := s.run()
			assert.Equal(t, map[string]int64{"products_saved": 57, "products_again": 0, "failed_tasks": 3, "sites_failed": 0},
				counted(total, "products_saved", "products_again", "failed_tasks", "sites_failed"))
			assert.Equal(t, []string{"key_collision", "key_collision", "key_collision"}, s.kinds())
			assert.Equal(t, "L1", s.products("shop")["K01"].Detail["label"])
		}
		s.lay(30, func(i int) string {
			if i < 10 {
				return whole(i)
			}
			return without(i % 10)
		})
		total := s.run()
		assert.Equal(t, map[string]int64{"sites_failed": 1, "sites_held": 1}, counted(total, "sites_failed", "sites_held"))
		assert.Contains(t, s.kinds(), "key_collisions")
		assert.NotContains(t, s.kinds(), "layout_break")
	})
}

// Products that a site removes are gone, which is a state and not a dead letter, and they
// can come back. A list that suddenly shrinks is not trusted.
func TestGoneProducts(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, dsn string) {
		s := newShop(t, dsn, shopFile)
		state := func(key string) string {
			return s.one(`SELECT state FROM catalog_products WHERE product_key = $1`, key)
		}
		s.lay(30, whole)
		s.run()
		assert.Equal(t, "new", state("K00"))
		without := func(n int) { // K01 is listed and answers 404; from n on nothing is listed
			s.lay(n, func(i int) string {
				if i == 1 {
					return ""
				}
				return whole(i)
			})
		}
		without(25)
		for i := range 3 {
			total := s.run()
			assert.Equal(t, map[string]int64{"products_saved": 24, "failed_tasks": 0, "products_gone": []int64{5, 1, 0}[i], "products_missing": []int64{1, 0, 0}[i]},
				counted(total, "products_saved", "failed_tasks", "products_gone", "products_missing"))
			assert.Empty(t, s.deadLetters())
			assert.Equal(t, []string{"unchanged", []string{"new", "gone", "gone"}[i], "gone"}, []string{state("K00"), state("K01"), state("K29")}, "one 404 may be a mistake, a second crawl's is none")
			assert.NotEqual(t, "0", s.one(`SELECT gone_at FROM catalog_products WHERE product_key = 'K29'`))
		}
		s.lay(30, whole)
		total := s.run()
		assert.Equal(t, map[string]int64{"products_unchanged": 30, "products_back": 6}, counted(total, "products_unchanged", "products_back"))
		assert.Equal(t, []string{"back", "back", "0"}, []string{state("K01"), state("K29"), s.one(`SELECT count(*) FROM catalog_products WHERE NOT ` + s.db.Never("gone_at"))})
		_, changes, err := History(t.Context(), s.db, "shop", "K29")
		require.NoError(t, err)
		var states []string
		for _, c := range changes {
			states = append(states, c.Field+" "+*c.Was+" "+*c.Became)
		}
		assert.Equal(t, []string{`_state "gone" "back"`, `_state "new" "gone"`}, states)
		s.run()
		assert.Equal(t, "unchanged", state("K29"))

		s.lay(10, whole)
		total = s.run()
		assert.Empty(t, total.Warnings, "the state of the site is the one alert")
		assert.Equal(t, []string{"thin", "shop.example lists much less than it did: 10, 30 before"}, s.state())
		assert.Zero(t, total.Counts["products_gone"])
		assert.Equal(t, "unchanged", state("K29"))
		s.cfg.Restart = true
		total = s.run()
		assert.Empty(t, total.Warnings, "somebody says that the list is right")
		assert.EqualValues(t, 20, total.Counts["products_gone"])
		assert.Equal(t, []string{"unchanged", "gone"}, []string{state("K09"), state("K29")})
		s.cfg.Restart = false

		s.lay(30, func(int) string { return "" })
		before := len(s.asked("shop.example"))
		total = s.run()
		assert.EqualValues(t, 1, total.Counts["sites_held"], "all pages answer 404")
		assert.Less(t, len(s.asked("shop.example"))-before, 25)
	})
}

// A site whose list cannot be read has failed.
func TestListThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, lay := range map[string]func(s *shop){
		"the only list page answers 404":            func(s *shop) { delete(s.pages, "/") },
		"the first list page names no product":      func(s *shop) { s.pages["/"] = "<p>Welcome to our new shop" },
		"all that the list names is of other hosts": func(s *shop) { s.pages["/"] = "<a class=p href=https://elsewhere.example/>x</a>" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, "", shopFile)
			s.lay(3, whole)
			s.run()
			lay(s)
			total := s.run()
			assert.Equal(t, map[string]int64{"sites": 1, "sites_failed": 1, "products_gone": 0}, counted(total, "sites", "sites_failed", "products_gone"))
			assert.Contains(t, s.kinds(), "no_list")
			s.lay(3, whole)
			total = s.run()
			assert.Equal(t, map[string]int64{"sites_failed": 0, "products_unchanged": 3}, counted(total, "sites_failed", "products_unchanged"))
			assert.NotContains(t, s.kinds(), "no_list")
		})
	}
}

// A later list page that cannot be read is an alert: in a list with cursors, nothing after
// it is found.
func TestListThatBreaksOff(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"<p>Please log in", `{"items": null, "error": "sign in"}`} {
		j := newJob(t, "", webtest.Options{})
		j.shelf(t, shelves(t)["cursor"].File)
		down := 1 << 10
		j.web.Handle("shelf.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.RawQuery, "15") && down > 0 {
				down--
				_, _ = w.Write([]byte(wrong))
				return
			}
			shelf(w, r)
		}))
		total := j.run()
		assert.Equal(t, map[string]int64{"products_saved": 15, "failed_tasks": 1, "sites_failed": 0}, counted(total, "products_saved", "failed_tasks", "sites_failed"), wrong)
		assert.Equal(t, []ledger.Warning{{Kind: "list_page_unread", Source: "shelf", Count: 1}}, total.Warnings, wrong)
		if down = 2; wrong[0] == '{' {
			assert.Equal(t, map[string]int64{"products_saved": shelfProducts, "failed_tasks": 0}, counted(j.run(), "products_saved", "failed_tasks"), "such an answer may pass")
		}
	}
}

// So has one whose index of sitemaps leads to no product.
func TestIndexWithoutProducts(t *testing.T) {
	t.Parallel()
	j := newJob(t, "", webtest.Options{})
	j.shelf(t, strings.Replace(shelves(t)["sitemap"].File, "/item/", "/nothing/", 1))
	assert.Equal(t, map[string]int64{"sites": 1, "sites_failed": 1}, counted(j.run(), "sites", "sites_failed"))
	letters := j.deadLetters()
	require.Len(t, letters, 1)
	assert.Equal(t, []string{"no_products", "no page of the list leads to a product: is list.product_link right? Pages that could not be read are dead letters"}, []string{letters[0].Kind, letters[0].Error})
}

func TestFieldThatNeverMatches(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", shopFile)
	s.lay(5, func(i int) string { return strings.ReplaceAll(whole(i), "class=label", "class=tag") })
	total := s.run()
	assert.EqualValues(t, 5, total.Counts["products_saved"])
	assert.Equal(t, []ledger.Warning{{Kind: "field_never_matched", Source: "shop", Field: "label", Count: 1}}, total.Warnings)
}

// A lane's progress has the number of requests, as in every job.
func TestProgressHasRequests(t *testing.T) {
	t.Parallel()
	s := newShop(t, "", shopFile)
	s.lay(5, whole)
	cfg := s.config()
	total, cause := s.try(cfg)
	require.NoError(t, cause)
	progress, err := ledger.ReadProgress(t.Context(), s.store, cfg.Lane.RunID)
	require.NoError(t, err)
	require.Len(t, progress.Lanes, 1)
	l := progress.Lanes[0]
	assert.Equal(t, []any{int64(1), int64(1), true}, []any{l.Hosts, l.HostsDone, l.Finished})
	assert.EqualValues(t, 7, progress.Tally.HTTP.Requests)
	assert.Equal(t, total.HTTP.Requests, progress.Tally.HTTP.Requests)
	assert.EqualValues(t, 5, l.Tally.Counts["products_saved"])
}
