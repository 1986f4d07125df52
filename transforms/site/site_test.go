package site

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/answer"
)

func ok(r role, path string) Answer {
	return Answer{Role: r, URL: "https://docs.test" + path, Status: 200}
}

func status(r role, path string, code int) Answer {
	a := ok(r, path)
	a.Status = code
	return a
}

func wall(r role, path string, k answer.Kind) Answer {
	a := ok(r, path)
	a.Verdict = answer.Verdict{Kind: k, Evidence: "the title"}
	return a
}

func to(r role, path, target string) Answer {
	a := status(r, path, 301)
	a.To = target
	return a
}

func failure(r role, path, kind string) Answer {
	return Answer{Role: r, URL: "https://docs.test" + path, Failure: kind}
}

// each is n answers of known pages.
func each(n int, one func(path string) Answer) (out []Answer) {
	for i := range n {
		out = append(out, one(fmt.Sprintf("/p%02d", i)))
	}
	return out
}

func known(code int) func(string) Answer {
	return func(path string) Answer { return status(Known, path, code) }
}

func TestVerdict(t *testing.T) {
	seeds := func(all ...Answer) []Answer { return all }
	for name, c := range map[string]struct {
		answers []Answer
		want    State
		cause   string
	}{
		"nothing was asked":                       {nil, Open, ""},
		"all is well":                             {append(each(4, known(200)), ok(Seed, "/")), Open, ""},
		"not modified":                            {append(each(4, known(304)), status(Seed, "/", 304)), Open, ""},
		"403 for all":                             {append(each(5, known(403)), status(Robots, "/robots.txt", 403), status(Seed, "/", 403)), Blocked, "docs.test refuses (403 for 1 of 1 seeds, 5 of 5 known URLs, robots.txt)"},
		"the seed alone, at the first crawl":      {seeds(status(Seed, "/", 401)), Blocked, "docs.test refuses (401 for 1 of 1 seeds)"},
		"402 for all":                             {append(each(5, known(402)), status(Seed, "/", 402)), Blocked, "docs.test refuses (402 for 1 of 1 seeds, 5 of 5 known URLs)"},
		"robots.txt alone":                        {seeds(status(Robots, "/robots.txt", 403)), Blocked, "docs.test refuses (403 for robots.txt)"},
		"403 for robots.txt of an open site":      {append(each(4, known(200)), status(Robots, "/robots.txt", 403), ok(Seed, "/")), Open, ""},
		"one seed of two":                         {append(each(4, known(200)), status(Seed, "/", 403), ok(Seed, "/b")), Open, ""},
		"the only seed, while the pages answer":   {append(each(4, known(200)), status(Seed, "/", 403)), Open, ""},
		"some pages of an open site":              {append(append(each(4, known(200)), ok(Seed, "/")), status(Known, "/x", 403), status(Known, "/y", 403)), Open, ""},
		"most pages":                              {append(each(4, known(403)), ok(Seed, "/"), ok(Known, "/x")), Blocked, "docs.test refuses (403 for 4 of 5 known URLs)"},
		"a challenge":                             {seeds(wall(Seed, "/", answer.Challenge)), Blocked, "docs.test answers with a challenge for bots"},
		"a consent page":                          {seeds(wall(Seed, "/", answer.Consent)), Blocked, "docs.test shows a consent page in place of its pages"},
		"a redirect to a consent page":            {seeds(Answer{Role: Seed, URL: "https://docs.test/", Status: 302, To: "https://consent.test/", Verdict: answer.Verdict{Kind: answer.Consent}}), Blocked, "docs.test shows a consent page in place of its pages"},
		"a login":                                 {seeds(wall(Seed, "/", answer.Login)), Blocked, "docs.test shows a login in place of its pages"},
		"another host":                            {seeds(to(Seed, "/docs/", "https://developer.test/docs/")), Moved, "docs.test moved to developer.test"},
		"another path":                            {seeds(to(Seed, "/docs/", "https://www.docs.test/guides/")), Moved, "docs.test moved its pages out of what is collected, such as /docs/ to /guides/"},
		"most known pages to another host":        {append(each(4, func(p string) Answer { return to(Known, p, "https://new.test"+p) }), ok(Seed, "/")), Moved, "docs.test moved to new.test"},
		"parked":                                  {append(each(5, known(404)), wall(Seed, "/", answer.Parked)), Closed, "docs.test is parked: its domain shows no site any more"},
		"no name":                                 {seeds(failure(Seed, "/", "dns")), Closed, "the name docs.test cannot be resolved (DNS)"},
		"404 for all":                             {append(each(5, known(404)), status(Seed, "/", 404)), Closed, "docs.test has nothing that was there (404 for 1 of 1 seeds, 5 of 5 known URLs)"},
		"soft 404 for all":                        {append(each(5, func(p string) Answer { return wall(Known, p, answer.Soft404) }), wall(Seed, "/", answer.Soft404)), Closed, "docs.test has nothing that was there (soft 404 for 1 of 1 seeds, 5 of 5 known URLs)"},
		"half of the pages":                       {append(append(each(4, known(404)), ok(Seed, "/")), ok(Known, "/a"), ok(Known, "/b"), ok(Known, "/c"), ok(Known, "/d")), Thin, "docs.test shows much less than it did: 4 of 8 known URLs are gone"},
		"two pages of four are no half of a site": {append(each(2, known(404)), ok(Seed, "/"), ok(Known, "/a"), ok(Known, "/b")), Open, ""},
		"a few of many":                           {append(append(each(3, known(404)), ok(Seed, "/")), append(each(0, known(200)), ok(Known, "/a"), ok(Known, "/b"), ok(Known, "/c"), ok(Known, "/d"), ok(Known, "/e"), ok(Known, "/f"))...), Open, ""},
		"broken links":                            {append([]Answer{ok(Seed, "/")}, each(9, func(p string) Answer { return status(New, p, 404) })...), Open, ""},
		"5xx":                                     {append(each(5, known(503)), status(Seed, "/", 503)), Down, "docs.test does not answer as it should (503 for 1 of 1 seeds, 5 of 5 known URLs)"},
		"below HTTP":                              {seeds(failure(Seed, "/", "timeout")), Down, "docs.test does not answer as it should (timeout for 1 of 1 seeds)"},
		"maintenance":                             {seeds(wall(Seed, "/", answer.Maintenance)), Down, "docs.test does not answer as it should (maintenance for 1 of 1 seeds)"},
		"known articles without seeds":            {each(5, known(403)), Blocked, "docs.test refuses (403 for 5 of 5 known URLs)"},
		"first crawl, pages refused":              {append([]Answer{ok(Seed, "/")}, each(5, func(p string) Answer { return status(New, p, 403) })...), Blocked, "docs.test refuses (403 for 5 of 5 other URLs)"},
	} {
		t.Run(name, func(t *testing.T) {
			about := About{Name: "docs.test", Seeds: 1, SeedKey: "seed_urls", ScopeKey: "allowed_path_patterns"}
			j := Begin(about)
			for _, a := range c.answers {
				j.Add(a)
			}
			v := j.Verdict()
			require.Equal(t, c.want, v.State)
			require.Equal(t, c.cause, v.Cause)
			require.Equal(t, c.want == Open, v.Advice == "")
			require.Equal(t, c.want == Open, v.Evidence == nil)
		})
	}
}

