//go:build unix

package raw_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/warc"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
	"github.com/newsfork/seed-engine/transforms/parse/article"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

var (
	now    = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	limits = raw.Limits{TextMaxLength: 2000, Retention: 30 * 24 * time.Hour}
)

func row(by provider.Unique, url, id, title, body string) raw.Row {
	return raw.Row{Source: "demo", Unique: by, URL: url, Canonical: url,
		Article: provider.Article{Article: article.Article{Title: title, Body: body, Published: now.Add(-time.Hour)}, ExternalID: id, Press: "Demo"}}
}

type kept struct {
	Title, Text                 string
	Collected, Changed, Expires int64
}

func all(t *testing.T, d *db.DB) (out []kept) {
	t.Helper()
	rows, err := d.QueryContext(t.Context(), `SELECT title, raw_text, collected_at, changed_at, expires_at FROM news_articles ORDER BY title`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var k kept
		require.NoError(t, rows.Scan(&k.Title, &k.Text, &k.Collected, &k.Changed, &k.Expires))
		out = append(out, k)
	}
	require.NoError(t, rows.Err())
	return out
}

func each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		require.NoError(t, raw.Migrate(t.Context(), d))
		test(t, d)
	})
}

// A reservation that could not be recorded is an error: what is stored of the article stays then.
func TestWithholdFails(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		_, err := d.ExecContext(t.Context(), `ALTER TABLE news_reserved RENAME TO news_reserved_away`)
		require.NoError(t, err)
		w := raw.Withheld{Source: "demo", URL: "https://a/1", Canonical: []string{"https://a/1"}, Decision: &rights.Decision{}}
		require.ErrorContains(t, raw.Withhold(t.Context(), d, w, now), "recording that an article of demo is reserved")
	})
}

// For each of the three keys: which article is a second row, and which one changes the first.
func TestSaveByKey(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		for _, c := range []struct {
			name          string
			first, second raw.Row
			want          raw.Outcome
		}{
			{"url: the same", row(provider.ByURL, "https://a/1", "", "T", "b"), row(provider.ByURL, "https://a/1", "", "T", "b"), raw.Same},
			{"url: a new title is an update", row(provider.ByURL, "https://a/2", "", "T", "b"), row(provider.ByURL, "https://a/2", "", "T2", "b"), raw.Changed},
			{"url: another address", row(provider.ByURL, "https://a/3", "", "T", "b"), row(provider.ByURL, "https://a/4", "", "T", "b"), raw.Inserted},
			{"id: another address of the same", row(provider.ByExternalID, "https://a/5", "x1", "T", "b"), row(provider.ByExternalID, "https://a/6", "x1", "T", "b"), raw.Changed},
			{"id: another id", row(provider.ByExternalID, "https://a/7", "x2", "T", "b"), row(provider.ByExternalID, "https://a/8", "x3", "T", "b"), raw.Inserted},
			{"id: none, then title and time", row(provider.ByExternalID, "https://a/9", "", "T9", "b"), row(provider.ByExternalID, "https://a/10", "", "T9", "b2"), raw.Changed},
			{"title and time: the same at another address", row(provider.ByTitlePublished, "https://a/11", "", "T11", "b"), row(provider.ByTitlePublished, "https://a/12", "", "t11", "b"), raw.Changed},
			{"title and time: a new title at the same address is an update", row(provider.ByTitlePublished, "https://a/13", "", "T13", "b"), row(provider.ByTitlePublished, "https://a/13", "", "T13 new", "b"), raw.Changed},
			{"title and time: another title", row(provider.ByTitlePublished, "https://a/14", "", "T14", "b"), row(provider.ByTitlePublished, "https://a/15", "", "T15", "b"), raw.Inserted},
		} {
			got, err := raw.Save(t.Context(), d, c.first, limits, now)
			require.NoError(t, err, c.name)
			assert.Equal(t, raw.Inserted, got, c.name)
			got, err = raw.Save(t.Context(), d, c.second, limits, now.Add(time.Hour))
			require.NoError(t, err, c.name)
			assert.Equal(t, c.want, got, c.name)
		}
	})
}

func TestLimits(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		long := strings.Repeat("가나다라 ", 500)
		_, err := raw.Save(t.Context(), d, row(provider.ByURL, "https://a/1", "", "T", long), limits, now)
		require.NoError(t, err)
		later := now.Add(48 * time.Hour)
		out, err := raw.Save(t.Context(), d, row(provider.ByURL, "https://a/1", "", "T new", "short"), limits, later)
		require.NoError(t, err)
		assert.Equal(t, raw.Changed, out)
		assert.Equal(t, []kept{{"T new", "short", db.Micros(now), db.Micros(later), db.Micros(now.Add(30 * 24 * time.Hour))}}, all(t, d), "an update never moves expires_at")

		assert.Len(t, []rune(raw.Cut(long, 2000)), 1999, "characters, not bytes, without the space at the end")
		assert.Equal(t, "가나", raw.Cut("가나다", 2))

		out, err = raw.Save(t.Context(), d, row(provider.ByURL, "https://a/2", "", "Empty", ""), limits, now)
		require.NoError(t, err)
		assert.Empty(t, out)
		assert.Len(t, all(t, d), 1, "an article with an empty body is not stored")
		k, err := raw.Lookup(t.Context(), d, "demo", "https://a/2")
		require.NoError(t, err)
		assert.Equal(t, "empty", k.State)
	})
}

