package raw

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// Filter chooses articles; an empty field chooses all.
type Filter struct {
	Publishers []string
	Since      time.Time // that changed then or later
	Look       db.Look
}

// ArticleRow is an article as the database has it, until it expires.
type ArticleRow struct {
	ID           string     `parquet:"id" doc:"the article's id"`
	Publisher    string     `parquet:"publisher,dict" doc:"id of the publisher"`
	Press        string     `parquet:"press,dict" doc:"the publisher's name"`
	URL          string     `parquet:"url" doc:"as it was fetched"`
	CanonicalURL string     `parquet:"canonical_url" doc:"as the page names itself"`
	ExternalID   string     `parquet:"external_id" doc:"the publisher's own id; empty: none"`
	Title        string     `parquet:"title" doc:"its title"`
	Text         string     `parquet:"text" doc:"its first 2,000 characters at most"`
	Authors      []string   `parquet:"authors,list" doc:"names"`
	Language     string     `parquet:"language,dict" doc:"its language; empty: not known"`
	PublishedAt  *time.Time `parquet:"published_at,optional,timestamp(microsecond)" doc:"when it was published; null: not known"`
	CollectedAt  time.Time  `parquet:"collected_at,timestamp(microsecond)" doc:"when it was first fetched"`
	ChangedAt    time.Time  `parquet:"changed_at,timestamp(microsecond)" doc:"when its text became what it is"`
	ExpiresAt    time.Time  `parquet:"expires_at,timestamp(microsecond)" doc:"when it is removed; remove your copy then too"`
	ContentHash  string     `parquet:"content_hash" doc:"of what a reader sees"`
	Description  string     `parquet:"description" doc:"the page's own summary; empty: none"`
	Section      string     `parquet:"section,dict" doc:"part of the publisher's site; empty: not known"`
	Tags         []string   `parquet:"tags,list" doc:"the page's keywords"`
	Images       []string   `parquet:"images,list" doc:"URLs of its pictures"`
	ModifiedAt   *time.Time `parquet:"modified_at,optional,timestamp(microsecond)" doc:"when its publisher changed it, as the page says; null: it does not say"`
	Form         string     `parquet:"form,dict" doc:"article or live_blog"`
	Version      int64      `parquet:"version" doc:"1, and one more with each change; article-versions has the earlier ones"`
	CopyOf       string     `parquet:"copy_of,dict" doc:"id of another publisher's earlier article with nearly the same text, which may have expired; empty: none"`
	Paywall      string     `parquet:"paywall,dict" doc:"metered: its publisher says that it is not free, and the text is the part for everybody, or one that everybody may read some of; teaser: the text is at most 800 characters of the beginning; empty: none is known"`
}

// VersionRow is an earlier version of an article, which is kept until the article expires.
type VersionRow struct {
	ArticleID   string     `parquet:"article_id" doc:"the article's id"`
	Publisher   string     `parquet:"publisher,dict" doc:"id of the publisher"`
	URL         string     `parquet:"url" doc:"of the article"`
	Version     int64      `parquet:"version" doc:"its number: 1 is the article as it was found; the last 20 before the article's own are kept"`
	Title       string     `parquet:"title" doc:"its title"`
	Text        string     `parquet:"text" doc:"its first 2,000 characters at most"`
	PublishedAt *time.Time `parquet:"published_at,optional,timestamp(microsecond)" doc:"when it was published, as this version said; null: not known"`
	UntilAt     time.Time  `parquet:"until_at,timestamp(microsecond)" doc:"when the next version was found"`
	ContentHash string     `parquet:"content_hash" doc:"of what a reader saw"`
}

// Articles yields the articles that have not expired at a time.
func Articles(ctx context.Context, d *db.DB, f Filter, now time.Time) iter.Seq2[ArticleRow, error] {
	and, limit, args := f.sql(d, now)
	return db.Select(ctx, d, func(r *sql.Rows) (a ArticleRow, err error) {
		var authors, tags, images string
		var published, collected, changed, expires, modified int64
		if err := r.Scan(&a.ID, &a.Publisher, &a.Press, &a.URL, &a.CanonicalURL, &a.ExternalID, &a.Title, &a.Text, &authors, &a.Language, &published, &collected, &changed, &expires, &a.ContentHash,
			&a.Description, &a.Section, &tags, &images, &modified, &a.Form, &a.Version, &a.CopyOf, &a.Paywall); err != nil {
			return a, err
		}
		for to, text := range map[*[]string]string{&a.Authors: authors, &a.Tags: tags, &a.Images: images} {
			if err := json.Unmarshal([]byte(text), to); err != nil {
				return a, fmt.Errorf("a list of article %s: %w", a.ID, err)
			}
		}
		a.ModifiedAt = db.OptionalTime(modified)
		a.PublishedAt, a.CollectedAt, a.ChangedAt, a.ExpiresAt = db.OptionalTime(published), db.Time(collected), db.Time(changed), db.Time(expires)
		return a, nil
	}, `SELECT id, source, press, url, canonical_url, external_id, title, raw_text, authors, language, published_at, collected_at, changed_at, expires_at, content_hash,
		description, section, tags, images, modified_at, form, version, copy_of, paywall
		FROM news_articles WHERE (CAST($1 AS BIGINT) = 0 OR source `+d.AnyOf(2)+`) AND (changed_at >= $3 OR `+d.Never("$3")+`) AND expires_at > $4`+and+` ORDER BY source, collected_at, id`+limit, args...)
}

// Versions yields the earlier versions of the articles that have not expired at a time, by
// publisher, article and number.
func Versions(ctx context.Context, d *db.DB, f Filter, now time.Time) iter.Seq2[VersionRow, error] {
	and, limit, args := f.sql(d, now)
	return db.Select(ctx, d, func(r *sql.Rows) (v VersionRow, err error) {
		var published, until int64
		err = r.Scan(&v.ArticleID, &v.Publisher, &v.URL, &v.Version, &v.Title, &v.Text, &published, &until, &v.ContentHash)
		v.PublishedAt, v.UntilAt = db.OptionalTime(published), db.Time(until)
		return v, err
	}, `SELECT v.article_id, a.source, a.url, v.version, v.title, v.raw_text, v.published_at, v.until_at, v.content_hash FROM news_versions v JOIN news_articles a ON a.id = v.article_id
		WHERE (CAST($1 AS BIGINT) = 0 OR source `+d.AnyOf(2)+`) AND (until_at >= $3 OR `+d.Never("$3")+`) AND expires_at > $4`+and+` ORDER BY source, article_id, v.version`+limit, args...)
}

// sql returns what db.Look.SQL does, with the arguments $1 and $2 for the publishers, $3
// for the time since when, and $4 for now.
func (f Filter) sql(d *db.DB, now time.Time) (and, limit string, args []any) {
	var since int64
	if !f.Since.IsZero() {
		since = db.Micros(f.Since)
	}
	return f.Look.SQL(int64(len(f.Publishers)), d.List(f.Publishers), since, db.Micros(now))
}

// PublishersThere returns the ids of the publishers that the database knows.
func PublishersThere(ctx context.Context, d *db.DB) ([]string, error) {
	return db.Texts(ctx, d, `SELECT source FROM news_runs UNION SELECT source FROM news_articles ORDER BY source`)
}
