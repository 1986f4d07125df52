package seed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// Domains that are compared in several passes give the same changes as in one.
func TestChangesInPasses(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	put := func(key, body string) {
		require.NoError(t, store.Write(t.Context(), s, key, []byte(body), store.PutOptions{}))
	}
	var want []string
	for d, date := range []string{"2026-01-21", "2026-01-28"} {
		raw := "datasets/country=sg/category=news/date=" + date + "/raw_0001.json"
		put(raw, "{}")
		put(raw+".success", "")
		for i := range 40 {
			if i%4 == 3*d { // each fourth is in one of the two dates alone
				want = append(want, fmt.Sprint([]string{"new", "gone"}[d], i))
				continue
			}
			at := fmt.Sprintf("processing/country=sg/category=news/date=%s/d%d.sg/domain_metadata.json", date, i)
			put(at, fmt.Sprintf(`{"registrable_domain":"d%d.sg","collected_at":"2026-01-28T00:30:00.120Z","robots":{"status_code":200},"sitemap":{"status_code":%d}}`, i, 200+d*(i%4/2)))
			put(at+".success", "")
		}
	}
	for i := range 40 {
		if i%4 == 2 {
			want = append(want, fmt.Sprint("changed", i))
		}
	}
	was := maxCompared
	defer func() { maxCompared = was }()
	for _, maxCompared = range []int64{1000, 5} {
		var got []string
		for c, err := range Changes(t.Context(), s, Filter{}) {
			require.NoError(t, err)
			got = append(got, c.Kind+strings.TrimSuffix(strings.TrimPrefix(c.RegistrableDomain, "d"), ".sg"))
		}
		require.ElementsMatch(t, want, got, maxCompared)
	}
}
