//go:build unix

package export

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/catalog"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

// What is exported can be looked at, one thing at a time.
func TestFindRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		filled(t, d)
		for i := range 60 {
			_, err := d.ExecContext(t.Context(), `INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at, state, gone_at) VALUES ('many', $1, 'u', '{"name":"50% <b>"}', 'h', $2, $2, $2, 'new', $3)`, fmt.Sprintf("k-%02d", i), 1, 0)
			require.NoError(t, err)
		}
		long := strings.Repeat("word ", 100)
		_, err := d.ExecContext(t.Context(), `UPDATE docs_chunks SET preview = $1`, long)
		require.NoError(t, err)
		s, err := store.Open(t.Context(), t.TempDir())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		src := explore.Source{Store: s, DB: d}
		kinds := map[string]explore.Kind{}
		none := func(context.Context, explore.Source, string) (bool, error) { return false, nil }
		for _, k := range append(docs.Finds(none), catalog.Finds(), raw.Finds()) {
			kinds[k.Name] = k
		}
		search := func(kind string, q explore.Query) (titles []string, list explore.List) {
			list, err := kinds[kind].Search(t.Context(), src, q)
			require.NoError(t, err, kind)
			for _, i := range list.Items {
				titles = append(titles, i.Title)
			}
			return titles, list
		}
		show := func(kind string, q explore.Query) explore.Item {
			item, err := kinds[kind].Show(t.Context(), src, q)
			require.NoError(t, err, kind)
			return item
		}
		titles, _ := search("pages", explore.Query{})
		require.Equal(t, []string{"=SUM(1)", "B", "https://bolt.example/"}, titles)
		titles, list := search("pages", explore.Query{"text": "sum(", "provider": "acme"})
		require.Equal(t, []string{"=SUM(1)"}, titles)
		page := show("pages", list.Items[0].Key)
		require.Equal(t, list.Items[0].Record, page.Record)
		require.Len(t, []rune(page.Parts[0].Text), 200)
		require.Contains(t, page.Parts[0].Note, "does not say tos: allowed")
		require.Len(t, page.Parts[1].Items, 2)
		require.LessOrEqual(t, len([]rune(page.Parts[1].Items[0].Record.Column("preview").Value.(string))), 200)
		require.Equal(t, "pages", show("chunks", page.Parts[1].Items[1].Key).Parts[0].Kind)

		titles, _ = search("products", explore.Query{"text": "%", "site": "gadgets"})
		require.Empty(t, titles, "a sign of LIKE means itself")
		_, list = search("products", explore.Query{"text": "50%"})
		_, last := search("products", explore.Query{"text": "50%", explore.After: list.Next})
		require.Len(t, list.Items, explore.PerPage)
		require.Empty(t, last.Next)
		keys := map[string]bool{}
		for _, i := range append(list.Items, last.Items...) {
			keys[i.Key["product"]] = true
			require.Equal(t, "50% <b>", i.Title, "its name")
		}
		require.Len(t, keys, 60)
		history := show("products", explore.Query{"site": "gadgets", "product": "g-1"}).Parts[0]
		require.Len(t, history.Rows, 2)
		require.Equal(t, "r", history.Rows[0].Column("run_id").Value)

		titles, list = search("articles", explore.Query{"text": "ONE"})
		require.Equal(t, []string{"One"}, titles)
		article := show("articles", list.Items[0].Key)
		require.Equal(t, "Text", article.Parts[0].Text)
		require.Len(t, article.Parts[1].Rows, 2, "its versions, and none of another article's")
		require.Equal(t, "First", article.Parts[1].Rows[0].Column("title").Value)
		require.Equal(t, "Older text", article.Parts[1].Rows[0].Column("text").Value)
		_, err = kinds["articles"].Show(t.Context(), src, explore.Query{"id": "2"})
		require.ErrorIs(t, err, explore.ErrNone, "it has expired")
		for name, k := range kinds {
			_, err := k.Search(t.Context(), src, explore.Query{explore.After: "x"})
			var refused *explore.RefusedError
			require.ErrorAs(t, err, &refused, name)
			search(name, explore.Query{"text": `'"\_;`})
		}
	})
}

