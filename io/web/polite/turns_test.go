package polite_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/polite/turns"
)

// sharing returns clients of two processes of one machine, by the same policy.
func (w *world) sharing(p polite.Policy) (one, two *polite.Client) {
	w.t.Helper()
	if runtime.GOOS != "linux" {
		w.t.Skip(turns.ErrNotHere)
	}
	f, err := turns.Open(filepath.Join(w.t.TempDir(), "turns"))
	require.NoError(w.t, err)
	one, two = w.client(p), w.client(p)
	for _, c := range []*polite.Client{one, two} {
		c.Pacer.Turns, c.Pacer.Web = f, w.sim.Addr()
	}
	return one, two
}

// apart returns clients of two processes as sharing does. The file tells these two apart.
func (w *world) apart(p polite.Policy) (one, two *polite.Client) {
	w.t.Helper()
	one, two = w.sharing(p)
	dir := w.t.TempDir()
	require.NoError(w.t, os.Symlink(dir, filepath.Join(dir, "other")))
	w.turns = filepath.Join(dir, "turns")
	var err error
	one.Pacer.Turns, err = turns.Open(w.turns)
	require.NoError(w.t, err)
	two.Pacer.Turns, err = turns.Open(filepath.Join(dir, "other", "turns")) // as another process has it
	require.NoError(w.t, err)
	return one, two
}

// What a site sees of two jobs that ask it at once: one request at a time, the gap between
// them is the longer one of both jobs, and each obeys the pauses that the other is told.
func TestTwoJobsAtASite(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{
		"a.example/robots.txt": list(respond(200, "User-agent: *\nCrawl-delay: 4\n")),
		"www.a.example/1":      list(respond(200, "")),
		"a.example/1":          list(respond(200, "")),
		"a.example/2":          list(respond(200, "")),
		"a.example/busy":       list(respond(503, "", "Retry-After", "20")),
		"b.example/1":          list(respond(200, "")),
	})
	plain := policies()["seed"]
	plain.Retry = nil
	one, two := w.sharing(plain)
	slow := plain
	slow.Gap = polite.Range{Min: 3 * sec}
	two.Policy = slow

	require.Equal(t, "200", get(t, one, "https://b.example/1"))
	require.Equal(t, "200", get(t, two, "https://b.example/1"))
	require.Equal(t, "200", get(t, one, "https://b.example/1"))
	require.Equal(t, []string{"0s b.example/robots.txt", "200ms b.example/1", "3.2s b.example/robots.txt", "6.2s b.example/1", "9.2s b.example/1"}, w.requests())

	// The second job knows neither the Crawl-delay nor the Retry-After from an answer of its own.
	two.Policy.Robots.For = func(*url.URL) *url.URL { return nil }
	require.Equal(t, "200", get(t, one, "https://a.example/1"))
	require.Equal(t, "200", get(t, two, "https://www.a.example/1"))
	require.Equal(t, "503", get(t, one, "https://a.example/busy"))
	require.Equal(t, "200", get(t, two, "https://a.example/2"))
	require.Equal(t, []string{"9.2s a.example/robots.txt", "13.2s a.example/1", "17.2s www.a.example/1", "21.2s a.example/busy", "41.2s a.example/2"}, w.requests())
}

// A pause for which a job would not wait is no reason to abandon the site unasked, nor to
// wait longer than for any.
func TestLongPauseOfAnotherJob(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{
		"a.example/":           list(respond(503, "", "Retry-After", "3600"), respond(200, "")),
		"b.example/robots.txt": list(respond(200, "User-agent: *\nCrawl-delay: 300\n")),
		"b.example/":           list(respond(200, "")),
	})
	p := policies()["seed"]
	p.Retry = nil
	one, two := w.sharing(p)
	one.Policy.MaxRetryAfter, one.Policy.MaxCrawlDelay = time.Hour, time.Hour
	two.Policy.Robots.For = func(*url.URL) *url.URL { return nil }
	require.Equal(t, "503", get(t, one, "https://a.example/"))
	require.Equal(t, "200", get(t, two, "https://a.example/"))
	require.NoError(t, one.Allowed(t.Context(), &url.URL{Scheme: "https", Host: "b.example", Path: "/"}))
	require.Equal(t, "200", get(t, two, "https://b.example/"))
	require.Equal(t, []string{"0s a.example/robots.txt", "200ms a.example/", "400ms a.example/", "400ms b.example/robots.txt", "30.4s b.example/"}, w.requests())
}

