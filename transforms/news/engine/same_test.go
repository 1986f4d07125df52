//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/transforms/news/engine"
)

// closedPage is a notice that nothing but its being everywhere shows.
const closedPage = `<html lang="en"><head><title>The daily example</title></head><body><article><h1>The daily example</h1><p>Our newsroom moves to another house this week, and the presses stand still until the last of the desks has been carried up.</p></article></body></html>`

func list(paths ...string) string {
	var b strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&b, "<url><loc>https://daily.example%s</loc></url>", strings.ReplaceAll(p, "&", "&amp;"))
	}
	return "<urlset>" + b.String() + "</urlset>"
}

// One title and text at several addresses is no article; of one article whose addresses differ in
// parameters there is one row.
func TestSameText(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		rows := func() []string {
			urls, err := db.Texts(t.Context(), w.db, `SELECT url FROM news_articles ORDER BY url`)
			require.NoError(t, err)
			return urls
		}
		pages := map[string]string{"/rss": "<rss/>", "/map.xml": list("/a/1", "/a/2", "/a/3", "/a/4"), "/a/1": closedPage, "/a/2": tale("", 2), "/a/3": closedPage, "/a/4": tale("", 4)}
		w.serve("daily.example", pages)
		p := declared(t, ofA)
		for range 2 {
			r := w.run(p)
			assert.Equal(t, engine.Ran, r.State)
			assert.EqualValues(t, 2, r.Failed)
			assert.Equal(t, []string{"provider daily-example: addresses of articles show one title and text: they are not stored; the dead letters same_text name them"}, r.Alerts)
			assert.Equal(t, []string{"https://daily.example/a/2", "https://daily.example/a/4"}, rows())
			assert.Equal(t, "same_text", w.letters[len(w.letters)-1].Kind)
		}
		pages["/map.xml"], pages["/a/5"] = list("/a/5"), closedPage
		w.run(p)
		assert.Len(t, rows(), 2, "a later run knows the text")
		pages["/map.xml"], pages["/a/6"] = list("/a/6"), tale("", 4)
		w.run(p)
		assert.Len(t, rows(), 2, "the text of a stored article at another address")
		pages["/map.xml"], pages["/a/5"] = list("/a/5", "/a/1", "/a/3"), tale("", 5)
		pages["/a/1"], pages["/a/3"] = tale("", 1), tale("", 3)
		w.run(p)
		assert.Len(t, rows(), 5, "nothing is lost once the pages are there")

		pages["/map.xml"] = list("/a/7?skin=a", "/a/7?lay=b", "/a/7?tone=c")
		for _, q := range []string{"skin=a", "lay=b", "tone=c"} {
			pages["/a/7?"+q] = tale("", 7)
		}
		r := w.run(p)
		assert.Equal(t, counts{Found: 3, Fetched: 3, Inserted: 1, Same: 2}, countsOf(r))
		assert.Equal(t, counts{Found: 3}, countsOf(w.run(p)), "its addresses are known")
	})
}

// A site whose pages all show one text is asked for no more than three of them.
func TestSameTextEverywhere(t *testing.T) {
	w := once(t)
	pages := map[string]string{"/rss": "<rss/>"}
	var paths []string
	for n := range 10 {
		paths = append(paths, fmt.Sprint("/a/", n))
		pages[paths[n]] = closedPage
	}
	pages["/map.xml"] = list(paths...)
	w.serve("daily.example", pages)
	p := declared(t, ofA)
	for range 3 {
		r := w.run(p)
		assert.Equal(t, blocked, r.State)
		assert.Contains(t, r.Reason, `its pages show one text in place of articles: "The daily example"`)
		assert.Empty(t, r.Alerts, "the reason is the alert")
		assert.Len(t, w.paths(), 6)
		assert.Zero(t, w.count("true"))
	}
	for n, at := range paths {
		pages[at] = tale("", n+1)
	}
	assert.EqualValues(t, 10, w.run(p).Inserted, "all of it, when it is open again")
}

// Wherever a run is killed, the next ones store the same.
func TestSameTextAfterAKill(t *testing.T) {
	for killedAt := range 8 {
		w := once(t)
		w.serve("daily.example", map[string]string{"/rss": "<rss/>", "/map.xml": list("/a/1", "/a/2", "/a/3", "/a/4"), "/a/1": closedPage, "/a/2": tale("", 2), "/a/3": closedPage, "/a/4": tale("", 4)})
		e := w.engine()
		ctx, kill := context.WithCancel(t.Context())
		e.Pacer.Clock = politetest.Killed(e.Pacer.Clock, killedAt, kill)
		_, _ = e.Run(ctx, declared(t, ofA))
		kill()
		w.run(declared(t, ofA))
		assert.Equal(t, 2, w.count("true"), killedAt)
		assert.Equal(t, 2, w.count("title LIKE 'Council%'"), killedAt)
	}
}
