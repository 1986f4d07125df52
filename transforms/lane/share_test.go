package lane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

func TestShare(t *testing.T) {
	type lanes = map[string]int
	for name, c := range map[string]struct {
		whole limits
		slots int
		used  int
		lanes lanes // the process is a
		want  limits
	}{
		"nothing known":                       {limits{64, 10}, 4, 0, nil, limits{1, 2.5}},
		"nothing known, one slot":             {limits{64, 10}, 1, 0, nil, limits{1, 10}},
		"nothing known, no slots":             {limits{64, 10}, 0, 0, nil, limits{1, 10}},
		"not seen yet, fewer lanes than slot": {limits{64, 10}, 8, 0, lanes{"a": 1, "b": 3}, limits{1, 1.25}},
		"not seen yet, more lanes than slots": {limits{64, 10}, 2, 0, lanes{"a": 1, "b": 4}, limits{1, 2}},
		"alone":                               {limits{64, 10}, 16, 1, lanes{"a": 1}, limits{64, 10}},
		"alone with many lanes":               {limits{64, 10}, 4, 9, lanes{"a": 9}, limits{64, 10}},
		"no limit of the rate":                {limits{64, 0}, 4, 1, lanes{"a": 1, "b": 1}, limits{32, 0}},
		"no limit of the rate, the floor":     {limits{64, 0}, 4, 0, nil, limits{1, 0}},
		"by lanes":                            {limits{12, 30}, 4, 1, lanes{"a": 1, "b": 2}, limits{4, 10}},
		"by lanes, the other":                 {limits{12, 30}, 4, 2, lanes{"a": 2, "b": 1}, limits{8, 20}},
		"a part of its lanes is known":        {limits{12, 30}, 4, 1, lanes{"a": 3, "b": 1}, limits{6, 15}},
		"what is left, by name":               {limits{8, 9}, 4, 1, lanes{"a": 1, "b": 1, "c": 1}, limits{3, 3}},
		"what is left, not by name":           {limits{8, 9}, 4, 1, lanes{"a": 1, "0": 1, "1": 1}, limits{2, 3}},
		"one each, whatever the lanes":        {limits{4, 8}, 4, 1, lanes{"a": 1, "b": 10, "c": 1, "d": 4}, limits{1, .5}},
		"more processes than requests":        {limits{2, 8}, 4, 1, lanes{"a": 1, "b": 1, "c": 1, "d": 1}, limits{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, share(c.whole, c.slots, "a", c.used, c.lanes))
		})
	}
}

// While processes know different things of each other, each counts at least the lanes
// that the others use. Then their parts are not more than the whole; and they are the
// whole when all know the same.
func TestShareIsNeverMoreThanTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		n := 1 + r.IntN(9)
		whole := limits{n + r.IntN(40), 100}
		name := func(i int) string { return string(rune('a' + i)) }
		used := make(map[string]int, n)
		for i := range n {
			used[name(i)] = 1 + r.IntN(5)
		}
		var same, mixed limits
		for i := range n {
			known := map[string]int{}
			for j := range n {
				known[name(j)] = used[name(j)] + max(0, r.IntN(8)-4)
			}
			for j := n; j < 12 && r.IntN(3) == 0; j++ { // it left, and this process has not heard of it
				known[name(j)] = 1 + r.IntN(4)
			}
			a, b := share(whole, n, name(i), used[name(i)], used), share(whole, n, name(i), used[name(i)], known)
			same, mixed = limits{same.inFlight + a.inFlight, same.rate + a.rate}, limits{mixed.inFlight + b.inFlight, mixed.rate + b.rate}
		}
		require.Equal(t, whole.inFlight, same.inFlight, "%v", used)
		require.InDelta(t, whole.rate, same.rate, 1e-6)
		require.LessOrEqual(t, mixed.inFlight, whole.inFlight, "%v", used)
		require.LessOrEqual(t, mixed.rate, whole.rate+1e-6)
	}
}

