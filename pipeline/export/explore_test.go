//go:build unix

package export

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

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
		first, list := search("products", explore.Query{"text": "50%"})
		rest, last := search("products", explore.Query{"text": "50%", explore.After: list.Next})
		require.Len(t, first, explore.PerPage)
		require.Empty(t, last.Next)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(append(first, rest...)))), 60)
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
