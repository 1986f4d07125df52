package polite_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

const sec = time.Second

var begin = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// world is a simulated web with a log of its requests by the fake clock.
type world struct {
	t     *testing.T
	sim   *webtest.Web
	clock *politetest.Clock
	turns string // the file of apart

	mu      sync.Mutex
	log     []string // "3s host/path"
	answers map[string][]http.HandlerFunc
}

func newWorld(t *testing.T, answers map[string][]http.HandlerFunc) *world {
	t.Helper()
	w := &world{t: t, sim: webtest.New(webtest.Options{}), clock: politetest.At(begin), answers: answers}
	require.NoError(t, w.sim.Start())
	t.Cleanup(func() { require.NoError(t, w.sim.Close()) })
	hosts := map[string]bool{"a.example": true, "www.a.example": true, "b.example": true}
	for h := range hosts {
		w.sim.Handle(h, http.HandlerFunc(w.serve))
	}
	return w
}

// serve answers the requests for a path with its answers in order, and repeats the
// last one.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	at := r.Host + r.URL.RequestURI()
	w.mu.Lock()
	w.log = append(w.log, fmt.Sprint(w.clock.Now().Sub(begin))+" "+at)
	all := w.answers[at]
	if len(all) > 1 {
		w.answers[at] = all[1:]
	}
	w.mu.Unlock()
	if len(all) == 0 {
		http.NotFound(rw, r)
		return
	}
	all[0](rw, r)
}

// answered logs that the answer to a request begins.
func (w *world) answered(at string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprint(w.clock.Now().Sub(begin))+" answered: "+at)
}

func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.log
	w.log = nil
	return out
}

func (w *world) client(p polite.Policy) *polite.Client {
	w.t.Helper()
	c, err := web.New(web.Config{ConnectTo: w.sim.Addr(), RootCAs: w.sim.CAPEM()})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	return &polite.Client{Web: c, Policy: p, Pacer: &polite.Pacer{Clock: w.clock.Polite()}}
}