// A job waits while the site answers another one.
func TestAnswerOfAnotherJob(t *testing.T) {
	w := newWorld(t, nil)
	p := policies()["seed"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	one, two := w.sharing(p)
	var second sync.WaitGroup
	var done atomic.Bool
	w.answers = map[string][]http.HandlerFunc{
		"a.example/1": list(func(http.ResponseWriter, *http.Request) {
			asks := w.clock.Now()
			second.Go(func() {
				defer done.Store(true)
				if resp, err := two.Get(t.Context(), polite.Request{URL: "https://a.example/2"}); err != nil || resp.Status != 200 {
					t.Errorf("%+v, %v", resp, err)
				}
			})
			for !done.Load() && w.clock.Now().Sub(asks) < sec { // it looks again and again
				runtime.Gosched()
			}
			w.answered("a.example/1")
		}),
		"a.example/2": list(respond(200, "")),
	}
	require.Equal(t, "200", get(t, one, "https://a.example/1"))
	second.Wait()
	log := w.requests()
	require.Len(t, log, 3)
	require.Equal(t, "0s a.example/1", log[0])
	require.Regexp(t, "answered: a.example/1$", log[1])
	require.Regexp(t, "a.example/2$", log[2])
}

// A job that only learned a Crawl-delay, or that will try again, keeps the others away too.
func TestPausesOfAnotherJob(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{
		"a.example/robots.txt": list(respond(200, "User-agent: *\nCrawl-delay: 4\n")),
		"a.example/1":          list(respond(200, "")),
		"b.example/1":          list(respond(200, "")),
		"b.example/busy":       list(respond(503, ""), respond(200, "")),
	})
	p := policies()["docs"]
	one, two := w.sharing(p)
	two.Policy.Robots.For = func(*url.URL) *url.URL { return nil }
	require.NoError(t, one.Allowed(t.Context(), &url.URL{Scheme: "https", Host: "a.example", Path: "/1"}))
	require.Equal(t, "200", get(t, two, "https://a.example/1"))
	require.Equal(t, []string{"0s a.example/robots.txt", "4s a.example/1"}, w.requests())

	one.Policy.Robots.For = two.Policy.Robots.For
	sleep := one.Pacer.Clock.Sleep
	one.Pacer.Clock.Sleep = func(ctx context.Context, d time.Duration) error {
		one.Pacer.Clock.Sleep = sleep
		require.Equal(t, "200", get(t, two, "https://b.example/1"))
		return sleep(ctx, d)
	}
	require.Equal(t, "200", get(t, one, "https://b.example/busy"))
	log := w.requests()
	require.Equal(t, []string{"4s b.example/busy", "34s b.example/1"}, log[:2])
	require.Len(t, log, 3)
}

