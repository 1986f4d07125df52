//go:build unix

package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/rows"
)

var day = time.Date(2026, 1, 28, 9, 0, 0, 0, time.UTC)

// filled is a database with some rows of every table that is exported.
func filled(t *testing.T, d *db.DB) {
	t.Helper()
	d.Now = func() time.Time { return day.Add(24 * time.Hour) }
	migrated(t, d)
	fill(t, d)
	fillNewer(t, d)
}

// fillNewer writes rows into the tables that came later than the views.
func fillNewer(t *testing.T, d *db.DB) {
	t.Helper()
	insert(t, d, `INSERT INTO catalog_tags (site, product_key, asked, model, tags, tagged_at) VALUES ('gadgets', 'g-1', 'h', 'm', '["lamp","plug"]', $1)`,
		`INSERT INTO catalog_images (site, url, hash, type, bytes, width, height, etag, last_modified, fetched_at, asked_at, asked_in, again_at, failure) VALUES ('gadgets', 'https://cdn.example/1.png', 'abc', 'image/png', 70, 30, 10, '', '', $2, $2, 1, $2, '')`,
		`INSERT INTO catalog_product_images (site, product_key, url, field, position, first_seen, last_seen, gone_at) VALUES ('gadgets', 'g-1', 'https://cdn.example/1.png', 'picture', 1, $1, $2, $0), ('matter', 'm-1', 'https://cdn.example/1.png', 'picture', 1, $1, $1, $1)`,
		`INSERT INTO news_versions (article_id, version, title, raw_text, published_at, content_hash, until_at) VALUES ('1', 2, 'Two', 'Second', $1, 'h2', $2), ('1', 1, 'First', 'Older text', $0, 'h1', $1), ('2', 1, 'Expired before', 'Text', $0, 'h', $2)`,
		`INSERT INTO news_reserved (source, url, url_hash, purpose, verdict, place, line, raw, sha256, read_at, rights, decided_at) VALUES ('daily', 'https://daily.example/3', 'h', 'ai-train', 'reserved', 'https://daily.example/robots.txt', 2, 'Content-Signal: ai-train=no', 'abc', $2, '{}', $1)`,
		`INSERT INTO news_images (source, url, hash, type, bytes, width, height, etag, last_modified, fetched_at, asked_at, asked_in, again_at, failure) VALUES ('daily', 'https://cdn.example/2.png', 'abc', 'image/png', 70, 30, 10, '', '', $2, $2, 1, $2, '')`,
		`UPDATE news_articles SET images = '["https://cdn.example/none.png", "https://cdn.example/2.png"]' WHERE id = '1' AND $1 < $2`,
		`UPDATE news_articles SET rights = '{"statements":[]}', rights_search = 'allowed', rights_ai_input = 'unsaid', rights_ai_train = 'reserved', rights_archive = 'contradictory' WHERE id = '1' AND $1 < $2`,
		`UPDATE docs_pages SET rights = '{"statements":[]}', rights_search = 'allowed', rights_ai_input = 'unsaid', rights_ai_train = 'reserved', rights_archive = 'contradictory' WHERE provider = 'acme' AND $1 < $2`)
}

// migrated brings all tables up to date.
func migrated(t *testing.T, d *db.DB) {
	t.Helper()
	for _, w := range All {
		if w.NeedsDB() {
			require.NoError(t, w.Migrate(t.Context(), d))
		}
	}
}

