//go:build unix

package raw_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/explore"
	found "github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/transforms/news/provider"
	"github.com/newsfork/seed-engine/transforms/news/raw"
)

const wire = "The central bank of the republic kept its main rate unchanged on Monday, as analysts had expected, and said that prices are falling more slowly than it had hoped in spring. " +
	"The governor told reporters after the meeting that a cut would be discussed once prices had fallen for several months in a row, which she does not expect before the summer of next year. " +
	"Markets hardly moved after the decision. The currency gained a little against its neighbours, and the yield of ten-year bonds stayed where it had been before the weekend."

const other = "A storm has closed the port of the capital for two days. Ferries to the islands stay in their harbours, and the company says that tickets remain valid until the end of the month. " +
	"Fishermen brought their boats ashore in time, while the fire brigade counted forty fallen trees and one roof that the wind carried into a neighbour's garden. Nobody was hurt."

// agency is an article of a publisher; a zero time is one that is not known.
func agency(source, path, body string, published time.Time) raw.Row {
	r := row(provider.ByURL, "https://"+source+path, "", "A bank keeps its rate", body)
	r.Source, r.Article.Published = source, published
	return r
}

// publish saves an article and marks copies, as a run of its publisher does.
func publish(t *testing.T, d *db.DB, r raw.Row, at time.Time) int64 {
	t.Helper()
	_, err := raw.Save(t.Context(), d, r, limits, at)
	require.NoError(t, err)
	n, err := raw.MarkCopies(t.Context(), d, r.Source)
	require.NoError(t, err)
	return n
}

// copies returns the address of each article's original.
func copies(t *testing.T, d *db.DB) map[string]string {
	t.Helper()
	names, out := map[string]string{}, map[string]string{}
	var rows []raw.ArticleRow
	for a, err := range raw.Articles(t.Context(), d, found.Filter{}, now) {
		require.NoError(t, err)
		rows, names[a.ID] = append(rows, a), a.CanonicalURL
	}
	for _, a := range rows {
		if a.CopyOf != "" {
			out[a.CanonicalURL] = cmp.Or(names[a.CopyOf], "expired")
		}
	}
	return out
}

// Which of articles that are alike is the original follows from what they say, not from
// which was stored first.
func TestCopiesInAnyOrder(t *testing.T) {
	at := func(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }
	articles := []raw.Row{
		agency("b", "/wire", wire, at(-5)),
		agency("a", "/wire", "By our own desk. "+wire, at(-5)), // at the same time: the name of the publisher decides
		agency("c", "/wire", "CITY (Agency) "+wire, at(-4)),
		agency("a", "/again", wire+" More follows.", at(-3)),
		agency("d", "/undated", wire, time.Time{}),
		agency("d", "/storm", other, at(-5)),
		agency("c", "/next-week", wire, at(100)),
	}
	want := map[string]string{"https://b/wire": "https://a/wire", "https://c/wire": "https://a/wire", "https://d/undated": "https://a/wire", "https://a/again": "https://b/wire"}
	each(t, func(t *testing.T, d *db.DB) {
		for shift := range len(articles) {
			for _, step := range []int{1, 2, 3} { // each is a permutation, because there are seven
				_, err := d.ExecContext(t.Context(), `DELETE FROM news_articles`)
				require.NoError(t, err)
				var n int64
				for i := range articles {
					n += publish(t, d, articles[(shift+i*step)%len(articles)], now.Add(time.Duration(i)*time.Minute))
				}
				require.Equal(t, want, copies(t, d), "from %d in steps of %d", shift, step)
				require.EqualValues(t, len(want), n, "each is counted once")
			}
		}
	})
}

// A mark goes when a text becomes another one, and stays when its original expires. What a
// killed run stored is compared by the next one.
func TestCopiesOverTime(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		first, second, third := agency("a", "/1", wire, now), agency("b", "/1", wire, now.Add(time.Minute)), agency("c", "/1", wire, now.Add(time.Hour))
		assert.Zero(t, publish(t, d, first, now))
		_, err := raw.Save(t.Context(), d, second, limits, now)
		require.NoError(t, err)
		assert.Empty(t, copies(t, d), "the run was killed here")
		n, err := raw.MarkCopies(t.Context(), d, "b")
		require.NoError(t, err)
		assert.EqualValues(t, 1, n)
		n, err = raw.MarkCopies(t.Context(), d, "b")
		require.NoError(t, err)
		assert.Zero(t, n, "counted once")
		assert.EqualValues(t, 1, publish(t, d, third, now))
		assert.Equal(t, map[string]string{"https://b/1": "https://a/1", "https://c/1": "https://a/1"}, copies(t, d))

		first.Article.Body = other
		assert.EqualValues(t, 0, publish(t, d, first, now.Add(time.Hour)))
		assert.Equal(t, map[string]string{"https://c/1": "https://b/1"}, copies(t, d))

		_, err = d.ExecContext(t.Context(), `UPDATE news_articles SET expires_at = $1 WHERE source = 'b'`, 1)
		require.NoError(t, err)
		_, err = raw.Purge(t.Context(), d, now)
		require.NoError(t, err)
		third.Article.Body = strings.Replace(wire, "Monday", "Tuesday", 1)
		assert.Zero(t, publish(t, d, third, now.Add(2*time.Hour)))
		assert.Equal(t, map[string]string{"https://c/1": "expired"}, copies(t, d))
	})
}

// The page of a copy leads to the article that it is a copy of, as long as that is stored.
func TestOriginalIsShown(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		d.Now = func() time.Time { return now }
		publish(t, d, agency("b", "/wire", wire, now.Add(-5*time.Hour)), now)
		publish(t, d, agency("a", "/copy", wire, now.Add(-time.Hour)), now)
		var id string
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT id FROM news_articles WHERE source = 'a'`).Scan(&id))
		show := func(id string) explore.Item {
			item, err := raw.Finds().Show(t.Context(), explore.Source{DB: d}, explore.Query{"id": id})
			require.NoError(t, err)
			return item
		}
		parts := show(id).Parts
		require.Len(t, parts, 4)
		require.Len(t, parts[3].Items, 1)
		assert.Equal(t, []string{"A copy of", "https://b/wire"}, []string{parts[3].Title, parts[3].Items[0].URL})
		assert.Len(t, show(parts[3].Items[0].Key["id"]).Parts, 3, "the original is no copy")
		_, err := d.ExecContext(t.Context(), `DELETE FROM news_articles WHERE source = 'b'`)
		require.NoError(t, err)
		parts = show(id).Parts
		assert.Empty(t, parts[3].Items)
		assert.Contains(t, parts[3].Note, "It has expired: ")
	})
}