// What is found is counted by the values that a list is narrowed to, and by two of them. A product has its earlier prices.
func TestCountRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec := func(query string, args ...any) {
			_, err := d.ExecContext(t.Context(), query, args...)
			require.NoError(t, err)
		}
		kinds := map[string]explore.Kind{}
		for _, k := range append(docs.Finds(nil), catalog.Finds(), raw.Finds()) {
			kinds[k.Name] = k
		}
		count := func(kind string, q explore.Query) explore.Counts {
			c, err := kinds[kind].Count(t.Context(), explore.Source{DB: d}, q)
			require.NoError(t, err)
			return c
		}
		for _, migrate := range []func(context.Context, *db.DB) error{docs.Migrate, catalog.Migrate, raw.Migrate} {
			require.NoError(t, migrate(t.Context(), d))
		}
		for _, kind := range []string{"products", "articles", "pages"} {
			c := count(kind, explore.Query{})
			require.Empty(t, c.Picture.Rows, kind)
			require.Len(t, c.Facets, map[string]int{"products": 2, "articles": 6, "pages": 6}[kind])
		}

		day := func(n int) int64 { return db.Micros(time.Date(2026, 3, n, 12, 0, 0, 0, time.UTC)) }
		for i, p := range []struct{ site, state, detail string }{{"a", "new", `{"title":"\u202Ex","price":{"amount":12,"currency":"EUR"}}`}, {"a", "changed", `{"name":"B","price":7}`},
			{"b", "gone", `{"cost":{"amount":3,"currency":"USD"}}`}, {"b", "gone", `[]`}} {
			exec(`INSERT INTO catalog_products (site, product_key, url, detail, content_hash, first_seen, last_seen, changed_at, state, gone_at) VALUES ($1, $2, 'u', $3, 'h', $4, $5, $5, $6, $7)`,
				p.site, fmt.Sprint("k", i), p.detail, day(1), day(4), p.state, 0)
		}
		for at, price := range map[int][2]string{2: {`{"amount":10,"currency":"EUR"}`, `{"amount":11,"currency":"EUR"}`}, 3: {`{"amount":11,"currency":"EUR"}`, `{"amount":12,"currency":"EUR"}`}} {
			exec(`INSERT INTO catalog_changes (site, product_key, changed_at, field, was, became, run_id) VALUES ('a', 'k0', $1, 'price', $2, $3, 'r')`, day(at), price[0], price[1])
		}
		exec(`INSERT INTO catalog_changes (site, product_key, changed_at, field, was, became, run_id) VALUES ('a', 'k1', $1, 'price', NULL, '7', 'r')`, day(2))
		c := count("products", explore.Query{"site": "a"})
		require.Equal(t, []explore.Facet{{Field: "site", Values: []explore.Value{{Value: "a", Count: 2}, {Value: "b", Count: 2}}},
			{Field: "state", Values: []explore.Value{{Value: "changed", Count: 1}, {Value: "new", Count: 1}}}}, c.Facets)
		require.Len(t, c.Picture.Rows, 1)
		require.Equal(t, []int64{1, 1, 0, 0, 0}, c.Picture.Rows[0].Figures["products"])
		require.Empty(t, count("products", explore.Query{"text": "x"}).Facets)
		list, err := kinds["products"].Search(t.Context(), explore.Source{DB: d}, explore.Query{})
		require.NoError(t, err)
		require.Len(t, list.Items, 4)
		require.NotContains(t, list.Items[0].Title, "\u202E")
		values := func(s *explore.Series) (all []float64) {
			for _, p := range s.Points {
				all = append(all, p.Value)
			}
			return all
		}
		require.Equal(t, []float64{10, 11, 12, 12}, values(list.Items[0].Series))
		require.Equal(t, "EUR", list.Items[0].Series.Unit)
		require.Equal(t, []float64{7, 7, 7}, values(list.Items[1].Series), "it had none before")
		require.Equal(t, "cost", list.Items[2].Series.Name)
		require.Nil(t, list.Items[3].Series)
		require.Equal(t, "k3", list.Items[3].Title)

		now := time.Date(2026, 3, 20, 1, 0, 0, 0, time.UTC)
		d.Now = func() time.Time { return now }
		for i, a := range []struct {
			source             string
			published, expires int64
		}{{"p", day(19), day(30)}, {"p", day(19), day(30)}, {"p", 0, day(30)}, {"p", day(19), day(5)}, {"q", db.Micros(now.AddDate(0, -3, 0)), day(30)}, {"q", day(29), day(30)}} {
			exec(`INSERT INTO news_articles (id, source, press, unique_by, url, canonical_url, external_id, title, title_hash, raw_text, authors, language, published_at, content_hash, collected_at, changed_at, expires_at)
				VALUES ($1, $2, '', 'url', $1, $1, '', '', '', '', '[]', 'ko', $3, '', $4, $4, $5)`, fmt.Sprint(i), a.source, a.published, day(18), a.expires)
		}
		exec(`UPDATE news_articles SET rights_search = 'allowed', rights_ai_train = CASE WHEN source = 'p' THEN 'reserved' ELSE 'unsaid' END`)
		chosen := explore.Query{"rights_search": "allowed", "rights_ai_train": "reserved"}
		require.Equal(t, []explore.Facet{{Field: "publisher", Values: []explore.Value{{Value: "p", Count: 3}}}, {Field: "language", Values: []explore.Value{{Value: "ko", Count: 3}}},
			{Field: "rights_search", Values: []explore.Value{{Value: "allowed", Count: 3}}}, {Field: "rights_ai_input", Values: []explore.Value{{Count: 3}}},
			{Field: "rights_ai_train", Values: []explore.Value{{Value: "reserved", Count: 3}, {Value: "unsaid", Count: 2}}}, {Field: "rights_archive", Values: []explore.Value{{Count: 3}}}},
			count("articles", chosen).Facets)
		found, err := kinds["articles"].Search(t.Context(), explore.Source{DB: d}, chosen)
		require.NoError(t, err)
		require.Len(t, found.Items, 3)
		p := count("articles", explore.Query{}).Picture
		require.Len(t, p.Columns, 30)
		require.Equal(t, []string{"2026-03-18", "2026-03-19", "2026-03-20"}, p.Columns[27:])
		require.Equal(t, []int64{1, 2, 0}, p.Rows[0].Figures["articles"][27:], "the day of the first fetch where no other is known")
		require.Equal(t, []int64{1, 0, 0}, p.Rows[1].Figures["articles"][27:], "a day to come is none")
		require.EqualValues(t, 0, p.Rows[1].Figures["articles"][0], "an old article is in no column")
		require.Equal(t, day(19), db.Micros(*p.Rows[0].Newest))

		for i, session := range []string{"s1", "s2"} {
			exec(`INSERT INTO docs_sessions (id, started_at, active_at) VALUES ($1, $2, $2)`, session, day(1+i))
			exec(`INSERT INTO docs_runs (session, provider, run_id, state, started_at, active_at, requested, stats) VALUES ($1, 'acme', 'r', 'done', $2, $2, $3, $4)`,
				session, day(1+i), 10+i, `{"new":2,"updated":1,"deleted":4}`)
		}
		p = count("pages", explore.Query{}).Picture
		require.Equal(t, []string{"2026-03-01 12:00", "2026-03-02 12:00"}, p.Columns)
		require.Equal(t, map[string][]int64{"pages": {10, 11}, "changes": {7, 7}, "new": {2, 2}, "updated": {1, 1}, "deleted": {4, 4}}, p.Rows[0].Figures)
	})
}