// A purged article does not come back.
func TestPurge(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		for i := range 3 {
			_, err := raw.Save(t.Context(), d, row(provider.ByURL, fmt.Sprintf("https://a/%d", i), "", fmt.Sprint(i), "b"), limits, now.Add(time.Duration(i)*time.Hour))
			require.NoError(t, err)
		}
		due := now.Add(limits.Retention + time.Hour)
		n, err := raw.Purge(t.Context(), d, due)
		require.NoError(t, err)
		assert.Equal(t, int64(2), n, "an article expires exactly at its time")
		assert.Len(t, all(t, d), 1)
		k, err := raw.Lookup(t.Context(), d, "demo", "https://a/0")
		require.NoError(t, err)
		assert.False(t, k.Fresh(due.Add(time.Hour)), "not even when the sitemap has a new date")
		out, err := raw.Save(t.Context(), d, row(provider.ByURL, "https://a/0", "", "0", "b"), limits, due)
		require.NoError(t, err)
		assert.Equal(t, raw.Purged, out)
		assert.Len(t, all(t, d), 1)
	})
}

// An expired article does not come back at another address either, if its key is another than its address.
func TestPurgeByKey(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		for _, by := range []provider.Unique{provider.ByExternalID, provider.ByTitlePublished} {
			save := func(url, title string, at time.Time) raw.Outcome {
				out, err := raw.Save(t.Context(), d, row(by, url, "7", title, "b"), limits, at)
				require.NoError(t, err)
				return out
			}
			old, moved := fmt.Sprintf("https://a/%s/old", by), fmt.Sprintf("https://a/%s/moved", by)
			assert.Equal(t, raw.Inserted, save(old, "T", now))
			due := now.Add(limits.Retention)
			n, err := raw.Purge(t.Context(), d, due)
			require.NoError(t, err)
			assert.Equal(t, int64(1), n)
			assert.Equal(t, raw.Purged, save(moved, "T", due))
			k, err := raw.Lookup(t.Context(), d, "demo", moved)
			require.NoError(t, err)
			assert.False(t, k.Fresh(due.Add(time.Hour)))
			if by == provider.ByTitlePublished {
				assert.Equal(t, raw.Inserted, save(moved+"/2", "another title", due))
			}
		}
	})
}

// Two runs save the same articles at the same time: each has one row and is counted once as inserted.
func TestTwoRunsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		const articles = 12
		for _, by := range []provider.Unique{provider.ByURL, provider.ByExternalID, provider.ByTitlePublished} {
			var mu sync.Mutex
			got := map[raw.Outcome]int{}
			var runs sync.WaitGroup
			for range 2 {
				runs.Go(func() {
					for i := range articles {
						u := fmt.Sprintf("https://%s/%d", by, i)
						out, err := raw.Save(t.Context(), d, row(by, u, u, u, "b"), limits, now)
						if !assert.NoError(t, err) {
							return
						}
						mu.Lock()
						got[out]++
						mu.Unlock()
					}
				})
			}
			runs.Wait()
			assert.Equal(t, map[raw.Outcome]int{raw.Inserted: articles, raw.Same: articles}, got, by)
		}
		assert.Len(t, all(t, d), 3*articles)
	})
}

// The database itself refuses a second row of a key, whoever writes it.
func TestTheDatabaseEnforcesTheKeys(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		insert := `INSERT INTO news_articles (id, source, press, unique_by, url, canonical_url, external_id, title, title_hash, raw_text, authors, language, published_at, content_hash, collected_at, changed_at, expires_at)
			VALUES ($1, 's', '', $2, '', 'u', 'e', '', 't', '', '[]', '', $3, '', $3, $3, $3)`
		for _, by := range []string{"url", "external_id", "title_published"} {
			_, err := d.ExecContext(t.Context(), insert, by+"1", by, 1)
			require.NoError(t, err, "rows of other policies do not count")
			_, err = d.ExecContext(t.Context(), insert, by+"2", by, 1)
			assert.Error(t, err, by)
		}
	})
}

func TestHealthIsSummedOverThePast(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		for i := range 12 {
			before, err := raw.Note(t.Context(), d, "demo", fmt.Sprint("run", i), raw.Health{Parsed: 10, Titled: 10, Bodied: 9, Dated: i}, now.Add(time.Duration(i)*time.Hour))
			require.NoError(t, err)
			if i == 2 {
				assert.Equal(t, raw.Health{Parsed: 20, Titled: 20, Bodied: 18, Dated: 1}, before)
			}
			if i == 11 {
				assert.Equal(t, 100, before.Parsed, "the last ten runs")
			}
		}
	})
}