// processStore is the store as one process sees it: its clock is ahead of the
// process's, gives seconds only, and the connection to it can be cut.
type processStore struct {
	store.Store
	ahead time.Duration
	cut   atomic.Bool
}

var errCut = errors.New("the store is out of reach")

func (s *processStore) reach() error {
	if s.cut.Load() {
		return errCut
	}
	return nil
}

func (s *processStore) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for o, err := range s.Store.List(ctx, prefix) {
			if s.cut.Load() {
				o, err = store.Object{}, errCut
			}
			o.ModTime = o.ModTime.Add(s.ahead).Truncate(s.ahead / 100)
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func (s *processStore) Put(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if err := s.reach(); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, body, o)
}

func (s *processStore) PutIfAbsent(ctx context.Context, key string, body io.Reader, o store.PutOptions) error {
	if err := s.reach(); err != nil {
		return err
	}
	return s.Store.PutIfAbsent(ctx, key, body, o)
}

func (s *processStore) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := s.reach(); err != nil {
		return nil, err
	}
	return s.Store.Open(ctx, key)
}

func (s *processStore) Delete(ctx context.Context, key string) error {
	if err := s.reach(); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

// process is a worker process of a run that has several.
type process struct {
	*Worker
	t     *testing.T
	store *processStore
	lane  int
	end   []chan struct{} // of its lanes
	all   sync.WaitGroup
}

func newProcess(t *testing.T, s store.Store, name string, cfg web.Config, every time.Duration) *process {
	t.Helper()
	p := &process{t: t, store: &processStore{Store: s, ahead: 100 * every / 10}, lane: 100 * int(name[0]-'a')}
	p.Worker = leasing(t, p.store, "r1")
	client, err := web.New(cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	p.Web, p.cfg.Web, p.cfg.Slots = client, cfg, 4
	client.Allow = p.allowed
	p.shareLimits(name, every)
	return p
}

// begin begins a lane, which works until finish.
func (p *process) begin(work func(ctx context.Context)) {
	end := make(chan struct{})
	p.end = append(p.end, end)
	p.lane++
	n := p.lane
	ctx, _ := bundle(p.t)
	p.all.Go(func() {
		_ = p.RunLane(ctx, n, 1000, 1, func(ledger.Tally) {}, func(ctx context.Context, _ *Lane) error { // a killed process cannot write its progress
			ctx, cancel := p.Context(ctx)
			defer cancel()
			work(ctx)
			select {
			case <-end:
			case <-ctx.Done():
			}
			return nil
		})
	})
}

func (p *process) finish() {
	close(p.end[0])
	p.end = p.end[1:]
}

// kill ends the process without a word to anybody.
func (p *process) kill() {
	p.store.cut.Store(true)
	p.cancel()
}

// sites are what requests are for. They log when each one began and ended.
type sites struct {
	origin time.Time
	took   time.Duration

	sync.Mutex
	began, ended []time.Duration
}

// crawl returns a lane's work: requests, as many at once as the process may send. A
// request passes the client's limits and is answered where it would be sent, so no
// socket holds up the clock of the bubble.
func (s *sites) crawl(p *process) func(context.Context) {
	return func(ctx context.Context) {
		for range 15 {
			p.all.Go(func() {
				for ctx.Err() == nil {
					within, cancel := context.WithCancel(ctx)
					_, _ = p.Web.Try(within, web.Request{URL: "http://h.example/", Ready: func() bool { // it ends by cancel, here
						began := time.Since(s.origin)
						_ = pause(ctx, s.took)
						s.Lock()
						s.began, s.ended = append(s.began, began), append(s.ended, time.Since(s.origin))
						s.Unlock()
						cancel()
						return true
					}})
					cancel()
				}
			})
		}
	}
}

// inFlight counts the requests that a site was answering at a time.
func (s *sites) inFlight(at time.Duration) (n int) {
	for i, began := range s.began {
		if began <= at && at < s.ended[i] {
			n++
		}
	}
	return n
}

// inSecond counts the requests that began within the second from at on.
func (s *sites) inSecond(at time.Duration) (n int) {
	for _, began := range s.began {
		if at <= began && began < at+time.Second {
			n++
		}
	}
	return n
}

// Processes come, have more lanes and fewer, are killed, lose the store and find it
// again. The sites never see more than the whole, but for the floor of those that have
// just come, for a heartbeat at most. The last lane has all.
func TestLimitsFollowTheLanes(t *testing.T) {
	for name, c := range map[string]struct {
		whole limits
		took  time.Duration
		floor float64
		four  []float64 // parts of lanes 1, 2, 1 and 1
		count func(*sites, time.Duration) int
		burst int // requests that may come at once, of four processes
	}{
		"in flight": {limits{12, 0}, time.Second, 1, []float64{3, 5, 2, 2}, (*sites).inFlight, 0},
		"a second":  {limits{100, 12}, 100 * time.Millisecond, 3, []float64{2.4, 4.8, 2.4, 2.4}, (*sites).inSecond, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, web, cfg := memory(t), &sites{origin: time.Now(), took: c.took}, web.Config{Concurrency: c.whole.inFlight, Rate: c.whole.rate}
				var all []*process
				for _, name := range []string{"a", "b", "c", "d"} {
					all = append(all, newProcess(t, s, name, cfg, heartbeat))
				}
				a, b, killed, d := all[0], all[1], all[2], all[3]
				until := func(seconds float64) {
					time.Sleep(time.Duration(seconds*float64(time.Second)) - time.Since(web.origin))
				}
				parts := func(want ...float64) { // of all processes
					t.Helper()
					synctest.Wait()
					var got []float64
					for _, p := range all {
						p.mu.Lock()
						if c.whole.rate > 0 {
							got = append(got, p.shares.now.rate)
						} else {
							got = append(got, float64(p.shares.now.inFlight))
						}
						p.mu.Unlock()
					}
					require.InDeltaSlice(t, want, got, 1e-6, "after %v: %v", time.Since(web.origin), got)
				}
				floor, four := c.floor, c.four
				parts(floor, floor, floor, floor)
				a.begin(web.crawl(a))
				parts(12, floor, floor, floor) // alone it has all at once
				until(33)
				b.begin(web.crawl(b))
				b.begin(web.crawl(b))
				parts(12, floor, floor, floor)
				until(45)
				parts(4, 8, floor, floor)
				until(63.5)
				killed.begin(web.crawl(killed))
				d.begin(web.crawl(d))
				until(77)
				parts(four...)
				until(95)
				killed.kill()
				until(120) // its part stays free until the others take it for dead
				parts(four...)
				until(136)
				killed.shares.now = limits{} // of a process that is no more
				parts(3, 6, 0, 3)
				b.store.cut.Store(true)
				until(158) // after two heartbeats b uses the floor; the others take its part after three
				parts(3, floor, 0, 3)
				until(180)
				parts(6, floor, 0, 6)
				b.store.cut.Store(false)
				until(200)
				parts(3, 6, 0, 3)
				b.finish()
				a.finish()
				until(235)
				parts(floor, 6, 0, 6)
				b.finish()
				until(265)
				parts(floor, floor, 0, 12)
				until(280)
				d.finish()
				until(310)
				left, err := ledger.ListAlive(t.Context(), s, "r1")
				require.NoError(t, err)
				require.Len(t, left, 1, "only the killed process left its object")
				for _, p := range all {
					p.all.Wait()
					p.cancel()
					p.shares.beats.Wait()
				}

				const step = 100 * time.Millisecond
				limit := 12 + c.burst + 2*int(floor) // two came at once
				var over, longest, above, longestAbove time.Duration
				most := 0
				for at := time.Duration(0); at < 280*time.Second; at += step {
					n := c.count(web, at)
					most = max(most, n)
					if over += step; n <= 12+c.burst {
						over = 0
					}
					longest = max(longest, over)
					if above += step; n <= limit {
						above = 0
					}
					longestAbove = max(longestAbove, above)
					if at > 265*time.Second && at < 279*time.Second {
						require.InDelta(t, 12, n, float64(c.burst)/4, "requests of the last lane, after %v", at)
					}
				}
				t.Logf("most %d, longest over the whole %v", most, longest)
				require.LessOrEqual(t, longest, heartbeat)
				require.LessOrEqual(t, longestAbove, c.took, "a request that began under the limit before may still run; %d at most", most)
			})
		})
	}
}

