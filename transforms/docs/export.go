package docs

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/rows"
	told "github.com/newsfork/seed-engine/transforms/docs/asked"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// pageRow is a page of a provider.
type pageRow struct {
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

	rights.Verdicts
	Rights string `parquet:"rights" doc:"the lines that say so, each with its document's hash and time: JSON"`
}

// chunkRow is a chunk of a page, without its whole text, which the database does not keep.
type chunkRow struct {
	ID       string   `parquet:"id" doc:"the chunk's id, also in the hand-off"`
	Provider string   `parquet:"provider,dict" doc:"id of the provider"`
	Key      string   `parquet:"key" doc:"the page"`
	URL      string   `parquet:"url" doc:"the page's address"`
	Ordinal  int64    `parquet:"ordinal" doc:"its place in the page, from 0"`
	Heading  []string `parquet:"heading,list" doc:"headings above it, outermost first, and list items and terms that it continues"`
	Tokens   int64    `parquet:"tokens" doc:"its length in tokens"`
	Hash     string   `parquet:"hash" doc:"of its text"`
	Preview  string   `parquet:"preview" doc:"its first characters: at most 200 on one line, in the database 500; the whole text is in the hand-off alone"`
}

// linkRow is a link of a page that is in scope.
type linkRow struct {
	Provider string `parquet:"provider,dict" doc:"id of the provider"`
	FromKey  string `parquet:"from_key" doc:"the page that has the link"`
	Ordinal  int64  `parquet:"ordinal" doc:"its place in the page, from 0"`
	ToKey    string `parquet:"to_key" doc:"the page that it leads to"`
	ToURL    string `parquet:"to_url" doc:"the link's address, as it was found"`
}

// Rows are the kinds of rows that the job finds. allowed reports whether a provider's terms allow to show a whole page.
func Rows(allowed func(ctx context.Context, src explore.Source, provider string) (bool, error)) []rows.What {
	finds := Finds(allowed)
	of := rows.What{Job: Job, Version: 1, Filters: []string{"provider", "since"}, Migrate: Migrate, Names: providersThere}
	pages, chunks, links := of, of, of
	pages.Name, pages.About, pages.Since = "pages", "The pages of API documentation that the docs job found, and what became of each.", "when the page changed or was deleted"
	pages.Table, pages.Find, pages.Changed = "PROVIDER STATUS REASON… TITLE… URL", &finds[0], changedPages
	pages.Event = &rows.Event{Type: "page.changed", Subject: "url", ID: []string{"provider", "key", "changed_at", "gone_at"}}
	pages.Failed = func(r explore.Record) bool {
		return slices.Contains([]any{string(Failed), string(Blocked), string(TooLarge)}, r.Column("status").Value)
	}
	chunks.Name, chunks.About, chunks.Since = "chunks", "The chunks of those pages, with a preview of their text.", "when their page changed"
	chunks.Table, chunks.Find = "PROVIDER ORDINAL TOKENS HEADING… URL", &finds[1]
	links.Name, links.About, links.Since = "links", "The links between those pages.", "when the page that has the link changed"
	links.Table = "PROVIDER FROM=from_key TO=to_url"
	return []rows.What{rows.InDB(pages, pageRows), rows.InDB(chunks, chunkRows), rows.InDB(links, linkRows)}
}

// pageRows yields pages by provider and key.
func pageRows(ctx context.Context, d *db.DB, f rows.Filter) iter.Seq2[pageRow, error] {
	return selected[pageRow](ctx, d, f, `SELECT p.provider, p.address, p.key, p.status, p.reason, p.title, p.depth, p.http_status, p.chunks, p.content_hash, p.discovered_at, p.fetched_at, p.changed_at, p.gone_at,
		p.rights_search, p.rights_ai_input, p.rights_ai_train, p.rights_archive, p.rights
		FROM docs_pages p WHERE %s ORDER BY p.provider, p.key`)
}

// chunkRows yields chunks by provider, page and place.
func chunkRows(ctx context.Context, d *db.DB, f rows.Filter) iter.Seq2[chunkRow, error] {
	return rows.Map(selected[chunkRow](ctx, d, f, `SELECT c.id, c.provider, c.key, p.address, c.ordinal, c.heading, c.tokens, c.hash, c.preview
		FROM docs_chunks c JOIN docs_pages p ON p.provider = c.provider AND p.key = c.key WHERE %s ORDER BY c.provider, c.key, c.ordinal`), func(c chunkRow) chunkRow {
		c.Preview = shown(c.Preview) // of an export, too, a person is the reader
		return c
	})
}

// linkRows yields links by provider, page and place.
func linkRows(ctx context.Context, d *db.DB, f rows.Filter) iter.Seq2[linkRow, error] {
	return selected[linkRow](ctx, d, f, `SELECT l.provider, l.from_key, l.ordinal, l.to_key, l.to_address
		FROM docs_links l JOIN docs_pages p ON p.provider = l.provider AND p.key = l.from_key WHERE %s ORDER BY l.provider, l.from_key, l.ordinal`)
}

// selected yields the rows of a query in which pages are p.
func selected[T any](ctx context.Context, d *db.DB, f rows.Filter, query string) iter.Seq2[T, error] {
	return rows.Select[T](ctx, d, f, "p.provider", "p.changed_at >= $3 OR p.gone_at >= $3", query)
}

// changedPages yields the pages that changed, by provider and URL.
func changedPages(ctx context.Context, src rows.Source) iter.Seq2[rows.Change, error] {
	return func(yield func(rows.Change, error) bool) {
		pages, err := told.ChangesSince(ctx, src.DB, src.Since, "", math.MaxInt32)
		if err != nil {
			yield(rows.Change{}, err)
			return
		}
		slices.SortFunc(pages, func(a, b told.ChangedPage) int {
			return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.URL, b.URL))
		})
		for _, p := range pages {
			if !yield(rows.Change{Kind: rows.KindOf(p.Kind == "new", p.Kind == "deleted"), Source: p.Provider, Item: p.URL, What: p.Title}, nil) {
				return
			}
		}
	}
}

// providersThere returns the ids of the providers that the database knows.
func providersThere(ctx context.Context, d *db.DB) ([]string, error) {
	return db.Texts(ctx, d, `SELECT DISTINCT provider FROM docs_runs ORDER BY provider`)
}
