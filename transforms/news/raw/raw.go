// Package raw stores news articles in SQL until their retention ends: one row for
// each article, under the key that its provider's policy names. No promise: see docs/library.md.
package raw

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/parse/simhash"
)

//go:embed migrations
var migrations embed.FS

// Migrate creates or updates the job's tables.
func Migrate(ctx context.Context, d *db.DB) error {
	return d.Migrate(ctx, "news", db.Files(migrations))
}

// Outcome is what Save did with an article.
type Outcome string

// The outcomes of Save.
const (
	Inserted Outcome = "inserted"
	Changed  Outcome = "changed"
	Same     Outcome = "same"
	// Paywalled: the page does not show the article's text, so nothing was saved.
	Paywalled Outcome = "paywalled"
	Purged    Outcome = "purged" // its retention has ended, so nothing was saved
)

// Row is an article to store.
type Row struct {
	Source    string
	Unique    provider.Unique
	URL       string // as it was fetched
	Canonical string // the address's identity (Policy.Canonical)
	Article   provider.Article
	SitemapAt time.Time      // the sitemap's date; zero: none
	FetchedAt time.Time      // zero: now
	Teasers   bool           // store what a page shows of an article that is not free
	Rights    *rights.Rights // nil: not known
}

// Limits bound what is stored of an article.
type Limits struct {
	TextMaxLength int // characters
	Retention     time.Duration
}

// Hash returns the hash of an address or of another key, which stays after Purge.
func Hash(canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	return hex.EncodeToString(sum[:])
}

// Cut returns the first n characters of a text.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return strings.TrimSpace(s[:i])
		}
		n--
	}
	return s
}

// key returns the unique key of a row: that of its policy, or the next one if the
// article lacks a value for it.
func (r Row) key() provider.Unique {
	by := r.Unique
	if by == provider.ByExternalID && r.Article.ExternalID == "" {
		by = provider.ByTitlePublished
	}
	if by == provider.ByTitlePublished && r.Article.Published.IsZero() {
		by = provider.ByURL
	}
	return by
}

// keyHash returns the hash of a row's unique key, which stays after Purge.
func keyHash(by provider.Unique, canonical, externalID, titleHash string, published int64) string {
	switch by {
	case provider.ByExternalID:
		return Hash("external_id\x00" + externalID)
	case provider.ByTitlePublished:
		return Hash(fmt.Sprint("title_published\x00", titleHash, "\x00", published))
	}
	return Hash(canonical)
}

// conflicts is the conflict target of each key's unique index.
var conflicts = map[provider.Unique]string{
	provider.ByURL:            "(source, canonical_url) WHERE unique_by = 'url'",
	provider.ByExternalID:     "(source, external_id) WHERE unique_by = 'external_id'",
	provider.ByTitlePublished: "(source, title_hash, published_at) WHERE unique_by = 'title_published'",
}

// Save stores an article, cut to its limits, and records its address. An existing
// article is updated if a reader would see the difference; its expires_at never
// changes. For an article with an empty body only the address is recorded, and the
// outcome is "". Two runs may save the same article at the same time.
func Save(ctx context.Context, d *db.DB, r Row, l Limits, now time.Time) (out Outcome, err error) {
	if r.FetchedAt.IsZero() {
		r.FetchedAt = now
	}
	a := r.Article
	s := saving{Row: r, by: r.key(), text: Cut(a.Body, l.TextMaxLength), authors: list(a.Authors),
		titled: titleHash(a.Title), published: micros(a.Published), retention: l.Retention, now: now}
	s.content = Hash(strings.Join([]string{a.Title, s.text, s.authors, fmt.Sprint(s.published), r.Canonical, a.ExternalID}, "\x00"))
	err = d.Do(ctx, "saving an article of "+r.Source, func(tx *sql.Tx) (err error) {
		out, err = s.in(ctx, tx)
		return err
	})
	return out, err
}

// saving is a row with its values as the tables have them.
type saving struct {
	Row
	by              provider.Unique
	text, authors   string
	titled, content string // hashes
	published       int64
	retention       time.Duration
	now             time.Time
}