// The simulated web counts what three workers send it, as they come, are killed and
// end. In one process a worker has all, whatever its lanes.
func TestLimitsShare(t *testing.T) {
	t.Parallel()
	sim := webtest.New(webtest.Options{Latency: 50 * time.Millisecond})
	require.NoError(t, sim.Start())
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	s, cfg := memory(t), web.Config{Concurrency: 8, ConnectTo: sim.Addr(), RootCAs: sim.CAPEM()}
	idle := func(ctx context.Context) { <-ctx.Done() }
	// sends lets the processes send all they may, and compares what arrives with the whole.
	sends := func(of ...*process) {
		t.Helper()
		sim.ResetLog()
		var all sync.WaitGroup
		for _, p := range of {
			for n := range 24 {
				all.Go(func() {
					_, err := p.Web.Get(t.Context(), web.Request{URL: fmt.Sprintf("http://kind-urlset-%d.com/", n)})
					assert.NoError(t, err)
				})
			}
		}
		all.Wait()
		require.Equal(t, 8, sim.MaxInFlight())
	}
	// await waits until the processes use these parts of the requests in flight.
	await := func(of []*process, want ...int) {
		t.Helper()
		var got []int
		require.Eventually(t, func() bool {
			got = got[:0]
			for _, p := range of {
				p.mu.Lock()
				got = append(got, p.shares.now.inFlight)
				p.mu.Unlock()
			}
			return slices.Equal(want, got)
		}, time.Minute, 5*time.Millisecond, "want %v", want)
	}
	const every = 500 * time.Millisecond
	a, b, c := newProcess(t, s, "a", cfg, every), newProcess(t, s, "b", cfg, every), newProcess(t, s, "c", cfg, every)
	a.begin(idle)
	await([]*process{a, b, c}, 8, 1, 1)
	sends(a)
	b.begin(idle)
	c.begin(idle)
	c.begin(idle)
	await([]*process{a, b, c}, 2, 2, 4)
	sends(a, b, c)
	b.kill()
	await([]*process{a, c}, 3, 5)
	sends(a, c)
	c.kill()
	await([]*process{a}, 8)
	sends(a)
	a.cancel()
	for _, p := range []*process{a, b, c} {
		p.all.Wait()
		p.shares.beats.Wait()
	}

	client, err := web.New(cfg)
	require.NoError(t, err)
	defer client.Close()
	alone := &process{Worker: &Worker{Web: client, cfg: Config{Slots: 4, Web: cfg}}}
	for _, by := range []int{0, 1, 3, -3} {
		alone.lanes(by)
		sends(alone)
	}
}

// A lane has its part of the visits that the whole job may have at the same time.
func TestVisitsAtOnce(t *testing.T) {
	for _, c := range []struct {
		process  string
		inFlight int
		active   int
		want     int
	}{
		{"", 0, 1, 40}, // one process has all
		{"", 0, 2, 20}, // its lanes share them
		{"a", 10, 1, 40},
		{"a", 5, 1, 20},
		{"a", 5, 2, 10},
		{"a", 1, 3, 2},
		{"a", 1, 100, 1},
		{"a", 10, 0, 40},
	} {
		w := &Worker{cfg: Config{Web: web.Config{Concurrency: 10}}, active: c.active}
		w.shares.process, w.shares.now.inFlight = c.process, c.inFlight
		require.Equal(t, c.want, w.visitsAtOnce(40), "%+v", c)
	}
}
