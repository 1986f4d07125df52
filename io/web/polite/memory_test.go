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

// testMemory is a Memory that several clients use in turn, like the processes of a job.
type testMemory struct {
	next   map[string]time.Time
	robots map[string]polite.RobotsAnswer
	count  int
	hour   int // of the budget; 0: none
}

func (n *testMemory) Next(_ context.Context, site string) (time.Time, error) {
	return n.next[site], nil
}

func (n *testMemory) Requested(_ context.Context, site string, now, next time.Time) (time.Duration, error) {
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

func (n *testMemory) Paused(_ context.Context, site string, until time.Time) error {
	n.next[site] = until
	return nil
}

func (n *testMemory) Robots(_ context.Context, origin string, now time.Time) (*polite.RobotsAnswer, error) {
	if a, ok := n.robots[origin]; ok && (now.IsZero() || now.Sub(a.FetchedAt) < 24*time.Hour) {
		return &a, nil
	}
	return nil, nil
}

func (n *testMemory) KeepRobots(_ context.Context, origin string, a polite.RobotsAnswer) error {
	n.robots[origin] = a
	return nil
}

func withMemory(c *polite.Client) (*polite.Client, *testMemory) {
	n := &testMemory{next: map[string]time.Time{}, robots: map[string]polite.RobotsAnswer{}}
	c.Memory = n
	return c, n
}

func get(t *testing.T, c *polite.Client, at string) string {
	t.Helper()
	return outcome(c.Get(t.Context(), polite.Request{URL: at, MaxRedirects: 5}))
}

// The process after a killed one keeps the gap of its last request, the pause that a
// host asked for, and robots.txt until it is a day old.
func TestMemory(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{
		"a.example/robots.txt": list(respond(200, "User-agent: *\nDisallow: /no\nCrawl-delay: 5\n")),
		"a.example/x":          list(respond(200, ""), respond(429, "", "Retry-After", "1200"), respond(200, ""))})
	p := policies()["docs"]
	first, memory := withMemory(w.client(p))
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
	w.clock.Advance(15 * time.Minute) // less than ten minutes are left
	require.Equal(t, "200", get(t, third, "https://a.example/x"))
	require.Equal(t, []string{"20m10s a.example/x"}, w.requests())

	w.clock.Advance(24 * time.Hour)
	fourth := w.client(p)
	fourth.Memory = memory
	require.Equal(t, "200", get(t, fourth, "https://a.example/x"))
	require.Equal(t, []string{"24h20m10s a.example/robots.txt", "24h20m15s a.example/x"}, w.requests(), "robots.txt is too old")
}

// A process may be killed long after it sent its request, before it recorded the
// answer. So the next process waits for a whole gap from its own start.
func TestGapAfterAKill(t *testing.T) {
	w := newWorld(t, nil)
	p := policies()["docs"]
	first, memory := withMemory(w.client(p))
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
		w.clock.Advance(tt.passed)
		next := w.client(p)
		next.Memory = memory
		clear(memory.robots)
		get(t, next, "https://a.example/robots.txt")
		require.Equal(t, []string{tt.next}, w.requests()[:1])
	}
}

// With NoDelay, no gap is kept from one process to the next.
func TestNoGapAfterAKillWithoutDelay(t *testing.T) {
	w := newWorld(t, nil)
	p := policies()["docs"]
	p.NoDelay = true
	first, memory := withMemory(w.client(p))
	require.Equal(t, "404", get(t, first, "https://a.example/x"))
	next := w.client(p)
	next.Memory = memory
	clear(memory.robots)
	get(t, next, "https://a.example/x")
	require.Equal(t, []string{"0s a.example/robots.txt", "0s a.example/x", "0s a.example/robots.txt", "0s a.example/x"}, w.requests())
}

// Where a first robots.txt fails and the client continues, it is requested again after five minutes. What it says
// then holds; that it cannot be reached at all ends the visit.
func TestFailureIsShort(t *testing.T) {
	for name, c := range map[string]struct {
		then http.HandlerFunc
		want string
	}{
		"rules":   {respond(200, "User-agent: *\nDisallow: /private\n"), "robots.txt line 2: Disallow: /private"},
		"nothing": {breaks, "robots.txt cannot be fetched"},
		"still":   {respond(503, ""), "200"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string][]http.HandlerFunc{"a.example/robots.txt": list(respond(503, ""), c.then), "a.example/private": list(respond(200, "x"))})
			client := w.client(policies()["docs"])
			require.Equal(t, "200", get(t, client, "https://a.example/private"))
			w.clock.Advance(4 * time.Minute)
			require.Equal(t, "200", get(t, client, "https://a.example/private"))
			w.clock.Advance(time.Minute)
			require.Contains(t, get(t, client, "https://a.example/private"), c.want)
		})
	}
}

