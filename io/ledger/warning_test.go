package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Warnings are added by kind, source and field; the order does not matter.
func TestWarnings(t *testing.T) {
	one := func(kind, source, field string, n int64) (t Tally) {
		t.Warn(kind, source, field, n)
		return t
	}
	parts := []Tally{one("unreadable", "shop", "price", 2), one("shrunk", "shop.example", "", 1), one("unreadable", "shop", "label", 1),
		{Counts: Counts{"sites": 1}}, one("unreadable", "shop", "price", 3), one("unreadable", "fair", "price", 1)}
	want := []Warning{{"shrunk", "shop.example", "", 1}, {"unreadable", "fair", "price", 1}, {"unreadable", "shop", "label", 1}, {"unreadable", "shop", "price", 5}}
	for first := range parts {
		var left, right, sum Tally
		for i := range parts {
			half := &left
			if i > 2 {
				half = &right
			}
			half.Add(parts[(first+i)%len(parts)])
		}
		sum.Add(right)
		sum.Add(left)
		require.Equal(t, want, sum.Warnings, "beginning with part %d", first)
		b, err := sum.MarshalBinary()
		require.NoError(t, err)
		var read Tally
		require.NoError(t, read.UnmarshalBinary(b))
		require.Equal(t, want, read.Warnings, "between workers")
	}
	require.Equal(t, []Warning{{"unreadable", "shop", "price", 2}}, parts[0].Warnings, "what was added stays as it was")

	r := BuildReport(Job{Source: "site", Warnings: map[string]string{"unreadable": "field {field} cannot be read on {n} pages"}}, aRun("r1"), Tally{Warnings: want}, day)
	require.Equal(t, []string{"site shop.example: shrunk , 1 times", "site fair: field price cannot be read on 1 pages",
		"site shop: field label cannot be read on 1 pages", "site shop: field price cannot be read on 5 pages"}, r.Alerts)
	require.Empty(t, r.Counts, "a warning is no count")
}

// A tally keeps a limited number of warnings, the same ones in any order of addition.
func TestWarningsAreBounded(t *testing.T) {
	var up, down Tally
	for i := range 3 * maxWarnings {
		up.Warn("unreadable", fmt.Sprintf("shop%04d", i), "price", 1)
		down.Warn("unreadable", fmt.Sprintf("shop%04d", 3*maxWarnings-1-i), "price", 1)
	}
	require.Len(t, up.Warnings, maxWarnings)
	require.Equal(t, up.Warnings, down.Warnings)
}
