package docs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// closed answers each request with a notice of its own number and status 200.
func closed(head string) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		n++
		html(fmt.Sprintf(`<html><head><title>Maintenance</title>%s</head><body><main><h1>We'll be right back</h1><p>The site is being looked after. Request 8c5e5a1b%016d.</p></main></body></html>`, head, n))(w, r)
	}
}

func numbered(i int) http.HandlerFunc { return doc(fmt.Sprint("page ", i)) }

// noticeWorld is a crawled site of a seed and n pages.
func noticeWorld(t *testing.T, d *db.DB, n int, was func(i int) http.HandlerFunc) (w *world, pages []string) {
	t.Helper()
	w = newWorld(t, d)
	for i := range n {
		pages = append(pages, fmt.Sprint("/docs/", i))
		w.set(pages[i], was(i))
	}
	w.set("/docs", doc("seed", pages...))
	w.run()
	require.EqualValues(t, n+1, w.crawl.part.stats.New)
	w.newSession()
	w.paths()
	return w, pages
}

func (w *world) stored() string {
	return strings.Join(w.strings(`SELECT key || ' ' || id || ' ' || preview FROM docs_chunks ORDER BY key, ordinal`), "\n")
}

// A notice that comes with status 200 in place of all pages takes the place of none: they
// fail, and what is stored of them stays until they are back.
func TestNotice(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{"a page": "", "noindex": `<meta name="robots" content="noindex">`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w, pages := noticeWorld(t, d, 5, numbered)
				before, handed := w.stored(), w.handed()
				notice := closed(head)
				for _, p := range append(pages, "/docs") {
					w.set(p, notice)
				}
				state, reason := w.run()
				require.Equal(t, []any{Unreachable, "it cannot be reached: none of its 1 seeds could be fetched"}, []any{state, reason})
				require.Len(t, w.paths(), 6, "each is asked for once")
				s := w.crawl.part.stats
				require.Equal(t, []int64{6, 6, 0, 6, 0}, []int64{s.Failed, s.Errors, s.Succeeded, s.Requests, s.New + s.Updated + s.Unchanged + s.Deleted + s.Skipped})
				why := w.row("/docs").Reason
				require.Regexp(t, `^other pages, which had other texts, got the same text: [0-9a-f]{16} \("Maintenance"\)$`, why)
				for _, p := range pages {
					require.Equal(t, row{Status: Failed, Reason: why, Depth: 1, HTTP: 200, Content: true}, w.row(p))
				}
				require.Len(t, w.deadLetters(), 6)
				require.Equal(t, before, w.stored())
				require.Equal(t, handed, w.handed())

				w.newSession()
				for i, p := range pages {
					w.set(p, numbered(i))
				}
				w.set("/docs", doc("seed", pages...))
				state, _ = w.run()
				require.Equal(t, Done, state)
				require.EqualValues(t, 6, w.crawl.part.stats.Unchanged)
				require.Empty(t, w.deadLetters())
			})
		})
	}
}

// A run that continues a session knows its notices, and asks again for the pages that
// waited.
func TestNoticeAfterAKill(t *testing.T) {
	t.Parallel()
	for requests, again := range map[int]int{3: 2, 4: 0, 5: 0} { // robots.txt is known from the first session
		t.Run(fmt.Sprint(requests), func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w, pages := noticeWorld(t, d, 6, numbered)
				before := w.stored()
				notice := closed("")
				for _, p := range pages {
					w.set(p, notice)
				}
				w.time.Advance(25 * time.Hour)
				w.cfg.DayBudget = requests + 1 // the day-old robots.txt is asked for too
				state, _ := w.run()
				require.Equal(t, OutOfBudget, state)
				require.Len(t, w.paths(), requests)
				w.time.Advance(25 * time.Hour)
				w.cfg.DayBudget = 0
				state, _ = w.run()
				require.Equal(t, Done, state)
				require.Len(t, w.paths(), 7-requests+again)
				s := w.crawl.part.stats
				require.Equal(t, []int64{6, 1, 0}, []int64{s.Failed, s.Unchanged, s.Updated})
				require.Equal(t, before, w.stored())
			})
		})
	}
}

// What is no notice takes the place of what was stored, and is asked for once.
func TestNoNotice(t *testing.T) {
	t.Parallel()
	same := func(text string) func(int) http.HandlerFunc {
		return func(int) http.HandlerFunc { return html("<main>" + text + "</main>") }
	}
	own := func(format string) func(int) http.HandlerFunc {
		return func(i int) http.HandlerFunc { return html(fmt.Sprintf("<main>"+format+"</main>", i)) }
	}
	const moved = "<p>This part of the manual has moved to the new one.</p>"
	for name, tt := range map[string]struct {
		pages   int
		was, is func(i int) http.HandlerFunc
	}{
		"all texts are new":        {12, numbered, own("<h1>Chapter %[1]d</h1><p>What is said in number %[1]d.</p>")},
		"two pages with one text":  {2, numbered, same(moved)},
		"a long text":              {4, numbered, same("<p>" + strings.Repeat("This is the whole manual on one page. ", 50) + "</p>")},
		"a text with code":         {4, numbered, same("<pre>make install</pre>")},
		"a part that stays":        {4, numbered, own("<h1>page %d</h1><p>See the new manual.</p>")},
		"pages that were the same": {4, same("<p>This page is being written.</p>"), same(moved)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w, pages := noticeWorld(t, d, tt.pages, tt.was)
				for i, p := range pages {
					w.set(p, tt.is(i))
				}
				state, _ := w.run()
				require.Equal(t, Done, state)
				require.Len(t, w.paths(), tt.pages+1)
				s := w.crawl.part.stats
				require.Equal(t, []int64{int64(tt.pages), 1, 0}, []int64{s.Updated, s.Unchanged, s.Failed})
				for _, p := range pages {
					require.Equal(t, Indexed, w.row(p).Status)
				}
			})
		})
	}
}
