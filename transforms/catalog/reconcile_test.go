package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// open makes a crawl of the shop.
func (s *bazaar) open(t *testing.T) *job {
	file := bazaarSite
	if s.pager {
		file = strings.Replace(file, "until_empty: true", "last_page: {selector: a.last}", 1)
	}
	return newSite(t, file, s.ServeHTTP)
}

// day changes the shop and crawls it once.
func (s *bazaar) day(j *job, change func()) ledger.Tally {
	j.t.Helper()
	s.mu.Lock()
	change()
	s.lists, s.items = 0, 0
	s.mu.Unlock()
	return j.run()
}

func (s *bazaar) remove(products ...int) {
	s.sold = map[int]bool{}
	for _, n := range products {
		s.sold[n] = true
	}
}

// A list that hides products for a crawl makes none of them gone: their pages still show them.
func TestListThatHidesProducts(t *testing.T) {
	t.Parallel()
	s := &bazaar{perPage: 10, listed: numbers(1, 300), pager: true}
	j := s.open(t)
	s.day(j, func() {})
	second := s.day(j, func() { s.listed = numbers(1, 242) })
	assert.Equal(t, map[string]int64{"products_gone": 0, "products_saved": 300, "sites_failed": 0}, counted(second, "products_gone", "products_saved", "sites_failed"))
	assert.Equal(t, []ledger.Warning{{Kind: "list_shorter", Source: "shop", Count: 1}}, second.Warnings)
	assert.Equal(t, []int{25, 300}, []int{s.lists, s.items})
	third := s.day(j, func() { s.listed = numbers(1, 300) })
	assert.Empty(t, third.Warnings)
	var changes, unlisted int
	require.NoError(t, j.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM catalog_changes), (SELECT count(*) FROM catalog_products WHERE NOT `+j.db.Never("unlisted_at")+`)`).Scan(&changes, &unlisted))
	assert.Equal(t, []int{0, 0}, []int{changes, unlisted})
}

// A shop that repeats its last page has an end, and products that are gone.
func TestLastPageThatIsRepeated(t *testing.T) {
	t.Parallel()
	s := &bazaar{perPage: 9, listed: numbers(1, 30), repeats: true}
	j := s.open(t)
	first := s.day(j, func() {})
	assert.EqualValues(t, 30, first.Counts["products_saved"])
	assert.Equal(t, []int{7, 30}, []int{s.lists, s.items})
	second := s.day(j, func() { s.listed = numbers(1, 26); s.remove(27, 28, 29, 30) })
	assert.EqualValues(t, 4, second.Counts["products_gone"])
	assert.EqualValues(t, 0, s.day(j, func() {}).Counts["products_gone"])
	assert.EqualValues(t, 26, s.items, "what is gone is not requested")
}

// One page that is refused for ever delays what is gone by a crawl.
func TestOnePageThatIsRefusedForEver(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(s *bazaar){
		"a product":   func(s *bazaar) { s.extra = "<a class=p href=/p/200>x</a>"; s.failing = "/p/200" },
		"a list page": func(s *bazaar) { s.failing = "/l/2" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &bazaar{perPage: 10, listed: numbers(1, 60), pager: true}
			j := s.open(t)
			s.day(j, func() {})
			assert.Zero(t, s.day(j, func() { s.listed = numbers(1, 58); s.remove(59, 60); refuse(s) }).Counts["products_gone"])
			third := s.day(j, func() {})
			assert.Equal(t, map[string]int64{"products_gone": 2, "sites_failed": 0}, counted(third, "products_gone", "sites_failed"))
			assert.Zero(t, s.day(j, func() {}).Counts["products_gone"])
		})
	}
}

// Removed products at the head of a list do not end the crawl; a site that has moved all of its pages does.
func TestRemovedProductsAtTheHead(t *testing.T) {
	t.Parallel()
	s := &bazaar{perPage: 10, listed: numbers(1, 60), pager: true}
	j := s.open(t)
	s.day(j, func() {})
	second := s.day(j, func() { s.remove(1, 2, 3, 4, 5, 6, 7, 8, 9) })
	assert.Equal(t, map[string]int64{"products_saved": 51, "products_missing": 9, "products_gone": 0, "sites_failed": 0},
		counted(second, "products_saved", "products_missing", "products_gone", "sites_failed"))
	assert.EqualValues(t, 9, s.day(j, func() {}).Counts["products_gone"])

	small := &bazaar{perPage: 10, listed: numbers(1, 9), pager: true}
	j = small.open(t)
	small.day(j, func() {})
	for range 3 {
		moved := small.day(j, func() { small.remove(1, 2, 3, 4, 5, 6, 7, 8, 9) })
		assert.Equal(t, map[string]int64{"products_gone": 0, "sites_failed": 1, "sites_held": 1}, counted(moved, "products_gone", "sites_failed", "sites_held"))
	}
}

// A product that whole lists no longer name is gone after a week, though its page still shows it.
func TestProductThatIsNoLongerListed(t *testing.T) {
	t.Parallel()
	s := &bazaar{perPage: 10, listed: numbers(1, 60), pager: true}
	j := s.open(t)
	s.day(j, func() {})
	begin := time.Now()
	for day := range 9 {
		s.listed = numbers(1, 58)
		v := j.visitOf(j.config(), j.cfg.Sites[0])
		v.clock = func() time.Time { return begin.Add(time.Duration(day) * 24 * time.Hour) }
		require.NoError(t, v.run(t.Context()))
		var gone int
		require.NoError(t, j.db.QueryRowContext(t.Context(), `SELECT count(*) FROM catalog_products WHERE state = 'gone'`).Scan(&gone))
		assert.Equal(t, map[bool]int{true: 2}[day >= 6], gone, "day %d", day)
	}
}
