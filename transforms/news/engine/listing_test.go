package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// Of many articles only the newest are in memory; each is counted once all the same.
func TestListingIsBounded(t *testing.T) {
	l := newListing(3)
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for range 2 {
		for i := range 50 {
			l.add(candidate{canonical: fmt.Sprint(i), modified: at.Add(time.Duration(i*7%50) * time.Minute)})
			assert.Less(t, len(l.all), 6)
		}
	}
	l.add(candidate{canonical: "7", modified: at.Add(time.Hour)})
	l.sort()
	assert.EqualValues(t, 50, l.named)
	var got []string
	for _, c := range l.all {
		got = append(got, c.canonical)
	}
	assert.Equal(t, []string{"7", "14", "21"}, got)
	assert.Equal(t, map[string]int{"7": 0, "14": 1, "21": 2}, l.at)
}

// Of an article that a news sitemap names and another one too, the time of publication counts and
// the last change, whichever comes first.
func TestListingOfTwoSitemaps(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	news := candidate{canonical: "a", published: at, at: at, news: sitemap.News{Title: "A"}}
	plain := candidate{canonical: "a", modified: at.Add(time.Hour), at: at.Add(time.Hour)}
	for _, both := range [][]candidate{{news, plain}, {plain, news}} {
		l := newListing(3)
		for _, c := range both {
			l.add(c)
		}
		assert.Equal(t, []candidate{{canonical: "a", published: at, modified: at.Add(time.Hour), at: at.Add(time.Hour), news: news.news}}, l.all)
	}
}