func TestAdvice(t *testing.T) {
	j := Begin(About{Name: "docs.example.com", Seeds: 1, Known: 9, SeedKey: "seed_urls", ScopeKey: "allowed_path_patterns"})
	j.Add(Answer{Role: Seed, URL: "https://docs.example.com/docs/", Status: 301, To: "https://developer.example.com/docs/"})
	require.Equal(t, "docs.example.com moved to developer.example.com: change seed_urls", j.Verdict().String())
	require.Equal(t, []string{"seed https://docs.example.com/docs/: 301 to https://developer.example.com/docs/"}, j.Verdict().Evidence)
	require.Empty(t, Begin(About{}).Verdict().String())
}

// TestStop says after which answers nothing more is requested.
func TestStop(t *testing.T) {
	j := Begin(About{Seeds: 2, Known: 100})
	j.Add(status(Robots, "/robots.txt", 403))
	require.False(t, j.Stop(), "robots.txt may be missing where a store of objects answers 403")
	j.Add(status(Seed, "/", 403))
	require.False(t, j.Stop(), "another seed")
	j.Add(status(Seed, "/b", 403))
	require.False(t, j.Stop(), "the seeds may be forbidden alone")
	for i, a := range each(5, known(403)) {
		require.False(t, j.Stop(), i)
		j.Add(a)
	}
	require.True(t, j.Stop())

	j = Begin(About{Seeds: 1, Known: 100})
	j.Add(ok(Seed, "/"))
	for _, a := range each(5, known(404)) {
		j.Add(a)
	}
	require.Equal(t, Thin, j.Verdict().State)
	require.False(t, j.Stop(), "a thin site is read to its end")

	j = Begin(About{Seeds: 1})
	j.Add(status(Seed, "/", 403))
	require.True(t, j.Stop(), "nothing is known, so the seeds decide")
}

