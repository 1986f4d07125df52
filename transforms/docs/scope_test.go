package docs

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// Scope: seed URLs need no pattern but may be blocked; X/** is X too, in
// both lists; blocked patterns come first; paths that may have personal data are blocked until allowed.
func TestScope(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*policy.Policy)
		asked  []string
	}{
		{"as it is", func(*policy.Policy) {}, []string{"/docs", "/docs/api", "/docs/api/x", "/docs/1id2"}},
		{"a seed that no pattern allows", func(p *policy.Policy) { p.AllowedPathPatterns = []string{"/docs/api/**"} }, []string{"/docs", "/docs/api", "/docs/api/x"}},
		{"a seed that is blocked", func(p *policy.Policy) { p.BlockedPathPatterns = []string{"/docs"} }, []string{}},
		{"X/** blocks X too", func(p *policy.Policy) { p.BlockedPathPatterns = []string{"/docs/api/**"} }, []string{"/docs", "/docs/old", "/docs/1id2"}},
		{"block before allow", func(p *policy.Policy) {
			p.AllowedPathPatterns, p.BlockedPathPatterns = []string{"/docs/api/x", "/docs/**"}, []string{"/docs/{api,old}", "/docs/*/[x-z]", "/docs/?id?"}
		}, []string{"/docs"}},
		{"a regular expression blocks", func(p *policy.Policy) { p.BlockedPathPatterns = []string{"re:^/docs/(old|[0-9])"} }, []string{"/docs", "/docs/api", "/docs/api/x"}},
		{"a regular expression allows", func(p *policy.Policy) { p.AllowedPathPatterns = []string{"re:^/docs/[0-9]"} }, []string{"/docs", "/docs/1id2"}},
		{"personal data lifted", func(p *policy.Policy) { p.AllowPersonal = []string{"blog"} }, []string{"/docs", "/docs/api", "/docs/api/x", "/docs/1id2", "/docs/blog"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				tt.change(&w.policy)
				w.set("/docs", doc("seed", "/docs/api", "/docs/api/x", "/docs/old", "/docs/1id2", "/docs/blog", "/elsewhere"))
				for _, path := range []string{"/docs/api", "/docs/api/x", "/docs/old", "/docs/1id2", "/docs/blog", "/elsewhere"} {
					w.set(path, doc(path))
				}
				state, _ := w.run()
				require.Equal(t, Done, state)
				require.Equal(t, tt.asked, w.paths())
			})
		})
	}
}

// A query parameter that the policy keeps makes pages of its values.
func TestKeptQuery(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, keep := range []bool{false, true} {
			w := newWorld(t, d)
			want := []string{"/docs", "/docs/list?page=1&utm_source=a"}
			if keep {
				w.policy.ProviderID, w.policy.KeepQueryParams = "q", []string{"page"}
				want = []string{"/docs", "/docs/list?page=1", "/docs/list?page=2"}
			}
			w.set("/docs", doc("seed", "/docs/list?page=1&utm_source=a", "/docs/list?page=2&ref=x", "/docs/list?utm_source=b&page=1"))
			for _, path := range []string{"/docs/list?page=1&utm_source=a", "/docs/list?page=1", "/docs/list?page=2"} {
				w.set(path, doc(path))
			}
			w.run()
			got := w.paths()
			if !keep {
				require.Len(t, got, 2)
				require.True(t, strings.HasPrefix(got[1], "/docs/list?page=1"), got[1])
				continue
			}
			require.Equal(t, want, got)
			require.Equal(t, []string{"https://docs.example.com/docs", "https://docs.example.com/docs/list?page=1", "https://docs.example.com/docs/list?page=2"},
				w.strings(`SELECT key FROM docs_pages WHERE provider = 'q' AND status = 'indexed' ORDER BY key`))
		}
	})
}