// A failure of robots.txt is not kept in Memory. With AllowSlowly it lasts as long
// as the client.
func TestFailureIsNotKept(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/robots.txt": list(respond(500, ""))})
	c, memory := withMemory(w.client(policies()["docs"]))
	require.Equal(t, "404", get(t, c, "https://a.example/x"))
	require.Equal(t, "404", get(t, c, "https://a.example/x"))
	require.Empty(t, memory.robots)
	require.Equal(t, []string{"0s a.example/robots.txt", "2s a.example/x", "4s a.example/x"}, w.requests())
}

// If robots.txt fails later, the rules that were read last hold until it can be read again, in the same process and
// in the next one: slowly or not, no page that they disallow is requested.
func TestEarlierRulesHold(t *testing.T) {
	const disallowed = "robots.txt line 2: Disallow: /private"
	for name, next := range map[string]bool{"same process": false, "next process": true} {
		for _, job := range []string{"docs", "catalog"} {
			t.Run(job+", "+name, func(t *testing.T) {
				w := newWorld(t, map[string][]http.HandlerFunc{
					"a.example/robots.txt": list(respond(200, "User-agent: *\nDisallow: /private\n"), respond(503, "")), "a.example/private": list(respond(200, "x"))})
				c, memory := withMemory(w.client(policies()[job]))
				restart := func() {
					if next {
						c = w.client(policies()[job])
						c.Memory = memory
					}
				}
				require.Equal(t, disallowed, get(t, c, "https://a.example/private"))
				for _, later := range []time.Duration{25 * time.Hour, 25 * time.Hour, 60 * 24 * time.Hour} {
					w.clock.Advance(later)
					restart()
					require.Equal(t, disallowed, get(t, c, "https://a.example/private"))
					require.Equal(t, "404", get(t, c, "https://a.example/x"))
				}
			})
		}
	}
}

// A request waits for the hour's budget through Policy.WaitForBudget. A used-up
// day's budget fails before anything is sent.
func TestBudget(t *testing.T) {
	w := newWorld(t, nil)
	p := policies()["docs"]
	var waits []string
	p.WaitForBudget = func(_ context.Context, site string, until time.Time, wait func(time.Duration) error) error {
		waits = append(waits, site+" "+until.Sub(begin).String())
		return wait(until.Sub(w.clock.Now()))
	}
	c, memory := withMemory(w.client(p))
	memory.hour = 3
	for range 3 {
		require.Equal(t, "404", get(t, c, "https://a.example/x"))
	}
	require.Equal(t, []string{"0s a.example/robots.txt", "1s a.example/x", "2s a.example/x", "1h0m0s a.example/x"}, w.requests())
	require.Equal(t, []string{"a.example 1h0m0s"}, waits)
	w.clock.Advance(2 * time.Hour)
	require.Equal(t, polite.ErrBudget.Error(), get(t, c, "https://a.example/x"))
	require.Empty(t, w.requests())
}

// testControl is a Control.
type testControl struct {
	stopping  context.Context
	stop      func()
	onProceed func() // called by each Proceed
}

func newControl() *testControl {
	h := &testControl{}
	h.stopping, h.stop = context.WithCancel(context.Background())
	return h
}

func (h *testControl) Stopping() context.Context { return h.stopping }

func (h *testControl) Proceed(context.Context) bool {
	if h.onProceed != nil {
		h.onProceed()
	}
	return h.stopping.Err() == nil
}

