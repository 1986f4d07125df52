package table

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rows(t testing.TB, n int) (all []Row) {
	t.Helper()
	p := hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}
	for i := range n {
		count, index := int64(i), i
		m := metadata.Domain{DomainID: fmt.Sprintf("gov:sg:%d.sg", i), RegistrableDomain: fmt.Sprintf("%d.sg", i), Country: "SG", Category: "news", CollectedAt: "2026-01-28T00:30:00.120Z",
			Robots: metadata.Robots{StatusCode: 200, Exists: true, SitemapURLs: []string{"https://a.sg/1", "https://a.sg/2"}},
			Sitemap: metadata.Sitemap{StatusCode: 404, URL: "https://a.sg/1", Error: "dns", Kind: "urlset", URLCount: &count,
				Sitemaps: []metadata.Counted{{URL: "https://a.sg/1", Kind: "urlset", Count: &count}, {URL: "https://a.sg/2"}}},
			Source: &metadata.Source{RawFilePath: "datasets/x", RecordIndex: &index, ContentHints: []string{"news"}}}
		r, err := New(p, m, fmt.Appendf(nil, `{"domain_id": %d}`, i))
		require.NoError(t, err)
		r.Evidence = []Evidence{{"robots.txt", int64(i), 7}, {"sitemap.xml", int64(i) + 7, 8}}
		all = append(all, r)
	}
	return all
}

func TestRows(t *testing.T) {
	want := rows(t, 1000)
	want[3].URLCount, want[3].SitemapURLs, want[3].Evidence = nil, nil, nil
	require.Equal(t, hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}, want[0].Partition())
	b, err := Encode(want)
	require.NoError(t, err)
	got, err := Decode(b)
	require.NoError(t, err)
	for i := range got { // an empty list comes back as none, or none as empty
		if len(got[i].Evidence) == 0 {
			got[i].Evidence = nil
		}
		if len(got[i].SitemapURLs) == 0 {
			got[i].SitemapURLs = nil
		}
		if len(got[i].Sitemaps) == 0 {
			got[i].Sitemaps = nil
		}
		got[i].CollectedAt = got[i].CollectedAt.UTC()
	}
	require.Equal(t, want, got)

	none, err := New(hive.Partition{}, metadata.Domain{CollectedAt: "2026-01-28T00:30:00.120Z"}, nil)
	require.NoError(t, err)
	require.EqualValues(t, -1, none.RecordIndex)
	_, err = New(hive.Partition{}, metadata.Domain{DomainID: "gov:sg:a.sg", CollectedAt: "yesterday"}, nil)
	require.ErrorContains(t, err, "gov:sg:a.sg")
}

func TestBroken(t *testing.T) {
	b, err := Encode(rows(t, 10))
	require.NoError(t, err)
	for _, broken := range [][]byte{nil, []byte("PAR1"), b[:len(b)-1], b[1:], append([]byte("PAR1"), b[len(b)-100:]...)} {
		_, err := Decode(broken)
		require.ErrorContains(t, err, "reading Parquet")
	}
}

// A file of strangers, or one that was damaged, gives rows or an error: no panic, and no
// more memory than a file of its size can need.
func FuzzDecode(f *testing.F) {
	for _, of := range []int{0, 1, 300} {
		b, err := Encode(rows(f, of))
		require.NoError(f, err)
		f.Add(b)
		f.Add(b[:len(b)/2])
		for i := 0; i < len(b); i += 1 + len(b)/40 {
			c := bytes.Clone(b)
			c[i] ^= 0x7f
			f.Add(c)
		}
	}
	f.Add([]byte("PAR1\x29\xfc\xad\xf6\x8c\x52\x06\x00\x00\x00PAR1")) // a footer with a list of 172,178,221
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := Decode(b)
		runtime.ReadMemStats(&after)
		took := after.TotalAlloc - before.TotalAlloc
		assert.True(t, took <= 64<<20, "%d bytes took %d MiB of memory, error %v", len(b), took>>20, err)
		assert.True(t, err == nil || got == nil, "rows and an error")
	})
}

// Rows of a version that had fewer columns stay readable.
func TestDecodeOlderRows(t *testing.T) {
	type older struct {
		DomainID    string     `parquet:"domain_id"`
		CollectedAt time.Time  `parquet:"collected_at,timestamp(millisecond)"`
		SitemapURLs []string   `parquet:"robots_sitemap_urls,list"`
		SitemapKind string     `parquet:"sitemap_kind,dict"`
		URLCount    *int64     `parquet:"sitemap_url_count,optional"`
		Document    string     `parquet:"document"`
		Evidence    []Evidence `parquet:"evidence,list"`
	}
	n, at := int64(7), time.Date(2026, 1, 28, 9, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	w := parquet.NewGenericWriter[older](&b)
	_, err := w.Write([]older{{"com:sg:site.com", at, []string{"https://site.com/s.xml"}, "urlset", &n, "{}", []Evidence{{"robots.txt", 3, 4}}}})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	rows, err := Decode(b.Bytes())
	require.True(t, err == nil && len(rows) == 1, "%d rows, %v", len(rows), err)
	want := Row{Columns: Columns{DomainID: "com:sg:site.com", CollectedAt: at, SitemapURLs: []string{"https://site.com/s.xml"}, SitemapKind: "urlset", Hints: []string{}, Sitemaps: []metadata.Counted{}},
		URLCount: &n, Document: "{}", Evidence: []Evidence{{"robots.txt", 3, 4}}}
	require.Equal(t, want, rows[0])
}