// TestDoubts has a site that changes its mind while it is read.
func TestDoubts(t *testing.T) {
	begin := func() *Judge {
		j := Begin(About{Seeds: 1, Known: 100})
		j.Add(ok(Seed, "/"))
		for _, a := range each(30, known(200)) {
			j.Add(a)
		}
		require.False(t, j.Doubtful())
		for i := range 10 {
			require.False(t, j.Tired())
			j.Add(status(Known, fmt.Sprintf("/late%d", i), 403))
		}
		require.True(t, j.Tired())
		require.True(t, j.Doubtful())
		require.Equal(t, Open, j.Verdict().State)
		return j
	}
	j := begin()
	j.Add(status(Seed, "/", 403))
	require.Equal(t, Blocked, j.Verdict().State)
	require.True(t, j.Stop())
	j = begin()
	j.Add(ok(Seed, "/"))
	require.Equal(t, Open, j.Verdict().State, "a part of it is forbidden")
	require.False(t, j.Doubtful())
	require.False(t, j.Tired())
	j = begin()
	j.Add(status(Seed, "/", 400))
	require.False(t, j.Tired(), "the seed is not requested before each page")
	require.True(t, j.Doubtful())
}

// TestThinIsBelieved has a site that stays thin.
func TestThinIsBelieved(t *testing.T) {
	for runs, want := range []State{Thin, Thin, Open, Open} {
		j := Begin(About{Seeds: 1, Known: 6, Before: Streak{Thin, runs}})
		j.Add(ok(Seed, "/"))
		for _, a := range each(4, known(404)) {
			j.Add(a)
		}
		require.Equal(t, want, j.Verdict().State, runs)
	}
	j := Begin(About{Name: "shop.test", SeedKey: "list_urls"})
	j.Listed(242, 300)
	require.Equal(t, Open, j.Verdict().State)
	j = Begin(About{Name: "shop.test", SeedKey: "list_urls"})
	j.Listed(142, 300)
	require.Equal(t, "shop.test lists much less than it did: 142, 300 before", j.Verdict().Cause)
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		a    Answer
		want class
	}{
		{ok(Known, "/"), good}, {status(Known, "/", 206), good}, {status(Known, "/", 302), other}, {status(Known, "/", 400), other},
		{status(Known, "/", 410), gone}, {status(Known, "/", 429), failed}, {status(Known, "/", 451), refused},
		{wall(Known, "/", answer.Paywall), good}, {wall(Known, "/", answer.Page), good}, {wall(Known, "/", answer.ErrorPage), failed}, {wall(Known, "/", answer.Empty), other},
		{Answer{Status: 404, Verdict: answer.Verdict{Kind: answer.ErrorPage}}, gone}, {Answer{Status: 400, Verdict: answer.Verdict{Kind: answer.ErrorPage}}, other},
		{Answer{Status: 503, Verdict: answer.Verdict{Kind: answer.Challenge}}, refused}, {Answer{Status: 503, Verdict: answer.Verdict{Kind: answer.Maintenance}}, failed},
		{Answer{Status: 403, Verdict: answer.Verdict{Kind: answer.ErrorPage}}, refused},
	} {
		require.Equal(t, c.want, classify(c.a), "%+v", c.a)
	}
}

// A page that was answered before a site refused, and is read after that, says nothing of what the site does now.
func TestAnswersThatAreReadLate(t *testing.T) {
	for _, c := range []struct {
		nth  int64 // of a good answer that is added last
		want State
	}{{3, Blocked}, {99, Open}, {0, Open}} {
		j := Begin(About{Name: "docs.test", Seeds: 1, Known: 40})
		add := func(nth int64, a Answer) {
			a.Nth = nth
			j.Add(a)
		}
		add(1, ok(Seed, "/"))
		for i, a := range each(30, known(200)) {
			add(int64(i+4), a)
		}
		for i := range tail {
			require.False(t, j.Tired())
			add(int64(i+40), status(Known, fmt.Sprint("/r", i), 403))
		}
		require.True(t, j.Tired())
		add(60, status(Seed, "/", 403))
		require.True(t, j.Stop())
		add(c.nth, ok(Known, "/late"))
		require.Equal(t, c.want, j.Verdict().State, "%d", c.nth)
	}
}
