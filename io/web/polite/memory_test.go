package polite_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// notes is a Memory of one process after another.
type notes struct {
	next   map[string]time.Time
	robots map[string]polite.RobotsAnswer
	count  int
	hour   int // of the budget; 0: none
}

func (n *notes) Next(_ context.Context, site string) (time.Time, error) { return n.next[site], nil }

func (n *notes) Requested(_ context.Context, site string, now, next time.Time) (time.Duration, error) {
	if n.hour > 0 && n.count == n.hour {
		n.count = 0
		return begin.Add(time.Hour).Sub(now), nil
	}
	if n.count++; n.hour > 0 && now.Sub(begin) > 2*time.Hour {
		return 0, polite.ErrBudget
	}
	n.next[site] = next
	return 0, nil
}

func (n *notes) Paused(_ context.Context, site string, until time.Time) error {
	n.next[site] = until
	return nil
}

func (n *notes) Robots(_ context.Context, origin string, now time.Time) (*polite.RobotsAnswer, error) {
	if a, ok := n.robots[origin]; ok && now.Sub(a.FetchedAt) < 24*time.Hour {
		return &a, nil
	}
	return nil, nil
}

func (n *notes) KeepRobots(_ context.Context, origin string, a polite.RobotsAnswer) error {
	n.robots[origin] = a
	return nil
}

func remembering(c *polite.Client) (*polite.Client, *notes) {
	n := &notes{next: map[string]time.Time{}, robots: map[string]polite.RobotsAnswer{}}
	c.Memory = n
	return c, n
}

func get(t *testing.T, c *polite.Client, at string) string {
	t.Helper()
	return outcome(c.Get(t.Context(), polite.Request{URL: at, MaxRedirects: 5}))
}

// What a killed process knew holds for the next one: the gap of its last request,
// the pause that a host asked for, and robots.txt until it is a day old.
func TestMemory(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{
		"a.example/robots.txt": list(says(200, "User-agent: *\nDisallow: /no\nCrawl-delay: 5\n")),
		"a.example/x":          list(says(200, ""), says(429, "", "Retry-After", "1200"), says(200, ""))})
	p := policies()["docs"]
	p.Robots.TTL = 24 * time.Hour
	first, memory := remembering(w.client(p))
	require.Equal(t, "200", get(t, first, "https://a.example/x"))
	require.Equal(t, []string{"0s a.example/robots.txt", "5s a.example/x"}, w.requests())

	second := w.client(p)
	second.Memory = memory
	require.Equal(t, "robots.txt line 2: Disallow: /no", get(t, second, "https://a.example/no"))
	require.Equal(t, "429, it answered 429 for https://a.example/x and asks for a pause of 20m0s", get(t, second, "https://a.example/x"))
	require.Equal(t, []string{"10s a.example/x"}, w.requests(), "robots.txt is kept")

	third := w.client(p)
	third.Memory = memory
	require.Equal(t, "a.example asked for a pause until 2026-03-02T09:20:10Z", get(t, third, "https://a.example/x"))
	w.clock.turn(15 * time.Minute) // what is left is within ten minutes
	require.Equal(t, "200", get(t, third, "https://a.example/x"))
	require.Equal(t, []string{"20m10s a.example/x"}, w.requests())

	w.clock.turn(24 * time.Hour)
	fourth := w.client(p)
	fourth.Memory = memory
	require.Equal(t, "200", get(t, fourth, "https://a.example/x"))
	require.Equal(t, []string{"24h20m10s a.example/robots.txt", "24h20m15s a.example/x"}, w.requests(), "robots.txt is too old")
}

// A process may be killed long after its request's turn came, and before anybody
// knew of the answer: the next process keeps a whole gap from its own start.
func TestGapAfterAKill(t *testing.T) {
	w := newWorld(t, nil)
	p := policies()["docs"]
	first, memory := remembering(w.client(p))
	require.Equal(t, "404", get(t, first, "https://a.example/x"))
	require.Equal(t, []string{"0s a.example/robots.txt", "1s a.example/x"}, w.requests())
	for _, tt := range []struct {
		passed time.Duration // from the last request to the next process
		next   string
	}{
		{900 * time.Millisecond, "2.9s a.example/robots.txt"},
		{59 * time.Second, "1m3.9s a.example/robots.txt"},
		{5 * time.Minute, "6m4.9s a.example/robots.txt"}, // any request ended long ago
	} {
		w.clock.turn(tt.passed)
		next := w.client(p)
		next.Memory = memory
		clear(memory.robots)
		get(t, next, "https://a.example/robots.txt")
		require.Equal(t, []string{tt.next}, w.requests()[:1])
	}
}

// Without delay nothing is kept from one process to the next either.
func TestNoGapAfterAKillWithoutDelay(t *testing.T) {
	w := newWorld(t, nil)
	p := policies()["docs"]
	p.NoDelay = true
	first, memory := remembering(w.client(p))
	require.Equal(t, "404", get(t, first, "https://a.example/x"))
	next := w.client(p)
	next.Memory = memory
	clear(memory.robots)
	get(t, next, "https://a.example/x")
	require.Equal(t, []string{"0s a.example/robots.txt", "0s a.example/x", "0s a.example/robots.txt", "0s a.example/x"}, w.requests())
}

// A robots.txt that fails is not kept; one that lets the crawl go on slowly holds
// as long as the client.
func TestFailureIsNotKept(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/robots.txt": list(says(500, ""))})
	c, memory := remembering(w.client(policies()["docs"]))
	require.Equal(t, "404", get(t, c, "https://a.example/x"))
	require.Equal(t, "404", get(t, c, "https://a.example/x"))
	require.Empty(t, memory.robots)
	require.Equal(t, []string{"0s a.example/robots.txt", "2s a.example/x", "4s a.example/x"}, w.requests())
}