func TestEvidence(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for i, at := range []time.Time{now.AddDate(0, 0, -31), now.AddDate(0, 0, -29), now} {
		e := raw.Evidence{Source: "demo", URL: fmt.Sprintf("https://a/%d", i), ContentType: "text/html", FetchedAt: at, HTML: []byte("\xb0\xa1")}
		require.NoError(t, raw.Keep(t.Context(), s, e.URL, e))
	}
	n, err := raw.Sweep(t.Context(), s, nil, now.AddDate(0, 0, -30))
	require.NoError(t, err)
	assert.Equal(t, int64(1), n)
	var urls []string
	for e, err := range raw.Kept(t.Context(), s, "demo") {
		require.NoError(t, err)
		assert.Equal(t, []byte("\xb0\xa1"), e.HTML, "the original bytes")
		urls = append(urls, e.URL)
	}
	assert.Equal(t, []string{"https://a/1", "https://a/2"}, urls)

	// A file is a WARC file that says what was received; it is read back as it was written.
	key := fmt.Sprintf("evidence/news/pages/%s/%s.warc.gz", now.Format(time.DateOnly), raw.Hash("https://a/p"))
	e := raw.Evidence{Source: "pages", URL: "https://a/p", Requested: "https://a/p?x", ContentType: "text/html; charset=euc-kr", FetchedAt: now, SitemapAt: now.Add(-time.Hour),
		News: sitemap.News{Title: "제목\r\nX-News-Evidence: {}"}, HTML: []byte("\xb0\xa1"), More: []raw.Page{{URL: "https://a/p/2", ContentType: "text/html", FetchedAt: now.Add(time.Second), HTML: []byte("two\r\n\r\n")}}}
	sent := e
	sent.Truncated = true
	sent.Header = http.Header{"Content-Type": {e.ContentType}, "Content-Encoding": {"gzip"}}
	require.NoError(t, raw.Keep(t.Context(), s, e.URL, sent))
	for got, err := range raw.Kept(t.Context(), s, "pages") {
		require.NoError(t, err)
		assert.Equal(t, e, got)
	}
	body, err := s.Open(t.Context(), key)
	require.NoError(t, err)
	defer func() { require.NoError(t, body.Close()) }()
	var types []string
	for r, err := range warc.Records(body) {
		require.NoError(t, err)
		types = append(types, r.Type+" "+r.Header.Get("Warc-Target-Uri")+r.Header.Get("Warc-Truncated"))
	}
	assert.Equal(t, []string{"warcinfo ", "response https://a/plength", "response https://a/p/2"}, types)
}

// Earlier versions of an article are kept, the last twenty, until the article expires.
func TestVersions(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		for i := range 25 {
			out, err := raw.Save(t.Context(), d, row(provider.ByURL, "https://a/1", "", fmt.Sprint("title ", i), "b"), limits, now.Add(time.Duration(i)*time.Minute))
			require.NoError(t, err)
			if i > 0 {
				require.Equal(t, raw.Changed, out)
			}
		}
		_, err := raw.Save(t.Context(), d, row(provider.ByURL, "https://a/1", "", "title 24", "b"), limits, now.Add(time.Hour))
		require.NoError(t, err)
		var version, kept, oldest int
		var title string
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT version FROM news_articles`).Scan(&version))
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT COUNT(*), MIN(version) FROM news_versions`).Scan(&kept, &oldest))
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT title FROM news_versions WHERE version = 24`).Scan(&title))
		assert.Equal(t, []any{25, 20, 5, "title 23"}, []any{version, kept, oldest, title})
		_, err = raw.Purge(t.Context(), d, now.Add(limits.Retention))
		require.NoError(t, err)
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM news_versions`).Scan(&kept))
		assert.Zero(t, kept)
	})
}

// The pages of an article go with it, also one that was received long after the first.
func TestEvidenceOfExpired(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		s, err := store.Open(t.Context(), t.TempDir())
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		later := now.Add(limits.Retention - time.Hour)
		for i, first := range []time.Time{now, later} {
			address := fmt.Sprintf("https://a/%d", i)
			for _, at := range []time.Time{first, later} {
				_, err := raw.Save(t.Context(), d, row(provider.ByURL, address, "", at.String(), "b"), limits, at)
				require.NoError(t, err)
				require.NoError(t, raw.Keep(t.Context(), s, address, raw.Evidence{Source: "demo", URL: address, FetchedAt: at, HTML: []byte("b")}))
			}
		}
		due := now.Add(limits.Retention)
		expired, err := raw.Expiring(t.Context(), d, due)
		require.NoError(t, err)
		n, err := raw.Sweep(t.Context(), s, expired, now.AddDate(0, 0, -1))
		require.NoError(t, err)
		assert.Equal(t, int64(2), n)
		for e, err := range raw.Kept(t.Context(), s, "demo") {
			require.NoError(t, err)
			assert.Equal(t, "https://a/1", e.URL)
			n++
		}
		assert.Equal(t, int64(3), n, "that of the other article stays")
	})
}