func respond(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

func breaks(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func list(of ...http.HandlerFunc) []http.HandlerFunc { return of }

// policies are the four jobs' policies, with fixed gaps so that times can be
// compared.
func policies() map[string]polite.Policy {
	again := func(tries int, wait func(n int) time.Duration, may func(polite.Attempt) bool) polite.Retry {
		return func(a polite.Attempt) (time.Duration, bool) {
			return wait(a.Retries), a.Retries+1 < tries && may(a)
		}
	}
	same := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	robots := func(f func(int, web.Kind) polite.Verdict, retry polite.Retry) polite.Robots {
		return polite.Robots{Agent: "TestBot", MaxRedirects: 5, MaxBytes: 500 << 10, OnFailure: f, Retry: retry, SlowGap: 2 * sec}
	}
	passing := func(a polite.Attempt) bool {
		return slices.Contains([]int{429, 502, 503, 504}, a.Status()) || a.Kind() == web.KindReset || a.Kind() == web.KindTimeout
	}
	seed := again(2, same(500*time.Millisecond), passing)
	docs := func(a polite.Attempt) (time.Duration, bool) {
		switch {
		case a.Status() == 503:
			waits := []time.Duration{30 * sec, 60 * sec, 120 * sec, 0}
			return waits[min(a.Retries, 3)], a.Retries < 3
		case a.Status() == 429 && a.RetryAfter >= 0:
			return 0, a.Retries < 1
		case a.Status() == 429:
			return 60 * sec, a.Retries < 1
		}
		return 30 * sec, a.Kind() == web.KindReset && a.Retries < 1
	}
	docsRobots := func(a polite.Attempt) (time.Duration, bool) {
		if a.Status() == 503 {
			return 0, false
		}
		return docs(a)
	}
	three := again(3, same(sec), func(a polite.Attempt) bool { return a.Failure != nil || a.Status() == 429 || a.Status() >= 500 })
	news := again(3, same(0), func(a polite.Attempt) bool { return a.Kind() == web.KindReset || a.Status() >= 500 })
	return map[string]polite.Policy{
		"seed": {Gap: polite.Range{Min: 200 * time.Millisecond}, MaxCrawlDelay: 30 * sec, MaxRetryAfter: 30 * sec, Retry: seed,
			Robots: robots(func(int, web.Kind) polite.Verdict { return polite.Allow }, seed)},
		"docs": {Gap: polite.Range{Min: sec}, MaxRetryAfter: 10 * time.Minute, Retry: docs,
			Robots: robots(func(status int, kind web.Kind) polite.Verdict {
				switch {
				case status >= 500 || status == 429:
					return polite.AllowSlowly
				case status == 0:
					return polite.Standard(status, kind)
				}
				return polite.Allow
			}, docsRobots)},
		"catalog": {Gap: polite.Range{Min: sec}, MaxCrawlDelay: 30 * sec, MaxRetryAfter: 30 * sec, Robots: robots(nil, three)},
		"news": {Gap: polite.Range{Min: 2 * sec}, MaxCrawlDelay: 30 * sec, MaxRetryAfter: 30 * sec, Retry: news,
			Abandon: func(status int) bool { return status == 403 || status == 429 },
			Robots: robots(func(status int, _ web.Kind) polite.Verdict {
				if status >= 400 && status < 500 {
					return polite.Allow
				}
				return polite.Deny
			}, news)},
	}
}

// Each row is a site. It says, for each job, the results of its requests and when
// they arrive.
func TestPolicies(t *testing.T) {
	type answer struct {
		Status int
		Body   string
		Header []string
	}
	for _, tt := range cases.Table[[]struct {
		Name    string
		Answers map[string][]answer
		Gets    []string
		Jobs    map[string]struct{ Want, Log []string }
	}](t, "policies.yaml") {
		for job, of := range tt.Jobs {
			t.Run(tt.Name+"/"+job, func(t *testing.T) {
				answers := map[string][]http.HandlerFunc{}
				for at, all := range tt.Answers {
					for _, a := range all {
						answer := breaks
						if a.Status > 0 {
							answer = respond(a.Status, a.Body, a.Header...)
						}
						answers[at] = append(answers[at], answer)
					}
				}
				w := newWorld(t, answers)
				c := w.client(policies()[job])
				gets := tt.Gets
				if gets == nil {
					gets = []string{"https://a.example/x"}
				}
				for i, at := range gets {
					resp, err := c.Get(t.Context(), polite.Request{URL: at, MaxRedirects: 5, Scope: func(u *url.URL) error {
						if u.Path == "/out" {
							return errors.New("out of scope")
						}
						return nil
					}})
					require.Equal(t, strings.ReplaceAll(of.Want[i], "AFTER", until(w, of.Log)), outcome(resp, err), "%d", i)
				}
				require.Equal(t, of.Log, w.requests())
			})
		}
	}
}

// until is an hour after the last request.
func until(w *world, log []string) string {
	at, _, _ := strings.Cut(log[len(log)-1], " ")
	d, err := time.ParseDuration(at)
	require.NoError(w.t, err)
	return begin.Add(d + time.Hour).UTC().Format(time.RFC3339)
}

// outcome is a Get's result as text: its status, then its error. Of a *web.Error it
// is the kind, and the error of Scope or robots.txt.
func outcome(resp *web.Response, err error) string {
	var parts []string
	if resp != nil {
		parts = append(parts, fmt.Sprint(resp.Status))
	}
	var failure *web.Error
	var robots *polite.RobotsError
	switch {
	case err == nil:
	case errors.As(err, &robots) && robots.Err != nil:
		parts = append(parts, "robots.txt cannot be fetched: "+string(robots.Err.Kind))
	case errors.As(err, &failure) && failure.Kind == web.KindBlocked:
		parts = append(parts, "blocked: "+failure.Err.Error())
	case errors.As(err, &failure):
		parts = append(parts, string(failure.Kind))
	default:
		parts = append(parts, err.Error())
	}
	return strings.Join(parts, ", ")
}

// Half a path that is allowed does not count at the end of a robots.txt that is longer than what is
// read; half a path that is forbidden does.
func TestRobotsIsCutAtALine(t *testing.T) {
	const body = "User-agent: *\nDisallow: /x\nAllow: /x/public\n"
	for most, want := range map[int]bool{len(body) - len("x\nAllow: /x/public\n"): false, strings.Index(body, "/public"): false, len(body) - 1: false, len(body): true} {
		w := newWorld(t, map[string][]http.HandlerFunc{"a.example/robots.txt": list(respond(200, body))})
		c := w.client(polite.Policy{Robots: polite.Robots{Agent: "TestBot", MaxBytes: int64(most)}})
		rules, err := c.Robots(t.Context(), &url.URL{Scheme: "https", Host: "a.example", Path: "/"})
		require.NoError(t, err)
		require.Equal(t, body[:most], string(rules.Body), "the answer itself is kept as it came")
		require.False(t, rules.File.Allowed("TestBot", "/x"), "%d bytes", most)
		require.Equal(t, want, rules.File.Allowed("TestBot", "/x/public"), "%d bytes", most)
	}
}

// A robots.txt is asked for again after a day, however long a crawl lasts. Where it cannot be
// had then, the old one holds.
func TestRobotsIsReadDaily(t *testing.T) {
	for _, name := range []string{"catalog", "news"} { // their robots.txt must be had
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string][]http.HandlerFunc{
				"a.example/robots.txt": list(respond(200, "User-agent: *\nDisallow: /closed\n"), breaks, breaks, breaks, respond(200, "User-agent: *\nDisallow: /\n")),
				"a.example/1":          list(respond(200, "")),
			})
			c := w.client(policies()[name])
			require.Equal(t, "200", get(t, c, "https://a.example/1"))
			w.clock.Advance(23 * time.Hour)
			require.Equal(t, "200", get(t, c, "https://a.example/1"))
			require.Len(t, w.requests(), 3)
			w.clock.Advance(time.Hour)
			require.Equal(t, "200", get(t, c, "https://a.example/1"))
			require.Equal(t, "robots.txt line 2: Disallow: /closed", get(t, c, "https://a.example/closed"))
			w.clock.Advance(24 * time.Hour)
			require.Equal(t, "robots.txt line 2: Disallow: /", get(t, c, "https://a.example/1"))
		})
	}
}

// A redirect can ask for a pause too, before it is followed.
func TestRetryAfterOfARedirect(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{
		"a.example/old": list(respond(302, "", "Location", "/new", "Retry-After", "20")),
		"a.example/new": list(respond(200, "")),
		"b.example/old": list(respond(302, "", "Location", "/new", "Retry-After", "3600")),
		"b.example/new": list(respond(200, "")),
	})
	p := policies()["catalog"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	c := w.client(p)
	_, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/old", MaxRedirects: 1})
	require.NoError(t, err)
	_, err = c.Get(t.Context(), polite.Request{URL: "https://b.example/old", MaxRedirects: 1})
	require.ErrorAs(t, err, new(*polite.AbandonedError))
	require.Equal(t, []string{"0s a.example/old", "20s a.example/new", "20s b.example/old"}, w.requests())
}