// fill writes some rows into every table.
func fill(t *testing.T, d *db.DB) {
	t.Helper()
	insert(t, d,
		`INSERT INTO docs_runs (session, provider, run_id, state, started_at, active_at) VALUES ('s', 'acme', 'r', 'done', $1, $2), ('s', 'bolt', 'r', 'done', $1, $2)`,
		`INSERT INTO docs_pages (provider, key, address, status, depth, session, seq, http_status, content_hash, title, chunks, discovered_at, fetched_at, changed_at) VALUES
			('acme', 'https://acme.example/a', 'https://acme.example/a', 'indexed', 0, 's', 0, 200, 'h', '=SUM(1)', 2, $1, $1, $1),
			('acme', 'https://acme.example/b', 'https://acme.example/b?', 'indexed', 1, 's', 1, 200, 'h', 'B', 0, $1, $2, $2),
			('bolt', 'https://bolt.example/', 'https://bolt.example/', 'queued', 0, 's', 0, 0, '', '', 0, $2, $0, $0)`,
		`INSERT INTO docs_chunks (provider, key, ordinal, id, heading, tokens, hash, preview) SELECT 'acme', 'https://acme.example/a', n, 'c' || n, '["A","§ 1"]', 7, 'h', 'text' FROM (SELECT 0 AS n UNION SELECT 1) AS two WHERE $1 < $2`,
		`INSERT INTO docs_links (provider, from_key, ordinal, to_key, to_address) SELECT 'acme', 'https://acme.example/a', 0, 'https://acme.example/b', 'https://acme.example/b?' WHERE $1 < $2`,
		`INSERT INTO catalog_crawls (site, started_at, finished_at) VALUES ('gadgets', $1, $2), ('matter', $1, $2)`,
		`INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at, state, gone_at) VALUES
			('gadgets', 'g-1', 'https://gadgets.example/1', '{"price":{"amount":12.5,"currency":"EUR"}}', 'h', $1, $2, $2, 'changed', $0),
			('matter', 'm-1', 'https://matter.example/1', '{}', 'h', $1, $1, $1, 'gone', $2)`,
		`INSERT INTO catalog_changes (site, product_key, changed_at, field, was, became, run_id) VALUES ('gadgets', 'g-1', $1, 'price', NULL, '{"amount":10,"currency":"EUR"}', 'r'), ('gadgets', 'g-1', $2, 'price', '{"amount":10,"currency":"EUR"}', '{"amount":12.5,"currency":"EUR"}', 'r')`,
		`INSERT INTO news_articles (id, source, press, unique_by, url, canonical_url, external_id, title, title_hash, raw_text, authors, language, published_at, content_hash, collected_at, changed_at, expires_at) VALUES
			('1', 'daily', 'The Daily', 'url', 'https://daily.example/1', 'https://daily.example/1', '', 'One', 'h', 'Text', '["A. B."]', 'en', $1, 'h', $1, $1, $3),
			('2', 'daily', 'The Daily', 'url', 'https://daily.example/2', 'https://daily.example/2', '', 'Expired', 'h', 'Text', '[]', 'en', $0, 'h', $1, $1, $2)`,
	)
}

// insert runs statements in which $0 stands for no time, $1 for day, $2 for an hour later and $3 for ten days after that.
func insert(t *testing.T, d *db.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		newer, err := d.HasTable(t.Context(), "docs_pages")
		require.NoError(t, err)
		if !newer {
			s = strings.Replace(s, "INTO docs_", "INTO ", 1)
		}
		value := func(at time.Time) string {
			switch {
			case d.Dialect == db.SQLite || !newer:
				return fmt.Sprint(db.Micros(at))
			case at.Unix() == 0:
				return "NULL"
			}
			return "timestamptz '" + at.Format(time.RFC3339Nano) + "'"
		}
		s = strings.NewReplacer("$0", value(time.Unix(0, 0)), "$1", value(day), "$2", value(day.Add(time.Hour)), "$3", value(day.Add(241*time.Hour))).Replace(s)
		_, err = d.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

// lines are the rows of an export as JSON lines.
func lines(t *testing.T, name string, src Source) (all []map[string]any) {
	t.Helper()
	w, err := Named(name)
	require.NoError(t, err)
	var b bytes.Buffer
	n, err := w.Write(t.Context(), src, nil, rows.JSONL, &b)
	require.NoError(t, err)
	text, err := w.Schema()
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("s.json", doc))
	for d := json.NewDecoder(&b); d.More(); {
		var row map[string]any
		require.NoError(t, d.Decode(&row))
		require.NoError(t, c.MustCompile("s.json").Validate(row))
		all = append(all, row)
	}
	require.Len(t, all, int(n))
	return all
}

// column returns the values of a column, each as text.
func column(all []map[string]any, name string) (values []string) {
	for _, row := range all {
		values = append(values, fmt.Sprint(row[name]))
	}
	return values
}

func TestDatabaseRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		filled(t, d)
		src := Source{DB: d}
		pages := lines(t, "pages", src)
		require.Equal(t, []string{"https://acme.example/a", "https://acme.example/b?", "https://bolt.example/"}, column(pages, "url"))
		require.Equal(t, []string{"2026-01-28T09:00:00Z", "2026-01-28T10:00:00Z", "<nil>"}, column(pages, "changed_at"))
		require.Equal(t, []string{"[A § 1]", "[A § 1]"}, column(lines(t, "chunks", src), "heading"))
		require.Equal(t, []string{"https://acme.example/b?"}, column(lines(t, "links", src), "to_url"))
		products := lines(t, "products", src)
		require.Equal(t, []string{"g-1", "m-1"}, column(products, "product_key"))
		require.Equal(t, map[string]any{"price": map[string]any{"amount": 12.5, "currency": "EUR"}}, products[0]["fields"])
		require.Equal(t, []string{"<nil>", "2026-01-28T10:00:00Z"}, column(products, "gone_at"))
		require.Equal(t, []string{"[lamp plug]", "[]"}, column(products, "tags"))
		images := lines(t, "product-images", src)
		require.Equal(t, []string{"gadgets g-1 https://cdn.example/1.png abc image/png 70 30x10 2026-01-28T10:00:00Z <nil>", "matter m-1 https://cdn.example/1.png   0 0x0 <nil> 2026-01-28T09:00:00Z"}, []string{
			fmt.Sprint(images[0]["site"], " ", images[0]["product_key"], " ", images[0]["url"], " ", images[0]["hash"], " ", images[0]["type"], " ", images[0]["bytes"], " ", images[0]["width"], "x", images[0]["height"], " ", images[0]["fetched_at"], " ", images[0]["gone_at"]),
			fmt.Sprint(images[1]["site"], " ", images[1]["product_key"], " ", images[1]["url"], " ", images[1]["hash"], " ", images[1]["type"], " ", images[1]["bytes"], " ", images[1]["width"], "x", images[1]["height"], " ", images[1]["fetched_at"], " ", images[1]["gone_at"])})
		require.Equal(t, []map[string]any{{"publisher": "daily", "article_id": "1", "article_url": "https://daily.example/1", "url": "https://cdn.example/2.png", "position": 2.0, "hash": "abc",
			"type": "image/png", "bytes": 70.0, "width": 30.0, "height": 10.0, "fetched_at": "2026-01-28T10:00:00Z", "failure": ""}}, lines(t, "article-images", src))
		require.Equal(t, []string{"<nil>", `{"amount":10,"currency":"EUR"}`}, column(lines(t, "product-history", src), "was"))
		require.Equal(t, []string{"One"}, column(lines(t, "articles", src), "title"), "an expired article is not exported")
		versions := lines(t, "article-versions", src)
		require.Equal(t, []string{"First", "Two"}, column(versions, "title"), "nor its versions")
		require.Equal(t, map[string]any{"article_id": "1", "publisher": "daily", "url": "https://daily.example/1", "version": 1.0, "title": "First", "text": "Older text", "published_at": nil, "until_at": "2026-01-28T09:00:00Z", "content_hash": "h1"}, versions[0])

		src.Since = day.Add(time.Minute)
		require.Equal(t, []string{"B"}, column(lines(t, "pages", src), "title"))
		require.Empty(t, lines(t, "chunks", src))
		require.Equal(t, []string{"g-1", "m-1"}, column(lines(t, "products", src), "product_key"))
		require.Len(t, lines(t, "product-history", src), 1)
		require.Equal(t, []string{"g-1"}, column(lines(t, "product-images", src), "product_key"))
		require.Empty(t, lines(t, "articles", src))
		require.Equal(t, []string{"Two"}, column(lines(t, "article-versions", src), "title"))

		src = Source{DB: d, Filter: Filter{Names: []string{"bolt"}}}
		require.Equal(t, []string{"queued"}, column(lines(t, "pages", src), "status"))
		for name, want := range map[string]string{"pages": "use acme or bolt", "products": "use gadgets or matter", "articles": "use daily", "article-versions": "use daily"} {
			src.Names = []string{"nobody"}
			w, err := Named(name)
			require.NoError(t, err)
			_, err = w.Write(t.Context(), src, nil, rows.JSONL, io.Discard)
			require.ErrorContains(t, err, want)
		}
	})
}

// An export sees one moment, also when a run writes while it reads.
func TestExportSeesOneMoment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		filled(t, d)
		for i := range 5_000 {
			_, err := d.ExecContext(t.Context(), `INSERT INTO docs_links (provider, from_key, ordinal, to_key, to_address) VALUES ('acme', 'https://acme.example/b', $1, 'k', 'a')`, i)
			require.NoError(t, err)
		}
		w, err := Named("links")
		require.NoError(t, err)
		wrote := false
		n, err := w.Write(t.Context(), Source{DB: d}, nil, rows.JSONL, writerFunc(func(b []byte) (int, error) {
			if !wrote {
				wrote = true
				_, err := d.ExecContext(context.WithoutCancel(t.Context()), `DELETE FROM docs_links`)
				require.NoError(t, err)
			}
			return len(b), nil
		}))
		require.NoError(t, err)
		require.True(t, wrote)
		require.EqualValues(t, 5_001, n)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
