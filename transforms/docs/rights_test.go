package docs

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
)

// said is one way in which a site speaks of use, with what its standard's text says it reserves.
type said struct {
	Robots, Header, Head string // {path} in robots: of the page
	Reserves             string // purposes
	Other                bool   // the job leaves such a page out with every purpose
}

// rightsSite is a site of five pages: a seed, and those to which it links.
type rightsSite struct {
	host  string
	pages [5]said

	mu    sync.Mutex
	asked []string
}

func (s *rightsSite) path(i int) string   { return fmt.Sprintf("/docs/p%d", i) }
func (s *rightsSite) marker(i int) string { return fmt.Sprintf("marker of %s page %d", s.host, i) }

func newRightsSite(r *rand.Rand, n int, ways []said) *rightsSite {
	s := &rightsSite{host: fmt.Sprintf("site%d.example.com", n)}
	whole := ways[r.IntN(len(ways))] // what robots.txt says of the whole site
	for i := range s.pages {
		of := ways[r.IntN(len(ways))]
		for i == 0 && of.Other || of.Robots != "" && !strings.Contains(of.Robots, "{path}") {
			of = ways[r.IntN(len(ways))]
		}
		s.pages[i] = of
	}
	if whole.Robots != "" && !strings.Contains(whole.Robots, "{path}") {
		s.pages[0] = whole
	}
	return s
}

// reserves reports whether the site reserves a page for a purpose, in robots.txt and as a whole.
func (s *rightsSite) reserves(i int, p rights.Purpose) (inRobots, atAll bool) {
	has := func(of said) bool { return slices.Contains(strings.Fields(of.Reserves), string(p)) }
	whole, own := s.pages[0], s.pages[i]
	if i == 0 || whole.Robots != "" && !strings.Contains(whole.Robots, "{path}") {
		inRobots = whole.Robots != "" && has(whole)
	}
	// A signal about a path takes the place of the site's own.
	inRobots = inRobots || own.Robots != "" && has(own)
	return inRobots, inRobots || has(own)
}

func (s *rightsSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path)
	s.mu.Unlock()
	if r.URL.Path == "/robots.txt" {
		w.Header().Set("Content-Type", "text/plain")
		text := "User-agent: *\nAllow: /\n"
		for i, of := range s.pages { // signals of paths stand in the group for everybody
			if strings.Contains(of.Robots, "{path}") {
				text += strings.ReplaceAll(of.Robots, "{path}", s.path(i)) + "\n"
			}
		}
		if whole := s.pages[0].Robots; !strings.Contains(whole, "{path}") {
			text += whole + "\n"
		}
		_, _ = io.WriteString(w, text)
		return
	}
	for i, of := range s.pages {
		if r.URL.Path != s.path(i) {
			continue
		}
		if name, value, ok := strings.Cut(of.Header, ": "); ok {
			w.Header().Set(name, value)
		}
		links := ""
		for n := range s.pages {
			links += fmt.Sprintf("<p><a href=%q>that page</a></p>", s.path(n))
		}
		html(fmt.Sprintf("<html><head><title>%s</title>%s</head><body><main><h1>Page %d</h1><p>This is the %s, which has something to say.</p>%s</main></body></html>",
			s.marker(i), of.Head, i, s.marker(i), links))(w, r)
		return
	}
	http.NotFound(w, r)
}

