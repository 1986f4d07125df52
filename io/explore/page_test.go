package explore

import (
	"database/sql"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// A search for a text finds all rows that have it, page after page, however little of the
// table each page had the time for.
func TestRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		for _, s := range []string{`CREATE TABLE things (site TEXT NOT NULL, n BIGINT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (site, n))`,
			`INSERT INTO things WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 60000)
				SELECT CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END, n, CASE WHEN n % 999 = 0 OR n > 59900 THEN 'A needle ' ELSE 'hay ' END || n FROM c`} {
			_, err := d.ExecContext(ctx, s)
			require.NoError(t, err)
		}
		scan := func(r *sql.Rows) (row [2]string, err error) { return row, r.Scan(&row[0], &row[1]) }
		reads := 0
		page := func(q Query) List {
			t.Helper()
			look := db.Look{Equal: Chosen("site", q["site"]), Text: q["text"], Columns: []string{"text"}}
			list, err := Rows(ctx, d, "things", q, look, []db.Match{{Column: "site"}, {Column: "n", Value: int64(0)}}, func(l db.Look) iter.Seq2[[2]string, error] {
				reads++
				and, limit, args := l.SQL()
				return db.Select(ctx, d, scan, `SELECT site, n FROM things WHERE 1 = 1`+and+` ORDER BY site, n`+limit, args...)
			}, func(r [2]string) []string { return r[:] }, func(r [2]string) Item { return Item{Title: r[0] + r[1]} })
			require.NoError(t, err)
			return list
		}
		now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
		for _, took := range []time.Duration{0, 600 * time.Millisecond, time.Minute} { // each look at the clock
			d.Now = func() time.Time { now = now.Add(took); return now }
			for _, site := range []string{"", "b"} {
				q := Query{"text": "a NEEDLE"}
				var want []string
				for _, s := range []string{"a", "b"} {
					for n := 1; n <= 60000; n++ {
						if (n%999 == 0 || n > 59900) && n%2 == map[string]int{"a": 0, "b": 1}[s] && (site == "" || site == s) {
							want = append(want, s+strconv.Itoa(n))
						}
					}
				}
				if site != "" {
					q["site"] = site
				}
				var got []string
				for {
					reads = 0
					list := page(q)
					for _, i := range list.Items {
						got = append(got, i.Title)
					}
					assert.LessOrEqual(t, len(list.Items), PerPage)
					if took == time.Minute {
						assert.Equal(t, 1, reads, "one step, and no time is left")
					}
					if len(list.Items) < PerPage {
						assert.Equal(t, list.Next != "", list.Note != "")
					}
					if list.Next == "" {
						break
					}
					q[After] = list.Next
				}
				assert.Equal(t, want, got, "%v %q", took, site)
			}
		}
		assert.Len(t, page(Query{}).Items, PerPage)
	})
}
