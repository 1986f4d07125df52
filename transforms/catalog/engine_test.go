package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// memory is a journal without a database.
type memory struct {
	mu      sync.Mutex
	waiting []entry
	at      []time.Time
	buried  []entry
}

func (m *memory) add(at time.Time, tasks ...entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range tasks {
		m.waiting, m.at = append(m.waiting, e), append(m.at, at)
	}
}

func (m *memory) due(_ context.Context, now time.Time, n int) (tasks []entry, next time.Time, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := 0; i < len(m.waiting); {
		switch {
		case m.at[i].After(now):
			if next.IsZero() || m.at[i].Before(next) {
				next = m.at[i]
			}
			i++
		case len(tasks) == n:
			return tasks, time.Time{}, nil
		default:
			tasks = append(tasks, m.waiting[i])
			m.waiting, m.at = slices.Delete(m.waiting, i, i+1), slices.Delete(m.at, i, i+1)
		}
	}
	return tasks, next, nil
}

func (m *memory) retry(_ context.Context, e entry, at time.Time) error { m.add(at, e); return nil }

func (m *memory) end(_ context.Context, e entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buried = append(m.buried, e)
	return nil
}

// hand is a switch for tests.
type hand struct {
	stopping context.Context
	stop     func()

	mu     sync.Mutex
	paused chan struct{} // closed when the pause ends; nil: none
}

func newHand() *hand {
	h := &hand{}
	h.stopping, h.stop = context.WithCancel(context.Background())
	return h
}

func (h *hand) Stopping() context.Context { return h.stopping }

func (h *hand) Proceed(ctx context.Context) bool {
	h.mu.Lock()
	p := h.paused
	h.mu.Unlock()
	if p != nil {
		select {
		case <-p:
		case <-h.stopping.Done():
		case <-ctx.Done():
		}
	}
	return h.stopping.Err() == nil && ctx.Err() == nil
}

func (h *hand) pause() (resume func()) {
	p := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = p
	return func() { close(p) }
}

// counter counts what each stage did.
type counter struct {
	mu   sync.Mutex
	done map[Kind]int
}

func (c *counter) add(k Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = map[Kind]int{}
	}
	c.done[k]++
}

// empty is a plan whose stages do nothing but send on: a list page leads to
// fan products, and to the next page up to last.
func empty(sizes [5]int, fan, last int, m *memory, saw func(Task)) []*stage {
	one := func(t Task) ([]Task, error) { return []Task{t}, nil }
	work := []func(t Task) ([]Task, error){
		func(t Task) ([]Task, error) {
			return one(ParseListPageHtml{entry: t.stored()})
		},
		func(t Task) ([]Task, error) {
			p := t.(ParseListPageHtml)
			var out []Task
			for i := range fan {
				out = append(out, FetchProductDetailPage{entry{URL: fmt.Sprint(p.Page, "/", i)}})
			}
			if p.Page < last {
				next := fetchListPage{entry{Kind: KindFetchListPage, Page: p.Page + 1}}
				out = append(out, next)
				m.add(time.Time{}, next.entry)
			}
			return out, nil
		},
		func(t Task) ([]Task, error) {
			return one(ParseProductDetailHtml{entry: t.stored()})
		},
		func(t Task) ([]Task, error) { return one(SaveProduct{entry: t.stored()}) },
		func(Task) ([]Task, error) { return nil, nil },
	}
	kinds := []Kind{KindFetchListPage, KindParseListPageHtml, KindFetchProductDetailPage, KindParseProductDetailHtml, KindSaveProduct}
	var plan []*stage
	for i, kind := range kinds {
		plan = append(plan, &stage{name: string(kind), fails: string(kind), input: kind, size: sizes[i], work: func(_ context.Context, t Task) ([]Task, error) {
			saw(t)
			return work[i](t)
		}})
	}
	return plan
}