// A job with a longer pause than another one has its turn when its pause is over, however
// often the other one asks.
func TestLongerPauseThanAnotherJob(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/1": list(respond(200, "")), "a.example/2": list(respond(200, "")), "a.example/3": list(respond(200, ""))})
	p := policies()["seed"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	quick, slow := w.apart(p)
	slow.Policy.Gap = polite.Range{Min: 3 * sec}
	require.Equal(t, "200", get(t, quick, "https://a.example/1"))
	var asks sync.WaitGroup
	looked := make(chan struct{}, 1000)
	sleep := quick.Pacer.Clock.Sleep
	quick.Pacer.Clock.Sleep = func(ctx context.Context, d time.Duration) error {
		select {
		case looked <- struct{}{}:
		default:
		}
		runtime.Gosched()
		return sleep(ctx, d)
	}
	slow.Pacer.Clock.Sleep = func(ctx context.Context, d time.Duration) error {
		slow.Pacer.Clock.Sleep = sleep
		asks.Go(func() {
			require.Equal(t, "200", get(t, quick, "https://a.example/3"))
			close(looked)
		})
		for range 3 {
			<-looked
		}
		return sleep(ctx, d)
	}
	require.Equal(t, "200", get(t, slow, "https://a.example/2"))
	asks.Wait()
	log := w.requests()
	require.Len(t, log, 3)
	require.Equal(t, "0s a.example/1", log[0])
	require.Contains(t, log[1], "a.example/2")
}

// A turn that was lost before the request was sent is taken again, and the gap after the
// other job's request kept: whether it was lost in a pause of the run or, by a process that
// was stopped, when the connection was open.
func TestLostTurn(t *testing.T) {
	for name, hook := range map[string]func(c *polite.Client, loses func()){
		"run paused": func(c *polite.Client, loses func()) {
			asked, control := 0, newControl()
			control.onProceed = func() {
				if asked++; asked == 2 { // before its turn, before it is sent
					loses()
				}
			}
			c.Control = control
		},
		"process stopped": func(c *polite.Client, loses func()) {
			c.Control = newControl()
			asked := 0
			c.Web.Allow = func(_ context.Context, wait bool) error {
				if asked++; asked == 3 { // before its turn, after it, with the open connection
					require.False(t, wait)
					loses()
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string][]http.HandlerFunc{"a.example/1": list(respond(200, "")), "a.example/2": list(respond(200, ""))})
			p := policies()["seed"]
			p.Robots.For = func(*url.URL) *url.URL { return nil }
			one, two := w.apart(p)
			hook(one, func() {
				w.forget()
				require.Equal(t, "200", get(t, two, "https://a.example/2"))
			})
			require.Equal(t, "200", get(t, one, "https://a.example/1"))
			require.Equal(t, []string{"0s a.example/2", "200ms a.example/1"}, w.requests())
			require.EqualValues(t, 1, one.Web.Stats().Requests)
		})
	}
}

// Who waits for a lost turn has none of the requests in flight: the process that has the
// server's turn now may need it.
func TestLostTurnAtAServer(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/1": list(respond(200, "")), "b.example/2": list(respond(200, ""))})
	p := policies()["seed"]
	p.Robots.For = func(*url.URL) *url.URL { return nil }
	one, _ := w.apart(p)
	one.Web.SetLimits(1, 0)
	one.Pacer.Servers.Delay = sec
	two := &polite.Client{Web: one.Web, Pacer: one.Pacer, Policy: p, Control: newControl()}
	var second sync.WaitGroup
	waits := make(chan struct{})
	two.Control.(*testControl).onProceed = sync.OnceFunc(func() { close(waits) })
	asked, paused := 0, newControl()
	one.Control = paused
	paused.onProceed = func() {
		if asked++; asked != 3 { // before its turn, with the server's, before it is sent
			return
		}
		second.Go(func() { require.Equal(t, "200", get(t, two, "https://b.example/2")) })
		<-waits
		for range 1000 {
			runtime.Gosched() // until it waits for the server
		}
		w.forget()
	}
	require.Equal(t, "200", get(t, one, "https://a.example/1"))
	second.Wait()
	require.Len(t, w.requests(), 2)
}

// forget makes the file of turns forget its sites, as if all turns had been taken and given
// back by others. The processes that have it stand before them.
func (w *world) forget() {
	w.t.Helper()
	const owners = 1024 * 16
	files, err := filepath.Glob(w.turns + "-v*")
	require.NoError(w.t, err)
	require.Len(w.t, files, 1)
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	require.NoError(w.t, err)
	is, err := f.Stat()
	require.NoError(w.t, err)
	_, err = f.WriteAt(make([]byte, is.Size()-owners), owners)
	require.NoError(w.t, err)
	require.NoError(w.t, f.Close())
}