// in does it in a transaction.
func (s saving) in(ctx context.Context, tx *sql.Tx) (out Outcome, err error) {
	a := s.Article
	var purged bool
	if err := tx.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM news_urls WHERE source = $1 AND url_hash IN ($2, $3) AND state = 'purged')`,
		s.Source, Hash(s.Canonical), keyHash(s.by, s.Canonical, a.ExternalID, s.titled, s.published)).Scan(&purged); err != nil {
		return "", err
	}
	switch {
	case purged:
		return Purged, remember(ctx, tx, s.Row, "purged") // it may have another address now
	case a.Paywalled && (!s.Teasers || s.text == ""):
		return Paywalled, remember(ctx, tx, s.Row, "paywalled")
	case s.text == "":
		return "", remember(ctx, tx, s.Row, "empty")
	}
	id, out, err := s.write(ctx, tx)
	if err == nil {
		err = describe(ctx, tx, id, a)
	}
	if err == nil {
		err = setRights(ctx, tx, id, s.Rights)
	}
	if err != nil {
		return out, err
	}
	return out, remember(ctx, tx, s.Row, "stored")
}

// write adds the article, or changes the one that is stored.
func (s saving) write(ctx context.Context, tx *sql.Tx) (id string, out Outcome, err error) {
	a := s.Article
	where, args := "canonical_url = $2", []any{s.Source, s.Canonical}
	switch s.by {
	case provider.ByExternalID:
		where, args = "external_id = $3", append(args, a.ExternalID)
	case provider.ByTitlePublished:
		where, args = "title_hash = $3 AND published_at = $4", append(args, s.titled, s.published)
	}
	had := ""
	// Even if the address is not the key, it finds an article whose title
	// or time changed. An external id is more reliable than any address.
	err = tx.QueryRowContext(ctx, `SELECT id, content_hash FROM news_articles
		WHERE source = $1 AND (`+where+` OR unique_by <> 'external_id' AND canonical_url = $2)
		ORDER BY CASE WHEN `+where+` THEN 0 ELSE 1 END LIMIT 1`, args...).Scan(&id, &had)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = tx.QueryRowContext(ctx, `INSERT INTO news_articles
			(id, source, press, unique_by, url, canonical_url, external_id, title, title_hash, raw_text, authors, language, published_at, content_hash,
			collected_at, changed_at, expires_at, compared)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, FALSE)
			ON CONFLICT `+conflicts[s.by]+` DO UPDATE SET content_hash = news_articles.content_hash RETURNING id`,
			strings.ToLower(rand.Text()), s.Source, a.Press, s.by, s.URL, s.Canonical, a.ExternalID, a.Title, s.titled, s.text, s.authors, a.Language,
			s.published, s.content, db.Micros(s.FetchedAt), db.Micros(s.now), db.Micros(s.FetchedAt.Add(s.retention))).Scan(&id)
		return id, Inserted, err
	case err != nil || had == s.content:
		return id, Same, err
	}
	if err = keepVersion(ctx, tx, id, s.now); err == nil {
		_, err = tx.ExecContext(ctx, `UPDATE news_articles SET press = $2, url = $3, canonical_url = $4, external_id = $5, title = $6, title_hash = $7,
			raw_text = $8, authors = $9, language = $10, published_at = $11, content_hash = $12, changed_at = $13, unique_by = $14, compared = FALSE,
			version = version + 1 WHERE id = $1`,
			id, a.Press, s.URL, s.Canonical, a.ExternalID, a.Title, s.titled, s.text, s.authors, a.Language, s.published, s.content,
			db.Micros(s.now), s.by)
	}
	return id, Changed, err
}

// describe stores what is not part of what a reader sees: a change of it alone is no new
// version of the article.
func describe(ctx context.Context, tx *sql.Tx, id string, a provider.Article) error {
	form, paywall := cmp.Or(string(a.Type), "article"), ""
	if a.Live {
		form = "live_blog"
	}
	switch {
	case a.Paywalled:
		paywall = "teaser"
	case a.Metered:
		paywall = "metered"
	}
	_, err := tx.ExecContext(ctx, `UPDATE news_articles SET description = $2, section = $3, tags = $4, images = $5, modified_at = $6, form = $7, simhash = $8,
		compared = CASE WHEN simhash = $8 THEN compared ELSE FALSE END, paywall = $9 WHERE id = $1`,
		id, a.Description, a.Section, list(a.Tags), list(a.Images), micros(a.Modified), form, int64(simhash.Of(a.Body)), paywall)
	return err
}

// list returns texts as JSON.
func list(texts []string) string {
	b, _ := json.Marshal(append([]string{}, texts...)) // texts always can be
	return string(b)
}

// micros returns a time as the tables have it: 0 for none.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return db.Micros(t)
}

// timeOf returns a time of the tables; zero for none.
func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return db.Time(micros)
}

func remember(ctx context.Context, tx *sql.Tx, r Row, state string) error {
	at := micros(r.SitemapAt)
	_, err := tx.ExecContext(ctx, `INSERT INTO news_urls (source, url_hash, state, sitemap_at, fetched_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (source, url_hash) DO UPDATE SET state = excluded.state, refusals = 0, sitemap_at = COALESCE(CASE WHEN excluded.sitemap_at > news_urls.sitemap_at THEN excluded.sitemap_at ELSE news_urls.sitemap_at END, excluded.sitemap_at), fetched_at = excluded.fetched_at
		WHERE news_urls.state <> 'purged'`, r.Source, Hash(r.Canonical), state, at, db.Micros(r.FetchedAt))
	return err
}

// Stored is an article that is stored already; its ID is "" if there is none.
type Stored struct {
	ID, URL, Title string
	Published      time.Time // zero: unknown
	text           string
	simhash        uint64
}

// Under returns a publisher's article with a canonical address.
func Under(ctx context.Context, d *db.DB, source, canonical string) (Stored, error) {
	return first(ctx, d, "looking for the article at an address", `source = $1 AND canonical_url = $2`, source, canonical)
}

// SameText returns a stored article with an article's title and text at another address than
// these, and with another external id.
func SameText(ctx context.Context, d *db.DB, source string, a provider.Article, textMaxLength int, canonical, asked string) (Stored, error) {
	return first(ctx, d, "looking for a text at another address", `source = $1 AND title_hash = $2 AND raw_text = $3 AND canonical_url NOT IN ($4, $5)
		AND (external_id = '' OR external_id <> $6)`, source, titleHash(a.Title), Cut(a.Body, textMaxLength), canonical, asked, a.ExternalID)
}

// first returns the oldest article that fulfils a condition.
func first(ctx context.Context, d *db.DB, doing, where string, args ...any) (s Stored, err error) {
	var hash, at int64
	err = d.QueryRowContext(ctx, `SELECT id, url, title, raw_text, simhash, published_at FROM news_articles WHERE `+where+` ORDER BY collected_at, id LIMIT 1`, args...).
		Scan(&s.ID, &s.URL, &s.Title, &s.text, &hash, &at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Stored{}, fmt.Errorf("%s: %w", doing, err)
	}
	s.simhash, s.Published = uint64(hash), timeOf(at)
	return s, nil
}

// Like reports whether a page has the same article: its title or nearly its text.
func (s Stored) Like(a provider.Article, l Limits) bool {
	return a.Title != "" && a.Title == s.Title || simhash.Same(simhash.Of(a.Body), s.simhash) || Cut(a.Body, l.TextMaxLength) == s.text
}

// Readdress gives a stored article another canonical address, unless another article has it.
func Readdress(ctx context.Context, d *db.DB, id, canonical string) error {
	return d.Write(ctx, "changing the address of an article", `UPDATE news_articles SET canonical_url = $2 WHERE id = $1
		AND NOT EXISTS (SELECT 1 FROM news_articles AS other WHERE other.source = news_articles.source AND other.canonical_url = $2)`, id, canonical)
}

// Refuse records that an article was refused, so that it is requested after the others next time.
// A stored version stays. Without counts it was the site that refused: the refusal counts only
// where there is none, and the article's date in the sitemap is not taken as known.
func Refuse(ctx context.Context, d *db.DB, r Row, now time.Time, counts bool) error {
	at, more := micros(r.SitemapAt), 0
	if counts {
		more = 1
	}
	return d.Write(ctx, "recording a refusal", `INSERT INTO news_urls (source, url_hash, state, sitemap_at, fetched_at, refusals) VALUES ($1, $2, 'refused', $3, $4, 1)
		ON CONFLICT (source, url_hash) DO UPDATE SET refusals = news_urls.refusals + CASE WHEN news_urls.refusals = 0 THEN 1 ELSE CAST($5 AS INTEGER) END,
			sitemap_at = CASE WHEN CAST($5 AS INTEGER) = 1 AND (excluded.sitemap_at > news_urls.sitemap_at OR `+d.Never("news_urls.sitemap_at")+`) THEN excluded.sitemap_at ELSE news_urls.sitemap_at END
		WHERE news_urls.state <> 'purged'`, r.Source, Hash(r.Canonical), at, db.Micros(now), more)
}

// Known is what is recorded about an address.
type Known struct {
	State     string    // stored, empty, paywalled, reserved, refused, purged; "" for nothing
	SitemapAt time.Time // zero: the sitemap had no date
	Refusals  int       // in a row
	FetchedAt time.Time // the last time that its page was received
}

// maxRefusals is how often an address may be refused before it is not requested again, if it was never stored.
const maxRefusals = 3

// Fresh reports whether there is a reason to fetch the address again: the sitemap's
// date, or a refusal that may have been temporary.
func (k Known) Fresh(sitemapAt time.Time) bool {
	switch k.State {
	case "":
		return true
	case "purged":
		return false
	case "refused":
		return k.Refusals < maxRefusals || sitemapAt.After(k.SitemapAt)
	}
	return sitemapAt.After(k.SitemapAt)
}

// Lookup returns what is recorded about an address.
func Lookup(ctx context.Context, d *db.DB, source, canonical string) (Known, error) {
	var k Known
	var at, fetched int64
	err := d.QueryRowContext(ctx, `SELECT state, sitemap_at, refusals, fetched_at FROM news_urls WHERE source = $1 AND url_hash = $2`, source, Hash(canonical)).Scan(&k.State, &at, &k.Refusals, &fetched)
	if errors.Is(err, sql.ErrNoRows) {
		return Known{}, nil
	}
	if err != nil {
		return Known{}, fmt.Errorf("looking an address up: %w", err)
	}
	k.FetchedAt, k.SitemapAt = db.Time(fetched), timeOf(at)
	return k, err
}

// reservedKept is how long it is kept why an article was withheld.
const reservedKept = 30 * 24 * time.Hour

// Purge removes the articles whose retention has ended, and returns their number. Hashes of
// their addresses and of their keys stay.
func Purge(ctx context.Context, d *db.DB, now time.Time) (n int64, err error) {
	err = d.Do(ctx, "removing expired articles", func(tx *sql.Tx) error {
		n = 0
		rows, err := tx.QueryContext(ctx, `DELETE FROM news_articles WHERE expires_at <= $1 RETURNING id, source, canonical_url, unique_by, external_id, title_hash, published_at`, db.Micros(now))
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has its error
		type expired struct{ id, source, address, key string }
		var gone []expired
		for rows.Next() {
			var e expired
			var canonical, externalID, titleHash string
			var by provider.Unique
			var published int64
			if err := rows.Scan(&e.id, &e.source, &canonical, &by, &externalID, &titleHash, &published); err != nil {
				return err
			}
			e.address, e.key = Hash(canonical), keyHash(by, canonical, externalID, titleHash, published)
			gone = append(gone, e)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, e := range gone {
			for _, hash := range []string{e.address, e.key} {
				if _, err := tx.ExecContext(ctx, `INSERT INTO news_urls (source, url_hash, state, sitemap_at, fetched_at) VALUES ($1, $2, 'purged', $4, $3)
					ON CONFLICT (source, url_hash) DO UPDATE SET state = 'purged'`, e.source, hash, db.Micros(now), int64(0)); err != nil {
					return err
				}
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM news_versions WHERE article_id = $1`, e.id); err != nil {
				return err
			}
		}
		n = int64(len(gone))
		_, err = tx.ExecContext(ctx, `DELETE FROM news_reserved WHERE decided_at <= $1`, db.Micros(now.Add(-reservedKept)))
		return err
	})
	return n, err
}

