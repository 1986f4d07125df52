package seed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/seed"
	"github.com/newsfork/seed-engine/transforms/seed/domaintable"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// gather returns all rows, sorted by key.
func gather[T any](t *testing.T, all iter.Seq2[T, error], key func(T) string) (got []T) {
	t.Helper()
	for r, err := range all {
		require.NoError(t, err)
		got = append(got, r)
	}
	slices.SortFunc(got, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return got
}

func domainKey(d seed.Domain) string { return d.Date + " " + d.RegistrableDomain }

// domains are the exported domains as "date name", and the documents by that.
func (j *job) domains(f seed.Filter) (names []string, documents map[string]string) {
	j.t.Helper()
	documents = map[string]string{}
	for _, d := range gather(j.t, seed.Domains(j.t.Context(), j.store, f), domainKey) {
		var m metadata.Domain
		must(j.t, json.Unmarshal([]byte(d.Document), &m))
		require.Equal(j.t, d.DomainID, m.DomainID)
		require.Equal(j.t, d.CollectedAt.UnixMilli(), at(j.t, m.CollectedAt).UnixMilli())
		require.Equal(j.t, d.URLCount, m.Sitemap.URLCount)
		names = append(names, domainKey(d))
		documents[domainKey(d)] = string(d.Document)
	}
	return names, documents
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return when
}

// An export has each finished domain once, whatever layouts the store has.
func TestExportedDomains(t *testing.T) {
	for _, compared := range []int64{4_000_000, 1} {
		t.Run(fmt.Sprint(compared), func(t *testing.T) {
			seed.CompareAtOnce(t, compared)
			j := packedJob(t)
			j.run()
			want := []string{"2026-01-28 index-2.com", "2026-01-28 no-robots-3.com", "2026-01-28 sitemap-gz-4.com", "2026-01-28 urlset-1.com", "2026-01-29 gzip-5.com", "2026-01-29 urlset-1.com"}
			names, packed := j.domains(seed.Filter{})
			require.Equal(t, want, names)

			_, err := seed.Materialize(t.Context(), j.store) // the same visits, in both layouts
			must(t, err)
			names, both := j.domains(seed.Filter{})
			require.Equal(t, want, names)
			require.Equal(t, packed, both)

			// A later visit counts, in whichever layout it is.
			j.cfg.Layout, j.cfg.ForceID, j.cfg.Country, j.cfg.Category = seed.Objects, "force-1", "sg", "policy"
			j.run()
			names, visited := j.domains(seed.Filter{})
			require.Equal(t, want, names)
			require.Equal(t, both["2026-01-28 index-2.com"], visited["2026-01-28 index-2.com"])
			require.NotEqual(t, both["2026-01-29 gzip-5.com"], visited["2026-01-29 gzip-5.com"])
			j.cfg.Layout, j.cfg.ForceID = seed.Table, "force-2"
			j.run()
			names, again := j.domains(seed.Filter{})
			require.Equal(t, want, names)
			require.NotEqual(t, visited["2026-01-29 gzip-5.com"], again["2026-01-29 gzip-5.com"])

			names, _ = j.domains(seed.Filter{Date: "2026-01-29"})
			require.Equal(t, want[4:], names)
			names, _ = j.domains(seed.Filter{Country: "sg", Category: "news"})
			require.Equal(t, want[:4], names)
			names, _ = j.domains(seed.Filter{Country: "kr"})
			require.Empty(t, names)
			var m metadata.Domain
			must(t, json.Unmarshal([]byte(again["2026-01-29 gzip-5.com"]), &m))
			names, _ = j.domains(seed.Filter{Since: at(t, m.CollectedAt)})
			require.Contains(t, names, "2026-01-29 gzip-5.com")
			require.NotContains(t, names, "2026-01-28 index-2.com")
		})
	}
}

// A run at work has domains without a mark and files without a commit: they are not there.
func TestExportWhileARunWorks(t *testing.T) {
	j := packedJob(t)
	j.cfg.Layout = seed.Objects
	j.run()
	want, _ := j.domains(seed.Filter{})
	require.Len(t, want, 6)
	must(t, j.store.Delete(t.Context(), "processing/country=sg/category=policy/date=2026-01-29/gzip-5.com/domain_metadata.json.success"))
	must(t, store.Write(t.Context(), j.store, domaintable.Root+"X.parquet", []byte("half"), store.PutOptions{}))
	names, _ := j.domains(seed.Filter{})
	require.Equal(t, slices.DeleteFunc(want, func(n string) bool { return n == "2026-01-29 gzip-5.com" }), names)

	must(t, store.Write(t.Context(), j.store, "processing/country=sg/category=news/date=2026-01-28/index-2.com/domain_metadata.json", []byte("{}"), store.PutOptions{}))
	var err error
	for _, err = range seed.Domains(t.Context(), j.store, seed.Filter{}) {
		if err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "index-2.com/domain_metadata.json: it is no domain metadata")
}

func TestExportedFeeds(t *testing.T) {
	j := newJob(t, webtest.Options{Seed: 7})
	j.put(day+"raw_0001.json", rawFile("https://urlset-1.com/", "https://index-2.com/", "https://reset-3.com/"))
	j.cfg.Collect.Feeds = true
	j.run()
	want := map[string]bool{}
	for _, d := range gather(t, seed.Domains(t.Context(), j.store, seed.Filter{}), domainKey) {
		var m metadata.Domain
		must(t, json.Unmarshal([]byte(d.Document), &m))
		for _, u := range m.Robots.SitemapURLs {
			want[u] = true
		}
		for _, f := range m.Feeds {
			want[f.URL] = true
		}
		if m.Sitemap.Exists {
			want[m.Sitemap.URL] = true
		}
	}
	got := gather(t, seed.Feeds(t.Context(), j.store, seed.Filter{}), func(f seed.Feed) string { return f.URL })
	require.NotEmpty(t, got)
	require.Len(t, got, len(want))
	for _, f := range got {
		require.True(t, want[f.URL], f.URL)
		require.Equal(t, f.Source == "robots", f.StatusCode == nil)
	}
}

func TestExportedOutcomes(t *testing.T) {
	j := newJob(t, webtest.Options{Seed: 7})
	j.put(day+"raw_0001.json", rawFile("https://urlset-1.com/", "https://reset-2.com/", "https://gzip-5.com/"))
	mend := seed.Spoil(t, "gzip-5.com")
	begin := time.Now()
	j.run()
	mend()
	must(t, ledger.Start(t.Context(), j.store, ledger.Run{RunID: j.runID, Job: seed.Job, Runner: "direct", State: ledger.Running, StartedAt: begin}))
	_, err := ledger.Finish(t.Context(), j.store, j.runID, ledger.Done, nil, time.Now())
	must(t, err)
	key := func(o seed.Outcome) string { return o.RegistrableDomain }
	got := gather(t, seed.Outcomes(t.Context(), j.store, seed.Filter{}), key)
	require.Len(t, got, 3)
	var states []string
	for _, o := range got {
		states = append(states, o.RegistrableDomain+" "+o.State+" "+o.Reason)
		require.NotNil(t, o.RunID)
		require.Equal(t, j.runID, *o.RunID)
		require.Equal(t, o.State != "collected", o.Message != "")
		require.Equal(t, o.State == "failed", o.RobotsStatus == nil)
		require.Equal(t, day+"raw_0001.json", o.RawFilePath)
	}
	require.Equal(t, []string{"gzip-5.com failed invalid_metadata", "reset-2.com unreachable reset", "urlset-1.com collected "}, states)
	require.Equal(t, got, gather(t, seed.Outcomes(t.Context(), j.store, seed.Filter{Run: j.runID}), key))
	require.Empty(t, gather(t, seed.Outcomes(t.Context(), j.store, seed.Filter{Run: "another"}), key))
}

// What an export reads may fail in its middle; then it ends with that error.
func TestExportFails(t *testing.T) {
	j := packedJob(t)
	j.run()
	for _, o := range j.objects(domaintable.Root) {
		if strings.HasSuffix(o, ".parquet") {
			must(t, j.store.Delete(t.Context(), o))
		}
	}
	var err error
	for _, err = range seed.Domains(t.Context(), j.store, seed.Filter{}) {
		require.Error(t, err)
	}
	require.True(t, errors.Is(err, store.ErrNotExist), err)
	require.ErrorContains(t, err, "try again")
}
