package docs

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// Filter chooses rows of the database; an empty field chooses all.
type Filter struct {
	Providers []string
	Since     time.Time // of pages that changed then or later
	Look      db.Look
}

// Page is a page of a provider.
type Page struct {
	Provider     string     `parquet:"provider,dict" doc:"id of the provider"`
	URL          string     `parquet:"url" doc:"its address, as it was found"`
	Key          string     `parquet:"key" doc:"its normalised URL, which identifies it"`
	Status       string     `parquet:"status,dict" doc:"indexed, not_modified, skipped, blocked, failed, deleted, too_large; or, while it waits, queued, retry, rate_limited"`
	Reason       string     `parquet:"reason,dict" doc:"why it has this status; empty: none was needed"`
	Title        string     `parquet:"title" doc:"its title"`
	Depth        int64      `parquet:"depth" doc:"links from a seed URL"`
	HTTPStatus   int64      `parquet:"http_status" doc:"HTTP status of the last answer; 0: none"`
	Chunks       int64      `parquet:"chunks" doc:"number of its chunks"`
	ContentHash  string     `parquet:"content_hash" doc:"of its content; empty: it has none"`
	DiscoveredAt time.Time  `parquet:"discovered_at,timestamp(microsecond)" doc:"when the crawl found it"`
	FetchedAt    *time.Time `parquet:"fetched_at,optional,timestamp(microsecond)" doc:"last answer 200 or 304; null: never"`
	ChangedAt    *time.Time `parquet:"changed_at,optional,timestamp(microsecond)" doc:"when its content became what it is; null: never"`
	GoneAt       *time.Time `parquet:"gone_at,optional,timestamp(microsecond)" doc:"since when it is deleted; null: it is not"`
}

// Chunk is a chunk of a page, without its whole text, which the database does not keep.
type Chunk struct {
	ID       string   `parquet:"id" doc:"the chunk's id, also in the hand-off"`
	Provider string   `parquet:"provider,dict" doc:"id of the provider"`
	Key      string   `parquet:"key" doc:"the page"`
	URL      string   `parquet:"url" doc:"the page's address"`
	Ordinal  int64    `parquet:"ordinal" doc:"its place in the page, from 0"`
	Heading  []string `parquet:"heading,list" doc:"headings above it, outermost first"`
	Tokens   int64    `parquet:"tokens" doc:"its length in tokens"`
	Hash     string   `parquet:"hash" doc:"of its text"`
	Preview  string   `parquet:"preview" doc:"its first characters: at most 200 on one line, in the database 500; the whole text is in the hand-off alone"`
}

// Link is a link of a page that is in scope.
type Link struct {
	Provider string `parquet:"provider,dict" doc:"id of the provider"`
	FromKey  string `parquet:"from_key" doc:"the page that has the link"`
	Ordinal  int64  `parquet:"ordinal" doc:"its place in the page, from 0"`
	ToKey    string `parquet:"to_key" doc:"the page that it leads to"`
	ToURL    string `parquet:"to_url" doc:"the link's address, as it was found"`
}

// Pages yields pages by provider and key.
func Pages(ctx context.Context, d *db.DB, f Filter) iter.Seq2[Page, error] {
	return selected(ctx, d, f, func(r *sql.Rows) (p Page, err error) {
		var discovered, fetched, changed, gone int64
		err = r.Scan(&p.Provider, &p.URL, &p.Key, &p.Status, &p.Reason, &p.Title, &p.Depth, &p.HTTPStatus, &p.Chunks, &p.ContentHash, &discovered, &fetched, &changed, &gone)
		p.DiscoveredAt, p.FetchedAt, p.ChangedAt, p.GoneAt = db.Time(discovered), db.OptionalTime(fetched), db.OptionalTime(changed), db.OptionalTime(gone)
		return p, err
	}, `SELECT p.provider, p.address, p.key, p.status, p.reason, p.title, p.depth, p.http_status, p.chunks, p.content_hash, p.discovered_at, p.fetched_at, p.changed_at, p.gone_at
		FROM docs_pages p WHERE %s ORDER BY p.provider, p.key`)
}

// Chunks yields chunks by provider, page and place.
func Chunks(ctx context.Context, d *db.DB, f Filter) iter.Seq2[Chunk, error] {
	return selected(ctx, d, f, func(r *sql.Rows) (c Chunk, err error) {
		var heading string
		if err := r.Scan(&c.ID, &c.Provider, &c.Key, &c.URL, &c.Ordinal, &heading, &c.Tokens, &c.Hash, &c.Preview); err != nil {
			return c, err
		}
		c.Preview = Shown(c.Preview) // of an export, too, a person is the reader
		if err := json.Unmarshal([]byte(heading), &c.Heading); err != nil {
			return c, fmt.Errorf("the headings of chunk %s: %w", c.ID, err)
		}
		return c, nil
	}, `SELECT c.id, c.provider, c.key, p.address, c.ordinal, c.heading, c.tokens, c.hash, c.preview
		FROM docs_chunks c JOIN docs_pages p ON p.provider = c.provider AND p.key = c.key WHERE %s ORDER BY c.provider, c.key, c.ordinal`)
}

// Links yields links by provider, page and place.
func Links(ctx context.Context, d *db.DB, f Filter) iter.Seq2[Link, error] {
	return selected(ctx, d, f, func(r *sql.Rows) (l Link, err error) {
		return l, r.Scan(&l.Provider, &l.FromKey, &l.Ordinal, &l.ToKey, &l.ToURL)
	}, `SELECT l.provider, l.from_key, l.ordinal, l.to_key, l.to_address
		FROM docs_links l JOIN docs_pages p ON p.provider = l.provider AND p.key = l.from_key WHERE %s ORDER BY l.provider, l.from_key, l.ordinal`)
}

// selected yields the rows of a query in which pages are p and %s stands for the filter.
func selected[T any](ctx context.Context, d *db.DB, f Filter, scan func(*sql.Rows) (T, error), query string) iter.Seq2[T, error] {
	var since int64
	if !f.Since.IsZero() {
		since = db.Micros(f.Since)
	}
	where := `(CAST($1 AS BIGINT) = 0 OR p.provider ` + d.AnyOf(2) + `) AND (p.changed_at >= $3 OR p.gone_at >= $3 OR ` + d.Never("$3") + `)`
	and, limit, args := f.Look.SQL(int64(len(f.Providers)), d.List(f.Providers), since)
	return db.Select(ctx, d, scan, fmt.Sprintf(query, where+and)+limit, args...)
}

// ProvidersThere returns the ids of the providers that the database knows.
func ProvidersThere(ctx context.Context, d *db.DB) ([]string, error) {
	return db.Texts(ctx, d, `SELECT DISTINCT provider FROM docs_runs ORDER BY provider`)
}
