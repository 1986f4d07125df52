package seed

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Wherever a run is killed, the next one keeps the pause that the killed one owed a
// host: by the host's own clock, which only pauses move. Hosts that ask for no pause
// cost no store call.
func TestPauseOutlivesAKill(t *testing.T) {
	dir := t.TempDir()
	kept, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, kept.Close()) }()
	sim := webtest.New(webtest.Options{})
	var (
		mu       sync.Mutex
		clock    = politetest.At(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
		arrivals = map[string][]time.Time{}
		refuse   bool
	)
	for host, robots := range map[string]string{"slow.com": "User-agent: *\nCrawl-delay: 4\n", "quick.com": ""} {
		sim.Handle(host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			arrivals[host] = append(arrivals[host], clock.Now())
			mu.Unlock()
			if refuse {
				rw.Header().Set("Retry-After", "20")
				rw.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = rw.Write([]byte(robots))
		}))
	}
	require.NoError(t, sim.Start())
	defer func() { require.NoError(t, sim.Close()) }()

	// process visits a host and gives its store calls; it is killed in a pause.
	process := func(id, host string, killedAt int) int64 {
		cfg := Config{Lane: lane.Config{Job: Job, RunID: id, Store: dir, Slots: 1, LogFormat: "json", LogLevel: 100,
			Polite: polite.Config{HostDelay: 200 * time.Millisecond, RetryBackoff: 500 * time.Millisecond}, Web: web.Config{ConnectTo: sim.Addr(), RootCAs: sim.CAPEM()}}}
		w, err := lane.Open(t.Context(), cfg.Lane)
		require.NoError(t, err)
		defer func() { require.NoError(t, lane.Close(id)) }()
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		w.Pacer.Clock = politetest.Killed(clock.Polite(), killedAt, kill)
		fn := doFn{Config: cfg}
		require.NoError(t, fn.Setup(t.Context()))
		before := w.Live().Store
		c := &collector{cfg: cfg, w: w, name: host}
		c.client = c.newClient()
		c.robots(ctx)
		for _, path := range []string{"/sitemap.xml", "/sitemaps.xml"} {
			c.get(ctx, polite.Request{URL: "https://" + host + path, Invited: true})
		}
		calls := int64(0)
		for name, n := range w.Live().Store {
			calls += n - before[name]
		}
		return calls
	}
	objects := func() (keys []string) {
		for o, err := range kept.List(t.Context(), "pauses/") {
			require.NoError(t, err)
			keys = append(keys, o.Key)
		}
		return keys
	}

	for killedAt := 1; killedAt < 5; killedAt++ { // the first pause is before the first request
		process("kill", "slow.com", killedAt)
		require.Equal(t, []string{"pauses/seed/slow.com.json"}, objects())
	}
	process("whole", "slow.com", 100)
	for i, at := range arrivals["slow.com"][1:] {
		require.GreaterOrEqual(t, at.Sub(arrivals["slow.com"][i]), 4*time.Second, "request %d", i+1)
	}

	for killedAt := 1; killedAt < 5; killedAt++ { // the first pause is before the first request
		require.Zero(t, process("kill", "quick.com", killedAt))
	}
	for i, at := range arrivals["quick.com"][1:] {
		require.GreaterOrEqual(t, at.Sub(arrivals["quick.com"][i]), 200*time.Millisecond, "request %d", i+1)
	}

	refuse = true
	process("kill", "quick.com", 1)
	refuse = false
	n := len(arrivals["quick.com"])
	process("whole", "quick.com", 100)
	require.GreaterOrEqual(t, arrivals["quick.com"][n].Sub(arrivals["quick.com"][n-1]), 20*time.Second, "Retry-After")

	clock.Advance(time.Minute)
	process("last", "quick.com", 100)
	require.Empty(t, objects(), "a pause that is over is removed")
}