// A stop ends a pause at once. No request is sent after it, not even one that has
// its turn.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := web.New(web.Config{Offline: true})
		require.NoError(t, err)
		defer client.Close()
		control := newControl()
		p := policies()["docs"]
		p.Robots.For = func(*url.URL) *url.URL { return nil }
		c, memory := withMemory(&polite.Client{Web: client, Pacer: &polite.Pacer{}, Policy: p, Control: control})
		memory.next["a.example"] = time.Now().Add(5 * time.Minute)
		begun := time.Now()
		time.AfterFunc(time.Minute, control.stop)
		require.Equal(t, polite.ErrStopped.Error(), get(t, c, "https://a.example/x"))
		require.Equal(t, time.Minute, time.Since(begun))
		require.Zero(t, client.Stats().Requests)
	})
	w := newWorld(t, nil)
	control := newControl()
	p := policies()["docs"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	c := w.client(p)
	c.Control = control
	n := 0
	control.onProceed = func() { // called before the wait for the turn and after it
		if n++; n == 2 {
			control.stop()
		}
	}
	require.Equal(t, polite.ErrStopped.Error(), get(t, c, "https://a.example/x"))
	require.Empty(t, w.requests())
}

// A site gets one request at a time from all clients. A parallel request does not
// wait, and the next request keeps a gap after it.
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
	require.Equal(t, 5*200*time.Millisecond, w.clock.Now().Sub(begin))
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
	before := w.clock.Now()
	require.Equal(t, "200", get(t, c, "https://a.example/1"))
	require.Equal(t, 200*time.Millisecond, w.clock.Now().Sub(before))
}

// Gaps are drawn from the part of the range above the Crawl-delay.
func TestGap(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/robots.txt": list(respond(200, "User-agent: *\nCrawl-delay: 3\n"))})
	p := policies()["docs"]
	p.Gap = polite.Range{Min: 2 * sec, Max: 4 * sec}
	c := w.client(p)
	drawn := map[time.Duration]bool{}
	for range 20 {
		before := w.clock.Now()
		require.Equal(t, "404", get(t, c, "https://a.example/x"))
		gap := w.clock.Now().Sub(before)
		require.True(t, gap >= 3*sec && gap <= 4*sec, "%v", gap)
		drawn[gap] = true
	}
	require.Greater(t, len(drawn), 10)
	p.NoDelay = true
	before := w.clock.Now()
	require.Equal(t, "404", get(t, w.client(p), "https://a.example/x"))
	require.Equal(t, before, w.clock.Now())
}

// A pause begins with the answer that asks for it: another client that waits for its
// turn at the site waits for the pause too.
func TestPauseBeginsWithTheAnswer(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/x": list(respond(429, "", "Retry-After", "20"), respond(200, ""))})
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

// What one client learns of a site holds for all that share its Pacer: the longest
// gap, a Crawl-delay, and that it is longer than a run waits. Without a Pacer that
// they share, each would keep its own.
func TestClientsOfOneSite(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"www.a.example/robots.txt": list(respond(200, "User-agent: *\nCrawl-delay: 7\n"), respond(200, "User-agent: *\nCrawl-delay: 3600\n"))})
	p := policies()["catalog"] // 1 s
	unruled := p
	unruled.Robots.For = func(*url.URL) *url.URL { return nil }
	slow := unruled
	slow.Gap = polite.Range{Min: 4 * sec}
	first, second, reader := w.client(unruled), w.client(slow), w.client(p)
	second.Pacer, reader.Pacer = first.Pacer, first.Pacer
	for range 2 {
		require.Equal(t, "404", get(t, first, "https://a.example/x"))
	}
	for _, c := range []*polite.Client{second, first, second} {
		require.Equal(t, "404", get(t, c, "https://www.a.example/y"))
	}
	require.Equal(t, []string{"0s a.example/x", "1s a.example/x", "5s www.a.example/y", "9s www.a.example/y", "13s www.a.example/y"}, w.requests())
	w.clock.Advance(2 * sec) // the first one's gap is over, the second one's is not
	require.Equal(t, "404", get(t, first, "https://a.example/x"))
	require.Equal(t, "404", get(t, reader, "https://www.a.example/x"))
	require.Equal(t, "404", get(t, first, "https://a.example/x"))
	require.Equal(t, []string{"17s a.example/x", "21s www.a.example/robots.txt", "28s www.a.example/x", "35s a.example/x"}, w.requests())

	other := w.client(p)
	other.Pacer = first.Pacer
	long := "the robots.txt of a.example asks for 1h0m0s between two requests, which is more than this run waits"
	require.Equal(t, long, get(t, other, "https://www.a.example/x"))
	require.Equal(t, long, get(t, first, "https://a.example/x"))
	require.Equal(t, []string{"42s www.a.example/robots.txt"}, w.requests())
}
