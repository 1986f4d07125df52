package lane

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
)

// server is what one server sees of the processes of a run.
type server struct {
	name  string
	pause time.Duration

	mu      sync.Mutex
	at      int
	most    int
	ended   time.Time
	closest time.Duration // between two requests
	asked   map[*Worker]int
}

// ask sends it a request as the pacer does: it keeps the pause between its own.
func (s *server) ask(t *testing.T, ctx context.Context, w *Worker, next *time.Time) {
	free, unknown, err := w.holdServer(ctx, s.name)
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
		return
	}
	if unknown {
		*next = time.Now().Add(s.pause)
	}
	time.Sleep(time.Until(*next))
	s.mu.Lock()
	s.at++
	s.most = max(s.most, s.at)
	if !s.ended.IsZero() {
		s.closest = min(s.closest, time.Since(s.ended))
	}
	s.asked[w]++
	s.mu.Unlock()
	time.Sleep(rand.N(2 * time.Second))
	s.mu.Lock()
	s.at--
	s.ended = time.Now()
	s.mu.Unlock()
	*next = time.Now().Add(s.pause)
	free(s.pause)
}

// Of several processes one at a time sends a server requests, and the pause holds from the
// last request of one to the first one of another. No process waits for ever, and a killed
// one only for its time to live. What they wrote is gone when they end.
func TestServersOverProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := memory(t)
		busy := &server{name: "server 192.0.2.1", pause: time.Second, closest: time.Hour, asked: map[*Worker]int{}}
		quiet := &server{name: "server 2001:db8::/64", pause: time.Second, closest: time.Hour, asked: map[*Worker]int{}}
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var cut []*processStore
		var processes []*Worker
		for range 3 {
			s := &processStore{Store: kept, ahead: time.Hour}
			w := leasing(t, s, "r1")
			cut, processes = append(cut, s), append(processes, w)
			all.Go(func() {
				var next time.Time
				for ctx.Err() == nil && w.ctx.Err() == nil {
					busy.ask(t, ctx, w, &next)
				}
			})
			all.Go(func() {
				var next time.Time
				for ctx.Err() == nil && w.ctx.Err() == nil {
					_ = pause(ctx, rand.N(20*time.Second))
					quiet.ask(t, ctx, w, &next)
				}
			})
		}
		time.Sleep(5 * time.Minute)
		cut[0].cut.Store(true) // killed: nobody hears of it again
		processes[0].cancel()
		before := map[*Worker]int{}
		time.Sleep(time.Minute)
		busy.mu.Lock()
		for w, n := range busy.asked {
			before[w] = n
		}
		busy.mu.Unlock()
		time.Sleep(4 * time.Minute)
		end()
		all.Wait()
		for _, s := range []*server{busy, quiet} {
			require.Equal(t, 1, s.most, s.name)
			require.GreaterOrEqual(t, s.closest, s.pause, s.name)
			require.Len(t, s.asked, 3, s.name)
		}
		for _, w := range processes[1:] {
			require.Greater(t, busy.asked[w], before[w]+20, "%v", busy.asked)
		}
		for _, w := range processes[1:] {
			w.cancel()
			w.releaseServers()
		}
		time.Sleep(time.Minute)
		require.LessOrEqual(t, len(objects(t, kept, "lease/")), 2, "only those that the killed process had")
	})
}

// A visit's next requests cost no store call, and a server that nobody asks costs none.
func TestHeldServerCostsNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := leasing(t, memory(t), "r1")
		calls := func() (n int64) {
			for _, of := range w.calls.Snapshot() {
				n += of
			}
			return n
		}
		s := &server{name: "server 192.0.2.1", pause: time.Second, closest: time.Hour, asked: map[*Worker]int{}}
		var next time.Time
		s.ask(t, t.Context(), w, &next)
		began := calls()
		for range 3 {
			s.ask(t, t.Context(), w, &next)
		}
		require.Equal(t, began, calls())
		time.Sleep(time.Minute)
		synctest.Wait()
		ended := calls()
		require.Empty(t, w.servers.held)
		time.Sleep(time.Minute)
		require.Equal(t, ended, calls())
		require.Empty(t, objects(t, w.Store, "lease/"))
	})
}

// After a holder that did not let the server go nobody knows when it was asked last.
func TestServerOfAKilledProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := memory(t)
		killed := &processStore{Store: kept}
		w := leasing(t, killed, "r1")
		free, unknown, err := w.holdServer(t.Context(), "server 192.0.2.1")
		require.NoError(t, err)
		require.False(t, unknown)
		free(0)
		killed.cut.Store(true)
		w.cancel()
		began := time.Now()
		other := leasing(t, kept, "r1")
		free, unknown, err = other.holdServer(t.Context(), "server 192.0.2.1")
		require.NoError(t, err)
		require.True(t, unknown)
		require.LessOrEqual(t, time.Since(began), DefaultLeaseTTL+time.Second)
		free(0)
		time.Sleep(time.Minute)
		free, unknown, err = other.holdServer(t.Context(), "server 192.0.2.1")
		require.NoError(t, err)
		require.False(t, unknown)
		free(0)
		other.releaseServers()
	})
}

func objects(t *testing.T, s store.Store, prefix string) (keys []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), prefix) {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}