// With a purpose nothing that sites reserve for it is requested where robots.txt says so, or handed on where a
// response or page does, and all else is: by the sites' own logs and what is stored. First each site is crawled
// without a purpose, so that what is withdrawn is judged too, or not.
func TestPurposeOverSites(t *testing.T) {
	t.Parallel()
	const sites = 250
	d, err := db.Open(t.Context(), dbtest.SQLite(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	w := newWorld(t, d)
	r := rand.New(rand.NewPCG(35, 1)) // the same sites each time
	kept, withheld := 0, 0
	ways := cases.Table[[]said](t, "said.yaml")
	for n := range sites {
		s := newRightsSite(r, n, ways)
		w.sim.Handle(s.host, s)
		var seeds []string
		for i := range s.pages {
			seeds = append(seeds, "https://"+s.host+s.path(i))
		}
		w.policy, err = policy.Parse("p.yaml", fmt.Appendf(nil, "provider_id: p%d\nname: P\nseed_urls: [%s]\nallowed_path_patterns: [/docs/**]\nsources: [html]\n", n, strings.Join(seeds, ", ")), time.Now())
		require.NoError(t, err)
		purpose := rights.Purposes[n%len(rights.Purposes)]
		if n%2 == 0 {
			w.cfg.Purpose = ""
			w.newSession()
			w.run()
			for i, of := range s.pages {
				require.Equal(t, !of.Other, stored(w, n, s.marker(i)), "%s: without a purpose nothing is refused", s.marker(i))
			}
			s.asked = nil
		}
		w.cfg.Purpose = purpose
		w.newSession()
		w.run()
		for i, of := range s.pages {
			inRobots, atAll := s.reserves(i, purpose)
			about := fmt.Sprintf("%s for %s: %+v, whole: %+v", s.marker(i), purpose, of, s.pages[0])
			require.Equal(t, !inRobots, slices.Contains(s.asked, s.path(i)), about)
			require.Equal(t, !atAll && !of.Other, stored(w, n, s.marker(i)), about)
			if !atAll {
				kept++
				continue
			}
			withheld++
			reason := w.strings(fmt.Sprintf(`SELECT reason FROM docs_pages WHERE provider = 'p%d' AND address = 'https://%s%s'`, n, s.host, s.path(i)))
			require.Len(t, reason, 1, about)
			require.Regexp(t, `^reserved for `+string(purpose)+` by .*SHA-256 [0-9a-f]{64}`, reason[0], about)
		}
	}
	t.Logf("%d pages handed on, %d withheld", kept, withheld)
	require.Greater(t, min(kept, withheld), 150)
}

// stored reports whether the database has a text of a page, or its title.
func stored(w *world, n int, marker string) bool {
	return len(w.strings(fmt.Sprintf(`SELECT p.title FROM docs_pages p WHERE provider = 'p%d' AND title = '%s' UNION ALL
		SELECT preview FROM docs_chunks WHERE provider = 'p%d' AND preview LIKE '%%%s,%%'`, n, marker, n, marker))) > 0
}

// With a purpose a page that answers 402 counts as reserved, by its answer. What was stored of it is withdrawn, it is not requested
// again for two weeks, and comes back when it is free. Without a purpose it fails, and what is stored stays.
func TestSold(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.pages("a", "b")
		state := func(status Status, content, asked bool, archive string) {
			t.Helper()
			w.newSession()
			w.run()
			r := w.row("/docs/a")
			require.Equal(t, []any{status, content, asked}, []any{r.Status, r.Content, slices.Contains(w.paths(), "/docs/a")}, r.Reason)
			require.Equal(t, []string{archive}, w.strings(`SELECT rights_archive FROM docs_pages WHERE address LIKE '%/docs/a'`))
			require.True(t, w.row("/docs/b").Content)
			if w.cfg.Purpose != "" && archive == rights.Reserved {
				require.Regexp(t, `^reserved for search by the answer for https://docs.example.com/docs/a: 402 Payment Required \(20.*SHA-256 [0-9a-f]{64}\)$`, r.Reason)
				require.Positive(t, w.crawl.part.stats.Reserved)
			}
		}
		state(Indexed, true, true, rights.Unsaid)
		w.set("/docs/a", status(402))
		state(Failed, true, true, rights.Reserved)
		w.cfg.Purpose = rights.Search
		state(Blocked, false, false, rights.Reserved)
		w.time.Advance(15 * 24 * time.Hour)
		state(Skipped, false, true, rights.Reserved)
		w.pages("a", "b")
		state(Blocked, false, false, rights.Reserved)
		w.time.Advance(15 * 24 * time.Hour)
		state(Indexed, true, true, rights.Unsaid)
	})
}

// A site that sells all its pages is in question as one that refuses all of them: what is stored stays, the next session asks
// again, and finds it as it was.
func TestSoldWhole(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		paths := []string{"/docs", "/docs/a", "/docs/b", "/docs/c", "/docs/d"}
		w.cfg.Purpose = rights.Search
		session := func(want State) {
			t.Helper()
			w.newSession()
			got, why := w.run()
			require.Equal(t, want, got, why)
			for _, path := range paths {
				require.True(t, w.row(path).Content, path)
			}
			w.time.Advance(24 * time.Hour)
		}
		w.pages("a", "b", "c", "d")
		session(Done)
		for _, path := range paths {
			w.set(path, status(402))
		}
		for range 20 {
			session(siteBlocked)
		}
		w.pages("a", "b", "c", "d")
		session(Done)
		require.Empty(t, w.strings(`SELECT address FROM docs_pages WHERE rights_search <> 'unsaid'`))
	})
}
