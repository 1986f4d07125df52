package raw

import (
	"context"
	"iter"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// ArticleRow is an article as the database has it, until it expires.
type ArticleRow struct {
	ID           string     `parquet:"id" doc:"the article's id"`
	Publisher    string     `parquet:"publisher,dict" doc:"id of the publisher"`
	Press        string     `parquet:"press,dict" doc:"the publisher's name"`
	URL          string     `parquet:"url" doc:"as it was fetched"`
	CanonicalURL string     `parquet:"canonical_url" doc:"the address that the page names as its own, else the fetched one, in the form in which addresses are compared: https, without www. and tracking parameters; to fetch it take url"`
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
	Form         string     `parquet:"form,dict" doc:"article, live_blog, forum, list, product, documentation or service: what the page is by its structure"`
	Version      int64      `parquet:"version" doc:"1, and one more with each change; article-versions has the earlier ones"`
	CopyOf       string     `parquet:"copy_of,dict" doc:"id of another publisher's earlier article with nearly the same text, which may have expired; empty: none"`
	Paywall      string     `parquet:"paywall,dict" doc:"metered: its publisher says that it is not free, and the text is the part for everybody, or one that everybody may read some of; teaser: the text is at most 800 characters of the beginning; empty: none is known"`

	rights.Verdicts
	Rights string `parquet:"rights" doc:"the lines that say so, each with its document's hash and time: JSON"`
}

// versionRow is an earlier version of an article, which is kept until the article expires.
type versionRow struct {
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

// imageRow is an image that an article names.
type imageRow struct {
	Publisher  string     `parquet:"publisher,dict" doc:"id of the publisher"`
	ArticleID  string     `parquet:"article_id" doc:"the article's id"`
	ArticleURL string     `parquet:"article_url" doc:"the article's address"`
	URL        string     `parquet:"url" doc:"the image's address"`
	Position   int64      `parquet:"position" doc:"among the article's images, from 1"`
	Hash       string     `parquet:"hash" doc:"SHA-256 of its bytes, which are the store's object images/news/{publisher}/ab/abcd….jpg; empty: they were never received"`
	Type       string     `parquet:"type,dict" doc:"by its bytes: image/jpeg, image/png, image/gif, image/webp or image/avif"`
	Bytes      int64      `parquet:"bytes" doc:"its size"`
	Width      int64      `parquet:"width" doc:"pixels"`
	Height     int64      `parquet:"height" doc:"pixels"`
	FetchedAt  *time.Time `parquet:"fetched_at,optional,timestamp(microsecond)" doc:"when its bytes were received; null: never"`
	Failure    string     `parquet:"failure" doc:"why the last request for it brought nothing; empty: it did"`
}

// Rows are the kinds of rows that a job finds.
func Rows(job string) []rows.What {
	finds := Finds()
	articles := rows.What{Job: job, Version: 1, Filters: []string{"publisher", "since"}, Migrate: Migrate, Names: publishersThere}
	versions, reserved, pictures := articles, articles, articles
	articles.Name, articles.About, articles.Since = "articles", "The articles of publishers that have not expired.", "when the article was fetched first, or changed"
	articles.Table, articles.Find = "PUBLISHER PUBLISHED=published_at ID TITLE… URL", &finds
	articles.Changed = func(ctx context.Context, src rows.Source) iter.Seq2[rows.Change, error] {
		return rows.Map(Articles(ctx, src.DB, rows.Filter{Since: src.Since}, src.DB.Now()), func(a ArticleRow) rows.Change {
			return rows.Change{Kind: rows.KindOf(!a.CollectedAt.Before(src.Since), false), Source: a.Publisher, Item: a.URL, What: a.Title}
		})
	}
	articles.Event = &rows.Event{Type: "article.stored", Subject: "url", ID: []string{"publisher", "id", "changed_at"}}
	versions.Name, versions.About, versions.Since = "article-versions", "The earlier versions of those articles, the last 20 of each.", "when the next version was found"
	versions.Table = "PUBLISHER VERSION UNTIL=until_at TITLE… URL"
	reserved.Name, reserved.Since, reserved.Table = "articles-reserved", "when the run decided", "PUBLISHER PURPOSE LINE RAW… URL"
	reserved.About = "The articles that a run with --purpose did not fetch or did not store, and the line that reserves each."
	pictures.Name, pictures.Since, pictures.Table = "article-images", "when the bytes were received", "PUBLISHER ARTICLE=article_id TYPE BYTES URL FAILURE…"
	pictures.About = "The images of those articles, whose bytes --images keeps in the store."
	pictures.Failed = func(r explore.Record) bool { return r.Column("failure").Value != "" }
	return []rows.What{rows.InDB(articles, fresh(Articles)), rows.InDB(versions, fresh(versionRows)), rows.InDB(reserved, reservedRows), rows.InDB(pictures, fresh(imageRows))}
}

// fresh reads what has not expired by the database's clock.
func fresh[T any](read func(context.Context, *db.DB, rows.Filter, time.Time) iter.Seq2[T, error]) func(context.Context, *db.DB, rows.Filter) iter.Seq2[T, error] {
	return func(ctx context.Context, d *db.DB, f rows.Filter) iter.Seq2[T, error] {
		return read(ctx, d, f, d.Now())
	}
}

// Articles yields the articles that have not expired at a time.
func Articles(ctx context.Context, d *db.DB, f rows.Filter, now time.Time) iter.Seq2[ArticleRow, error] {
	return rows.Select[ArticleRow](ctx, d, f, "source", "changed_at >= $3",
		`SELECT id, source, press, url, canonical_url, external_id, title, raw_text, authors, language, published_at, collected_at, changed_at, expires_at, content_hash,
		description, section, tags, images, modified_at, form, version, copy_of, paywall,
		rights_search, rights_ai_input, rights_ai_train, rights_archive, rights
		FROM news_articles WHERE expires_at > $4 AND %s ORDER BY source, collected_at, id`, db.Micros(now))
}

// versionRows yields the earlier versions of the articles that have not expired at a time, by
// publisher, article and number.
func versionRows(ctx context.Context, d *db.DB, f rows.Filter, now time.Time) iter.Seq2[versionRow, error] {
	return rows.Select[versionRow](ctx, d, f, "source", "until_at >= $3",
		`SELECT v.article_id, a.source, a.url, v.version, v.title, v.raw_text, v.published_at, v.until_at, v.content_hash FROM news_versions v JOIN news_articles a ON a.id = v.article_id
		WHERE expires_at > $4 AND %s ORDER BY source, article_id, v.version`, db.Micros(now))
}

// imageRows yields the images of the articles that have not expired at a time, by publisher, article and position.
func imageRows(ctx context.Context, d *db.DB, f rows.Filter, now time.Time) iter.Seq2[imageRow, error] {
	return rows.Select[imageRow](ctx, d, f, "source", "fetched_at >= $3", `SELECT source, article_id, article_url, url, position, hash, type, bytes, width, height, fetched_at, failure
		FROM news_named_images WHERE expires_at > $4 AND %s ORDER BY source, article_id, position`, db.Micros(now))
}

// publishersThere returns the ids of the publishers that the database knows.
func publishersThere(ctx context.Context, d *db.DB) ([]string, error) {
	return db.Texts(ctx, d, `SELECT source FROM news_runs UNION SELECT source FROM news_articles ORDER BY source`)
}
