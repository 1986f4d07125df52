package catalog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Three crawls, and what differs between any two of them.
func TestDiff(t *testing.T) {
	eachDB(t, func(t *testing.T, dsn string) {
		s := newShop(t, dsn, shopFile)
		products := func(prices map[string]string) time.Time {
			s.lay(0, nil)
			s.mu.Lock()
			var list strings.Builder
			for key, price := range prices {
				fmt.Fprintf(&list, "<a class=p href=/p/%s>x</a>", key)
				s.pages["/p/"+key] = fmt.Sprintf("<p id=id>%s<p class=price>%s<p class=label>L<p class=offer>O", key, price)
			}
			s.pages["/"] = list.String()
			s.mu.Unlock()
			s.run()
			return time.Now()
		}
		start := time.Now()
		first := products(map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"})
		second := products(map[string]string{"a": "2", "b": "1", "d": "5", "e": "1"})
		third := products(map[string]string{"a": "3", "b": "1", "c": "1", "d": "1"})
		diff := func(from, to time.Time) (all []string) {
			for r, err := range diffRows(t.Context(), s.db, from, to) {
				require.NoError(t, err)
				value := func(v *string) string {
					if v == nil {
						return "-"
					}
					return *v
				}
				assert.Equal(t, "https://shop.example/p/"+r.ProductKey, r.URL)
				all = append(all, fmt.Sprintf("%s %s/%s %s %s %s", r.Kind, r.Site, r.ProductKey, r.Field, value(r.Was), value(r.Became)))
			}
			return all
		}
		assert.Equal(t, []string{"new shop/a  - -", "new shop/b  - -", "new shop/c  - -", "new shop/d  - -"}, diff(start, first))
		assert.Equal(t, []string{"changed shop/a price 1 2", "gone shop/c  - -", "changed shop/d price 1 5", "new shop/e  - -"}, diff(first, second))
		assert.Equal(t, []string{"changed shop/a price 2 3", "back shop/c  - -", "changed shop/d price 5 1", "gone shop/e  - -"}, diff(second, third))
		assert.Equal(t, []string{"changed shop/a price 1 3"}, diff(first, third), "c was gone and is back, d changed and changed back, e came and went")
		assert.Empty(t, diff(third, time.Now()))
	})
}
