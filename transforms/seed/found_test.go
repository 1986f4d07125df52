package seed

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// What was found arrives with the record as it was sent, and is never read by half.
func TestFoundText(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	for _, want := range []found{
		{},
		{again: true},
		{Addresses: web.Addresses{NotFound: true}, at: at},
		{Addresses: web.Addresses{List: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}, at: at, again: true},
	} {
		for _, m := range []mark{markUnknown, markAbsent, markPresent} {
			text := want.text(m)
			got, with, err := parseFound(text)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, m, with)
			for n := range text {
				if got, _, err := parseFound(text[:n]); err == nil {
					require.Less(t, len(got.List), len(want.List)) // an address less
				}
			}
		}
	}
	_, _, err := parseFound("\x09\x00\x00")
	require.ErrorIs(t, err, errFound)
}

func FuzzFound(f *testing.F) {
	f.Add("\x01\x01\x05\x04abcd")
	f.Fuzz(func(t *testing.T, text string) {
		got, m, err := parseFound(text)
		if err != nil {
			return
		}
		again, with, err := parseFound(got.text(m))
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.Equal(t, m, with)
	})
}

// The hosts of a large server do not keep those of others from beginning.
func TestByRounds(t *testing.T) {
	at := func(a string) string {
		return found{Addresses: web.Addresses{List: []netip.Addr{netip.MustParseAddr(a)}}, at: time.Unix(1, 0)}.text(markAbsent)
	}
	table := newHostTable()
	require.NoError(t, table.add(lane.NewBatch("datasets/country=sg/category=news/date=2026-01-28/raw_0001.json", []lane.URLRecord{
		{Host: "a1", Found: at("192.0.2.1")}, {Host: "a2", Found: at("192.0.2.1")}, {Host: "a3", Found: at("192.0.2.1")},
		{Host: "c1", Found: at("104.16.0.1")}, {Host: "c2", Found: at("104.16.0.1")}, // a network with a rate
		{Host: "b1", Found: at("2001:db8::1")}, {Host: "b2", Found: at("2001:db8::2")}, // one server
		{Host: "dead", Found: found{Addresses: web.Addresses{NotFound: true}, at: time.Unix(1, 0)}.text(markAbsent)}, {Host: "unknown"},
	})))
	table.dropBroken()
	table.byRounds(polite.Servers{})
	var order []string
	for _, h := range table.hosts {
		order = append(order, h.name)
	}
	require.Equal(t, []string{"a1", "c1", "c2", "b1", "dead", "unknown", "a2", "b2", "a3"}, order)
}