// A page made to do harm costs itself: its neighbours are crawled, and neither
// what is read nor what is kept of it grows with it.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		end    Status
		reason string
	}{
		{"100 MB", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			part := []byte(strings.Repeat("<p>words and words</p>", 3000))
			for sent.Store(0); sent.Load() < 100<<20; {
				n, err := rw.Write(part)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}, TooLarge, "longer than 5 MB"},
		{"100 MB in a small gzip", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(rw)
			part := make([]byte, 1<<20)
			for range 100 {
				if _, err := z.Write(part); err != nil {
					return
				}
			}
			_ = z.Close() // the client may be gone
		}, TooLarge, "longer than 5 MB"},
		{"10,000 nested elements", html("<main>" + strings.Repeat("<div>", 10_000) + "deep"), Skipped, ""},
		{"a million links", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			var b strings.Builder
			b.WriteString("<main><h1>Links</h1><p>Many of them, more than anybody will ever read.</p>")
			for n := 0; b.Len() < 5<<20-100; n++ {
				fmt.Fprintf(&b, "<a href=/docs/%d>x</a>", n)
			}
			_, _ = fmt.Fprint(rw, b.String())
		}, Indexed, ""},
		{"broken UTF-8", html("<!doctype html><main><h1>\xff\xfe</h1><p>broken \xed\xa0\x80 \xc3\x28 text that is somewhat longer</p></main>"), Indexed, ""},
		{"headings over a hundred thousand words", html("<main><h1>" + strings.Repeat("한", 300) + "</h1><h2>" + strings.Repeat("둘", 300) + "</h2><h3>" + strings.Repeat("셋", 300) + "</h3>" + strings.Repeat("<p>x", 100_000)), Skipped, "its headings"},
		{"a title of a megabyte", html("<title>" + strings.Repeat("long ", 1<<20/5) + "</title><main>" + strings.Repeat("<p>"+strings.Repeat("words and words ", 50), 500)), Indexed, ""},
		{"a redirect to itself", status(302, "Location", "/docs/x"), Failed, "more than 3 redirects"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				w := newWorld(t, d)
				w.policy.MaxDepth = 1
				w.set("/docs", doc("seed", "/docs/x", "/docs/y"))
				w.set("/docs/x", tt.answer)
				w.set("/docs/y", doc("y"))
				state, _ := w.run()
				require.Equal(t, Done, state)
				r := w.row("/docs/x")
				require.Equal(t, tt.end, r.Status, r.Reason)
				require.Contains(t, r.Reason, tt.reason)
				require.Equal(t, Indexed, w.row("/docs/y").Status)
				require.LessOrEqual(t, len(w.strings(`SELECT to_key FROM docs_links WHERE from_key = $1`, "https://"+host+"/docs/x")), maxLinks)
				require.Less(t, sent.Load(), int64(30<<20), "the rest is not waited for")
				all := w.everything()
				require.True(t, utf8.ValidString(all))
				require.Less(t, len(all), 30<<20)
			})
		})
	}
}

// A link too long for a database's index is no page, and stops nothing.
func TestLongLinks(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		noise := func(n int) string { // nothing that compresses
			b := make([]byte, n/2)
			_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b) // never fails
			return hex.EncodeToString(b)
		}
		fits := "/docs/" + noise(1900)
		w.set("/docs", doc("seed", "/docs/"+noise(4000), "/docs/a?q="+noise(10_000), "/docs/"+strings.Repeat("%ED%95%9C", 1000), fits, "/docs/moved"))
		w.set("/docs/moved", status(302, "Location", "/docs/"+noise(6000)))
		w.set(fits, doc("long"))
		state, reason := w.run()
		require.Equal(t, []any{Done, ""}, []any{state, reason})
		require.Equal(t, []string{"/docs", fits, "/docs/moved"}, w.paths())
		require.Contains(t, w.row("/docs/moved").Reason, "over 2000 bytes")
		require.Less(t, len(w.row("/docs/moved").Reason), 1500)
	})
}

// Pages without end, each of which leads to the next, stop at the depth; side by
// side they stop at max_pages.
func TestEndlessCalendar(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.policy.MaxPages = 12
		w.set("/docs", doc("seed", "/docs/day/1"))
		for n := 1; n < 50; n++ {
			w.set(fmt.Sprintf("/docs/day/%d", n), doc(fmt.Sprintf("day %d", n), fmt.Sprintf("/docs/day/%d", n+1)))
		}
		state, reason := w.run()
		require.Equal(t, []any{Done, ""}, []any{state, reason})
		require.Equal(t, []string{"/docs", "/docs/day/1", "/docs/day/2", "/docs/day/3"}, w.paths())
		w.newSession()
		var days []string
		for n := range 50 {
			days = append(days, fmt.Sprintf("/docs/day/%d", n))
		}
		w.set("/docs", doc("another seed", days...))
		_, reason = w.run()
		require.Equal(t, reasonMaxPages, reason)
		require.Len(t, w.paths(), 12)
	})
}

// Figures out of range become warnings that name the provider and
// its selector.
func TestQualityWarnings(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.policy.CustomSelectors.Content = "main"
		same := func() http.HandlerFunc { return doc("the very same") }
		w.set("/docs", doc("seed", "/docs/a", "/docs/b", "/docs/c"))
		for _, path := range []string{"/docs/a", "/docs/b", "/docs/c"} {
			w.set(path, same())
		}
		w.run()
		r := w.report()
		warnings := r.Providers[0].Warnings
		require.Len(t, warnings, 2)
		require.Regexp(t, `^P: average_tokens is \d+(\.\d+)?, normal is 200 to 600: .* \(content: "main"\)$`, warnings[0])
		require.Equal(t, `P: duplicate_ratio is 0.5, normal is 0 to 0.1: check the remove selectors and the blocked paths: pages repeat each other's text (content: "main")`, warnings[1])

		w.policy.Terms, w.policy.TermsDate = policy.Allowed, w.time.Now().AddDate(0, 0, -100).Format(time.DateOnly)
		r = w.report()
		require.Len(t, r.Providers[0].Warnings, 3)
		require.Contains(t, strings.Join(r.Providers[0].Warnings, "\n"), "P: its terms of service were read on "+w.policy.TermsDate+", 100 days ago")
	})
}

// A person is shown 200 characters at most, on one line.
func TestShown(t *testing.T) {
	require.Equal(t, "a b c", shown(" a\n\tb  c\n"))
	exact := strings.Repeat("가", 200)
	require.Equal(t, exact, shown(exact))
	require.Equal(t, strings.Repeat("가", 199)+"…", shown(exact+"나"))
}
