package catalog

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

const hostileSite = `name: hostile
list: {url: "https://hostile.example/list", product_link: {selector: a}}
key: sku
fields:
  sku: {selector: .sku}
  title: {selector: .title, optional: true}
  note: {selector: .note, type: list, optional: true}
`

// What pages say never gets to the database as it came, and what it refuses all
// the same is that product's dead letter; the others of its batch are saved.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, dsn(t), webtest.Options{})
			all, _, err := ReadSites(fstest.MapFS{"hostile.yaml": {Data: []byte(hostileSite)}})
			require.NoError(t, err)
			j.cfg.Sites = all
			page := func(sku, title string) string {
				return `<p class=sku>` + sku + `</p><p class=title>` + title + `</p><p class=note>a&#0;b` + "\x00" + `</p><a href="/x` + "\xff" + `">x</a>`
			}
			pages := map[string]string{
				"/1": page("A-1", "a\x00\x1b[31m\xff\xfeb"), "/2": page("A-2", "refuse me"), "/3": page("A\x003\xff", "c"), "/4": page("A-4", strings.Repeat("가", 100_000)),
				"/5": page(strings.Repeat("K", 4000), "d"), "/6": page("A-6", "f"),
			}
			list := fmt.Sprintf(`<a href="/%s">long</a><a href="/bytes%%00%%FF">bytes</a>`, strings.Repeat("l", 4000))
			for i := range 6 {
				list += fmt.Sprintf(`<a href="/%d">x</a>`, i+1)
			}
			j.web.Handle("hostile.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				switch {
				case r.URL.Path == "/list":
					_, _ = w.Write([]byte(list))
				case pages[r.URL.Path] != "":
					_, _ = w.Write([]byte(pages[r.URL.Path]))
				default:
					http.NotFound(w, r)
				}
			}))
			refuse := `ALTER TABLE catalog_products ADD CHECK (detail::text NOT LIKE '%refuse me%')`
			if j.db.Dialect == db.SQLite {
				refuse = `CREATE TRIGGER refuse BEFORE INSERT ON catalog_products WHEN NEW.detail LIKE '%refuse me%' BEGIN SELECT RAISE(ABORT, 'refused'); END`
			}
			_, err = j.db.ExecContext(t.Context(), refuse)
			require.NoError(t, err)

			total := j.run()
			got := j.products("hostile")
			assert.Len(t, got, 4, "%v", got)
			assert.Equal(t, map[string]int64{"products_saved": 4, "failed_tasks": 3}, counted(total, "products_saved", "failed_tasks"))
			assert.NotContains(t, got["A-1"].Detail["title"], "\x00")
			assert.NotContains(t, got["A-1"].Detail["title"], "\x1b")
			assert.Equal(t, []any{"a\uFFFDb"}, got["A-1"].Detail["note"])
			assert.Len(t, got["A-4"].Detail["title"], maxField/3*3)
			kinds := map[string]string{}
			for _, l := range j.deadLetters() {
				kinds[strings.TrimPrefix(l.Input.URL, "https://hostile.example")] = l.Kind
			}
			assert.Equal(t, map[string]string{"/2": "database_rejected", "/5": "missing_key", "/bytes%00%FF": "http_404"}, kinds)
			assert.Zero(t, j.left())
		})
	}
}