// Health counts how well a provider's pages could be read in a run.
type Health struct {
	Parsed int `json:"parsed"` // pages that were received
	Failed int `json:"failed"` // of them, pages that could not be read at all
	Titled int `json:"titled"`
	Bodied int `json:"bodied"`
	Dated  int `json:"dated"`
}

// past is the number of earlier runs with which alarms compare.
const past = 10

// Note stores a run's health and returns the sum of the provider's earlier runs.
func Note(ctx context.Context, d *db.DB, source, runID string, h Health, now time.Time) (before Health, err error) {
	err = d.Do(ctx, fmt.Sprintf("recording how well the pages of %s could be read", source), func(tx *sql.Tx) error {
		before = Health{}
		err := tx.QueryRowContext(ctx, `SELECT COALESCE(SUM(parsed), 0), COALESCE(SUM(failed), 0), COALESCE(SUM(titled), 0), COALESCE(SUM(bodied), 0), COALESCE(SUM(dated), 0)
			FROM (SELECT * FROM news_runs WHERE source = $1 AND run_id <> $2 ORDER BY ended_at DESC LIMIT $3) AS recent`, source, runID, past).
			Scan(&before.Parsed, &before.Failed, &before.Titled, &before.Bodied, &before.Dated)
		if err != nil || h.Parsed == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO news_runs (source, run_id, ended_at, parsed, failed, titled, bodied, dated) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (source, run_id) DO UPDATE SET ended_at = excluded.ended_at, parsed = news_runs.parsed + excluded.parsed, failed = news_runs.failed + excluded.failed,
				titled = news_runs.titled + excluded.titled, bodied = news_runs.bodied + excluded.bodied, dated = news_runs.dated + excluded.dated`,
			source, runID, db.Micros(now), h.Parsed, h.Failed, h.Titled, h.Bodied, h.Dated)
		return err
	})
	return before, err
}

// Alias records another address of a saved article: the one in the sitemap.
func Alias(ctx context.Context, d *db.DB, r Row, canonical string, out Outcome) error {
	state := "stored"
	switch out {
	case "":
		state = "empty"
	case Paywalled, Purged:
		state = string(out)
	}
	r.Canonical = canonical
	return d.Do(ctx, "recording an address", func(tx *sql.Tx) error { return remember(ctx, tx, r, state) })
}