func testEngine(plan []*stage, length int, c polite.Control, m *memory) *engine {
	e := newEngine(plan, length, &sharedState{Control: c, Stats: &Stats{}}, m)
	e.deadLetter = func(context.Context, entry, string, *failure) error { return nil }
	e.backoff = func(tries int) time.Duration { return time.Duration(tries) * time.Second }
	return e
}

// Every pool at every size from 1 to 4, and queues of one task: pages fan out
// into full queues and lead back to the first stage, and nothing deadlocks.
func TestBackPressureNeverDeadlocks(t *testing.T) {
	const pages, fan = 6, 12
	for n := range 4 * 4 * 4 * 4 * 4 {
		sizes := [5]int{n%4 + 1, n/4%4 + 1, n/16%4 + 1, n/64%4 + 1, n/256%4 + 1}
		m, c := &memory{}, &counter{}
		m.add(time.Time{}, entry{Kind: KindFetchListPage, Page: 1})
		m.add(time.Time{}, entry{Kind: KindFetchListPage, Page: pages + 1}, entry{Kind: KindFetchListPage, Page: pages + 2})
		e := testEngine(empty(sizes, fan, pages, m, func(t Task) { c.add(t.Kind()) }), 1, newHand(), m)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		complete, err := e.run(ctx)
		cancel()
		require.NoError(t, err)
		require.True(t, complete, "pools of %v locked up after %v", sizes, c.done)
		const lists, products = pages + 2, (pages + 2) * fan
		require.Equal(t, map[Kind]int{KindFetchListPage: lists, KindParseListPageHtml: lists, KindFetchProductDetailPage: products,
			KindParseProductDetailHtml: products, KindSaveProduct: products}, c.done, "pools of %v", sizes)
		require.Zero(t, e.pending.Load())
	}
}

// A slow saver slows all stages before it: no queue grows past its length.
func TestBackPressureReachesTheFirstStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := &memory{}, &counter{}
		for page := range 100 {
			m.add(time.Time{}, entry{Kind: KindFetchListPage, Page: page + 100})
		}
		plan := empty([5]int{1, 1, 1, 1, 1}, 12, 0, m, func(t Task) { c.add(t.Kind()) })
		e := testEngine(plan, 2, newHand(), m)
		release := make(chan struct{})
		plan[4].work = func(context.Context, Task) ([]Task, error) { <-release; return nil, nil }
		end := make(chan bool)
		go func() { complete, _ := e.run(t.Context()); end <- complete }()
		synctest.Wait()
		for _, s := range plan {
			assert.Len(t, s.queue, 2, s.name)
		}
		// One saved, then for each queue two in it and one or two at the workers around it.
		c.mu.Lock()
		assert.Less(t, c.done[KindFetchProductDetailPage], 12)
		assert.Less(t, c.done[KindFetchListPage], 10)
		c.mu.Unlock()
		close(release)
		assert.True(t, <-end)
		assert.Equal(t, 1200, c.done[KindParseProductDetailHtml])
	})
}

// A saver waits for a full batch, but only while tasks are under way that could join it,
// and not after a stop.
func TestBatchIsGathered(t *testing.T) {
	run := func(t *testing.T, tasks int, stopAt time.Duration) (batches []string, complete bool) {
		synctest.Test(t, func(t *testing.T) {
			m, h, begin := &memory{}, newHand(), time.Now()
			for page := range tasks {
				m.add(time.Time{}, entry{Kind: KindFetchListPage, Page: page})
			}
			fetch := &stage{input: KindFetchListPage, work: func(context.Context, Task) ([]Task, error) {
				time.Sleep(10 * time.Millisecond)
				return []Task{SaveProduct{}}, nil
			}}
			save := &stage{input: KindSaveProduct, batch: 5, linger: 35 * time.Millisecond, work: func(context.Context, Task) ([]Task, error) { return nil, nil },
				commit: func(_ context.Context, results []result) error {
					batches = append(batches, fmt.Sprint(len(results), " at ", time.Since(begin).Milliseconds()))
					return nil
				}}
			if stopAt > 0 {
				time.AfterFunc(stopAt, h.stop)
			}
			var err error
			complete, err = testEngine([]*stage{fetch, save}, 1, h, m).run(t.Context())
			require.NoError(t, err)
		})
		return batches, complete
	}
	batches, complete := run(t, 9, 0)
	assert.Equal(t, []string{"4 at 45", "4 at 85", "1 at 90"}, batches, "a late one does not wait for what cannot come")
	assert.True(t, complete)
	batches, complete = run(t, 9, 62*time.Millisecond)
	assert.Equal(t, []string{"4 at 45", "2 at 62"}, batches, "what was read before the stop is saved at once")
	assert.False(t, complete)
}