// The hour's budget is waited for, in the way that the policy names; the day's
// ends the crawl before anything is sent.
func TestBudget(t *testing.T) {
	w := newWorld(t, nil)
	p := policies()["docs"]
	var told []string
	p.WaitForBudget = func(_ context.Context, site string, until time.Time, wait func(time.Duration) error) error {
		told = append(told, site+" "+until.Sub(begin).String())
		return wait(until.Sub(w.clock.now()))
	}
	c, memory := remembering(w.client(p))
	memory.hour = 3
	for range 3 {
		require.Equal(t, "404", get(t, c, "https://a.example/x"))
	}
	require.Equal(t, []string{"0s a.example/robots.txt", "1s a.example/x", "2s a.example/x", "1h0m0s a.example/x"}, w.requests())
	require.Equal(t, []string{"a.example 1h0m0s"}, told)
	w.clock.turn(2 * time.Hour)
	require.Equal(t, polite.ErrBudget.Error(), get(t, c, "https://a.example/x"))
	require.Empty(t, w.requests())
}

// hand is a Control.
type hand struct {
	stop chan struct{}
	asks func() // in each Proceed
}

func (h *hand) Stopping() <-chan struct{} { return h.stop }

func (h *hand) Proceed(context.Context) bool {
	if h.asks != nil {
		h.asks()
	}
	select {
	case <-h.stop:
		return false
	default:
		return true
	}
}

// A stop ends a pause at once, and nothing is sent after it; not even what has
// got its turn.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := web.New(web.Config{Offline: true})
		require.NoError(t, err)
		defer client.Close()
		control := &hand{stop: make(chan struct{})}
		p := policies()["docs"]
		p.Robots.For = func(*url.URL) *url.URL { return nil }
		c, memory := remembering(&polite.Client{Web: client, Pacer: &polite.Pacer{}, Policy: p, Control: control})
		memory.next["a.example"] = time.Now().Add(5 * time.Minute)
		begun := time.Now()
		time.AfterFunc(time.Minute, func() { close(control.stop) })
		require.Equal(t, polite.ErrStopped.Error(), get(t, c, "https://a.example/x"))
		require.Equal(t, time.Minute, time.Since(begun))
		require.Zero(t, client.Stats().Requests)
	})
	w := newWorld(t, nil)
	control := &hand{stop: make(chan struct{})}
	p := policies()["docs"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	c := w.client(p)
	c.Control = control
	n := 0
	control.asks = func() { // once before the turn, once when it is there
		if n++; n == 2 {
			close(control.stop)
		}
	}
	require.Equal(t, polite.ErrStopped.Error(), get(t, c, "https://a.example/x"))
	require.Empty(t, w.requests())
}

// One request at a time a site, whoever asks it; a parallel one does not wait, and
// the next one keeps its gap after it.
func TestTurns(t *testing.T) {
	var mu sync.Mutex
	at, most := 0, 0
	both := make(chan struct{})
	slow := func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		at++
		most = max(most, at)
		if at == 2 {
			close(both)
		}
		mu.Unlock()
		if r.URL.Path == "/both" {
			<-both
		}
		mu.Lock()
		at--
		mu.Unlock()
		rw.WriteHeader(200)
	}
	answers := map[string][]http.HandlerFunc{"a.example/both": list(slow)}
	for i := range 6 {
		answers[fmt.Sprint("a.example/", i)] = list(slow)
	}
	w := newWorld(t, answers)
	c := w.client(policies()["seed"])
	c.Policy.Robots.For = func(*url.URL) *url.URL { return nil }
	others := w.client(policies()["seed"])
	others.Policy.Robots.For = c.Policy.Robots.For
	others.Pacer = c.Pacer
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			of := []*polite.Client{c, others}[i%2]
			if _, err := of.Get(t.Context(), polite.Request{URL: fmt.Sprint("https://a.example/", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, most)
	require.Equal(t, 5*200*time.Millisecond, w.clock.now().Sub(begin))
	for range 2 {
		wg.Go(func() {
			if _, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/both", Parallel: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2, most)
	w.requests()
	before := w.clock.now()
	require.Equal(t, "200", get(t, c, "https://a.example/1"))
	require.Equal(t, 200*time.Millisecond, w.clock.now().Sub(before))
}

// Gaps are drawn over the range, above what robots.txt asks for.
func TestGap(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/robots.txt": list(says(200, "User-agent: *\nCrawl-delay: 3\n"))})
	p := policies()["docs"]
	p.Gap = polite.Range{Min: 2 * sec, Max: 4 * sec}
	c := w.client(p)
	drawn := map[time.Duration]bool{}
	for range 20 {
		before := w.clock.now()
		require.Equal(t, "404", get(t, c, "https://a.example/x"))
		gap := w.clock.now().Sub(before)
		require.True(t, gap >= 3*sec && gap <= 4*sec, "%v", gap)
		drawn[gap] = true
	}
	require.Greater(t, len(drawn), 10)
	p.NoDelay = true
	before := w.clock.now()
	require.Equal(t, "404", get(t, w.client(p), "https://a.example/x"))
	require.Equal(t, before, w.clock.now())
}

// A pause that an answer asks for begins with it: another client that waits for
// the site's turn waits for the pause too.
func TestPauseBeginsWithTheAnswer(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/x": list(says(429, "", "Retry-After", "20"), says(200, ""))})
	p := policies()["seed"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	c, other := w.client(p), w.client(p)
	other.Pacer = c.Pacer
	_, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/x", OnRetry: func(context.Context, polite.Attempt, time.Duration) error {
		require.Equal(t, "404", get(t, other, "https://a.example/y"))
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"0s a.example/x", "20s a.example/y"}, w.requests()[:2])
}
