package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// TestSites follows a site over its runs.
func TestSites(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	week := func(n int) time.Time { return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 7*n) }
	for n, st := range []SiteState{{State: "open"}, {State: "blocked", Cause: "a.test refuses", Advice: "wait", Evidence: []string{"403"}}, {State: "blocked"}, {State: "open"}} {
		st.Job, st.Site, st.RunID = "docs", "a", week(n).Format("20060102")
		require.NoError(t, KeepSite(t.Context(), s, st, week(n)))
		require.NoError(t, KeepSite(t.Context(), s, st, week(n)), "a retry of the same run")
	}
	got, err := ReadSite(t.Context(), s, "docs", "a")
	require.NoError(t, err)
	require.Equal(t, SiteState{Job: "docs", Site: "a", State: "open", Since: week(3), CheckedAt: week(3), RunID: "20260126", Runs: 1,
		History: []siteChange{{State: "blocked", Since: week(1), Until: week(3)}, {State: "open", Since: week(0), Until: week(1)}}}, got)
	none, err := ReadSite(t.Context(), s, "docs", "other")
	require.NoError(t, err)
	require.Zero(t, none)
	all, err := Sites(t.Context(), s, "docs")
	require.NoError(t, err)
	require.Equal(t, []SiteState{got}, all)
	require.NoError(t, RemoveSite(t.Context(), s, "docs", "a"))
	all, err = Sites(t.Context(), s, "docs")
	require.NoError(t, err)
	require.Empty(t, all)
}

// TestReportOfSites has one alert for each cause, and none of sites of other runs.
func TestReportOfSites(t *testing.T) {
	r := Report{RunID: "now"}
	r.AddSites([]SiteState{
		{Site: "a", RunID: "now", State: "moved", Cause: "a.test moved to b.test", Advice: "change seed_urls", History: []siteChange{{State: "open"}}},
		{Site: "b", RunID: "now", State: SiteOpen},
		{Site: "c", RunID: "now", State: "blocked", Cause: "c.test refuses"},
		{Site: "d", RunID: "before", State: "blocked"},
		{Site: "e", RunID: "now", State: "blocked"},
	})
	require.Len(t, r.Sites, 4)
	require.Len(t, r.NotOpen(), 3)
	require.Nil(t, r.Sites[0].History)
	require.Equal(t, []string{
		"2 sites are blocked; what is stored of them stays: c: c.test refuses; e: it is blocked",
		"1 site is moved; what is stored of it stays: a: a.test moved to b.test: change seed_urls",
	}, r.Alerts)
}