// The retry queue: three tries with growing waits, then the dead letter.
func TestRetryThenDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		m.add(time.Time{}, entry{Kind: KindFetchProductDetailPage, URL: "flaky"}, entry{Kind: KindFetchProductDetailPage, URL: "gone"}, entry{Kind: KindFetchProductDetailPage, URL: "final"},
			entry{Kind: KindFetchProductDetailPage, URL: "panics"}, entry{Kind: KindFetchProductDetailPage, URL: "well"})
		var tried []string
		begin := time.Now()
		s := &stage{name: "ProductDetailFetcher", fails: "failed_product_detail_fetcher", input: KindFetchProductDetailPage, work: func(_ context.Context, task Task) ([]Task, error) {
			f := task.(FetchProductDetailPage)
			tried = append(tried, fmt.Sprint(f.URL, " ", time.Since(begin).Seconds()))
			switch {
			case f.URL == "panics":
				panic("a bug")
			case f.URL == "final":
				return nil, &failure{kind: "http_404", final: true, err: errors.New("gone")}
			case f.URL == "gone", f.URL == "flaky" && f.Tries < 2:
				return nil, errors.New("no luck")
			}
			return nil, nil
		}}
		e := testEngine([]*stage{s}, 1, newHand(), m)
		e.state.Stats.fail("failed_list_page_parser")
		type deadLetter struct {
			entry entry
			kind  string
			final bool
		}
		var deadLetters []deadLetter
		e.deadLetter = func(_ context.Context, en entry, stage string, f *failure) error {
			assert.Equal(t, "ProductDetailFetcher", stage)
			deadLetters = append(deadLetters, deadLetter{en, f.kind, f.final})
			var p *lane.PanicError
			assert.Equal(t, en.URL == "panics", errors.As(f, &p))
			return nil
		}
		complete, err := e.run(t.Context())
		require.NoError(t, err)
		require.True(t, complete)
		assert.Equal(t, []string{"flaky 0", "gone 0", "final 0", "panics 0", "well 0", "flaky 1", "gone 1", "flaky 3", "gone 3"}, tried)
		product := func(url string, tries int) entry {
			return entry{Kind: KindFetchProductDetailPage, URL: url, Tries: tries}
		}
		assert.Equal(t, []deadLetter{{product("final", 1), "http_404", true}, {product("panics", 1), "panic", true}, {product("gone", 3), "failed", false}}, deadLetters)
		assert.Equal(t, []entry{product("final", 1), product("panics", 1), product("gone", 3)}, m.buried)
		assert.Equal(t, crawlingStats{FailedTasks: 4, Counts: map[string]int64{"failed_tasks": 4, "failed_product_detail_fetcher": 3, "failed_list_page_parser": 1}}, e.state.Stats.snapshot())
	})
}

func TestStopBeginsNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := &memory{}, newHand()
		for page := range 1000 {
			m.add(time.Time{}, entry{Kind: KindFetchListPage, Page: page})
		}
		var begun atomic.Int64
		plan := empty([5]int{2, 1, 3, 1, 1}, 12, 0, m, func(Task) { begun.Add(1) })
		for _, s := range plan {
			work := s.work
			s.work = func(ctx context.Context, t Task) ([]Task, error) { time.Sleep(time.Second); return work(ctx, t) }
		}
		e := testEngine(plan, 4, h, m)
		var atStop int64
		time.AfterFunc(20500*time.Millisecond, func() { atStop = begun.Load(); h.stop() })
		begin := time.Now()
		complete, err := e.run(t.Context())
		assert.NoError(t, err)
		assert.False(t, complete)
		assert.Equal(t, 21*time.Second, time.Since(begin), "what was begun ends, nothing else")
		assert.LessOrEqual(t, begun.Load(), atStop+8, "what the 8 workers have begun counts itself after its second")
	})
}

func TestPauseBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := &memory{}, newHand()
		for page := range 50 {
			m.add(time.Time{}, entry{Kind: KindFetchListPage, Page: page})
		}
		var begun []time.Duration
		var mu sync.Mutex
		begin := time.Now()
		plan := empty([5]int{2, 1, 2, 1, 1}, 2, 0, m, func(Task) {
			mu.Lock()
			begun = append(begun, time.Since(begin))
			mu.Unlock()
		})
		for _, s := range plan {
			work := s.work
			s.work = func(ctx context.Context, t Task) ([]Task, error) {
				r, err := work(ctx, t)
				time.Sleep(time.Second)
				return r, err
			}
		}
		time.AfterFunc(5500*time.Millisecond, func() { time.AfterFunc(10*time.Second, h.pause()) })
		complete, err := testEngine(plan, 1, h, m).run(t.Context())
		require.NoError(t, err)
		require.True(t, complete)
		assert.Len(t, begun, 50+50+100+100+100)
		for _, at := range begun {
			assert.True(t, at <= 5500*time.Millisecond || at >= 15500*time.Millisecond, "a task began at %v, in the pause", at)
		}
	})
}

// FetchImage is the task of a stage that is added as a user would: in one file,
// and in the plan.
type FetchImage struct{ entry }

func (FetchImage) Kind() Kind { return "FetchImage" }

// withImages lets the stage that reads a product lead to its image too.
func withImages(s *stage) *stage {
	work := s.work
	s.work = func(ctx context.Context, t Task) ([]Task, error) {
		found, err := work(ctx, t)
		for _, f := range found {
			if p, ok := f.(SaveProduct); ok {
				found = append(found, FetchImage{entry{Kind: "FetchImage", URL: p.URL + ".jpg"}})
			}
		}
		return found, err
	}
	return s
}

func imageFetcher(got *[]string) *stage {
	return &stage{name: "ImageFetcher", fails: "failed_image_fetcher", input: "FetchImage", size: 1,
		work: func(_ context.Context, t Task) ([]Task, error) {
			*got = append(*got, t.(FetchImage).URL)
			return nil, nil
		}}
}

func TestAddingAStage(t *testing.T) {
	m := &memory{}
	m.add(time.Time{}, entry{Kind: KindFetchListPage, Page: 1})
	var images []string
	plan := empty([5]int{1, 1, 1, 1, 1}, 3, 0, m, func(Task) {})
	plan = append(plan[:3], withImages(plan[3]), plan[4], imageFetcher(&images))
	complete, err := testEngine(plan, 1, newHand(), m).run(t.Context())
	require.NoError(t, err)
	require.True(t, complete)
	assert.Equal(t, []string{"1/0.jpg", "1/1.jpg", "1/2.jpg"}, images)
}

// Without its journal a crawl cannot continue.
func TestJournalFailureEndsTheCrawl(t *testing.T) {
	m := &memory{}
	m.add(time.Time{}, entry{Kind: KindFetchListPage, Page: 1})
	plan := empty([5]int{1, 1, 1, 1, 1}, 3, 0, m, func(Task) {})
	full := errors.New("disk full")
	plan[4].commit = func(context.Context, []result) error { return full }
	complete, err := testEngine(plan, 1, newHand(), m).run(t.Context())
	assert.False(t, complete)
	assert.ErrorIs(t, err, full)
}
