package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
