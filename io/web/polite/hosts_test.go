package polite_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/polite/politetest"
)

func hours(t *testing.T, text string) (h polite.Hours) {
	t.Helper()
	require.NoError(t, h.UnmarshalText([]byte(text)))
	return h
}

// Each setting comes from the most specific pattern that has it, also after the travel to a worker.
func TestHostsFor(t *testing.T) {
	text, err := json.Marshal(polite.Hosts{
		"*":             {Delay: sec, Concurrency: 9},
		"*.sg":          {Delay: 2 * sec, Hours: hours(t, "22:00-06:00 Asia/Singapore")},
		"*.gov.sg":      {UserAgent: "A/1"},
		"moh.gov.sg":    {Delay: 3 * sec, Hours: hours(t, "any")},
		"*.moh.gov.sg":  {Delay: 4 * sec},
		"a.moh.gov.sg":  {LongestDelay: time.Minute},
		"other.example": {Delay: time.Hour},
		"2001":          {Delay: time.Hour},
		"2001:db8::1":   {Delay: 5 * sec},
	})
	require.NoError(t, err)
	var h polite.Hosts
	require.NoError(t, json.Unmarshal(text, &h))
	for site, want := range map[string]string{
		"b.example":         "delay 1s *; concurrency 9 *",
		"b.example:8080":    "delay 1s *; concurrency 9 *",
		"sg":                "delay 1s *; concurrency 9 *",
		"b.sg":              "delay 2s *.sg; hours 22:00-06:00 Asia/Singapore *.sg; concurrency 9 *",
		"gov.sg":            "delay 2s *.sg; hours 22:00-06:00 Asia/Singapore *.sg; concurrency 9 *",
		"moh.gov.sg":        "delay 3s moh.gov.sg; hours any moh.gov.sg; user_agent A/1 *.gov.sg; concurrency 9 *",
		"a.moh.gov.sg":      "max_crawl_delay 1m0s a.moh.gov.sg; delay 4s *.moh.gov.sg; user_agent A/1 *.gov.sg; hours 22:00-06:00 Asia/Singapore *.sg; concurrency 9 *",
		"x.y.gov.sg":        "user_agent A/1 *.gov.sg; delay 2s *.sg; hours 22:00-06:00 Asia/Singapore *.sg; concurrency 9 *",
		"notother.example":  "delay 1s *; concurrency 9 *",
		"sub.other.example": "delay 1s *; concurrency 9 *",
		// As web.Site names addresses: the colons of one without a port are no port's.
		"2001:db8::2":        "delay 1s *; concurrency 9 *",
		"[2001:db8::1]:8080": "delay 5s 2001:db8::1; concurrency 9 *",
	} {
		var got []string
		_, by := h.For(site)
		for _, d := range by {
			got = append(got, d.Setting+" "+d.Value+" "+d.Pattern)
		}
		assert.Equal(t, want, strings.Join(got, "; "), site)
	}
	assert.Equal(t, "delay 3s; hours any", h["moh.gov.sg"].String())
}

func TestBadHours(t *testing.T) {
	for text, want := range map[string]string{
		"":                         `hours "": write 22:00-06:00 Asia/Singapore, or any`,
		"22:00-06:00":              `hours "22:00-06:00": name the time zone too, such as 22:00-06:00 UTC`,
		"22:00-06:00 Local":        `hours "22:00-06:00 Local": name the time zone too, such as 22:00-06:00 UTC`,
		"22-6 UTC":                 `hours "22-6 UTC": write 22:00-06:00 Asia/Singapore, or any`,
		"24:00-06:00 UTC":          `hours "24:00-06:00 UTC": write 22:00-06:00 Asia/Singapore, or any`,
		"22:00-25:00 UTC":          `hours "22:00-25:00 UTC": write 22:00-06:00 Asia/Singapore, or any`,
		"22:00-22:00 UTC":          `hours "22:00-22:00 UTC": 22:00-22:00 is no part of a day; write any for the whole day`,
		"00:00-24:00 UTC":          `hours "00:00-24:00 UTC": 00:00-24:00 is no part of a day; write any for the whole day`,
		"22:00-06:00 Asia/Nowhere": `hours "22:00-06:00 Asia/Nowhere": there is no time zone "Asia/Nowhere"; write a name of the IANA database, such as Asia/Singapore, or UTC`,
	} {
		assert.EqualError(t, new(polite.Hours).UnmarshalText([]byte(text)), want)
	}
}

// Outside of the hours a site is abandoned until they begin, also where a clock change moves them.
func TestHours(t *testing.T) {
	for _, c := range []struct{ hours, at, until string }{
		{"22:00-06:00 UTC", "2026-03-02T21:29:00Z", "2026-03-02T22:00:00Z"},
		{"22:00-06:00 UTC", "2026-03-02T22:00:00Z", ""},
		{"22:00-06:00 UTC", "2026-03-03T05:59:59Z", ""},
		{"22:00-06:00 UTC", "2026-03-03T06:00:00Z", "2026-03-03T22:00:00Z"},
		{"00:00-06:00 UTC", "2026-03-03T06:00:00Z", "2026-03-04T00:00:00Z"},
		{"18:00-24:00 UTC", "2026-03-03T00:00:00Z", "2026-03-03T18:00:00Z"},
		{"22:00-06:00 Asia/Singapore", "2026-03-02T15:00:00Z", ""}, // 23:00 there
		{"22:00-06:00 Asia/Singapore", "2026-03-02T22:00:00Z", "2026-03-03T14:00:00Z"},
		{"09:00-10:00,12:30-13:00 UTC", "2026-03-02T10:00:30Z", "2026-03-02T12:30:00Z"},
		{"02:30-03:30 Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"}, // 01:00 there; the clock goes from 02:00 to 03:00
		{"02:15-02:45 Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-30T00:15:00Z"}, // skipped that day
		{"02:30-02:45 Europe/Berlin", "2026-10-25T00:50:00Z", "2026-10-25T01:30:00Z"}, // repeated that day
		{"any", "2026-03-02T10:00:30Z", ""},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		require.NoError(t, err)
		client := &polite.Client{Pacer: &polite.Pacer{Clock: politetest.At(at).Polite(), Hosts: polite.Hosts{"a.example": {Hours: hours(t, c.hours)}}}}
		e := client.Abandoned(&url.URL{Scheme: "https", Host: "www.a.example"})
		if c.until == "" {
			assert.Nil(t, e, "%s at %s", c.hours, c.at)
			continue
		}
		require.NotNil(t, e, "%s at %s", c.hours, c.at)
		assert.Equal(t, c.until, e.Until.UTC().Format(time.RFC3339), "%s at %s", c.hours, c.at)
		assert.ErrorIs(t, e, polite.ErrStopped)
	}
}

// hosts gives a client a politeness file.
func hosts(c *polite.Client, h polite.Hosts) *polite.Client {
	c.Pacer.Hosts = h
	return c
}

// The file makes each job slower, never faster, and other hosts are not concerned.
func TestHostsDelay(t *testing.T) {
	for name, p := range policies() {
		w := newWorld(t, map[string][]http.HandlerFunc{"a.example/robots.txt": list(respond(404, "")), "b.example/robots.txt": list(respond(404, ""))})
		p.Gap = polite.Range{Min: 2 * sec, Max: 2 * sec}
		p.Robots.Retry = nil
		c := hosts(w.client(p), polite.Hosts{"a.example": {Delay: 5 * sec}, "b.example": {Delay: sec}})
		for _, at := range []string{"https://a.example/1", "https://b.example/1"} {
			_, err := c.Get(t.Context(), polite.Request{URL: at, Once: true})
			require.NoError(t, err, name)
		}
		assert.Equal(t, []string{"0s a.example/robots.txt", "5s a.example/1", "5s b.example/robots.txt", "7s b.example/1"}, w.requests(), name)
	}
}

// robots.txt stays the lower bound; the longest one that is obeyed is the file's.
func TestHostsLongestDelay(t *testing.T) {
	robots := list(respond(200, "User-agent: *\nCrawl-delay: 60\n"))
	for longest, want := range map[time.Duration][]string{
		0:               {"0s a.example/robots.txt"},
		2 * time.Minute: {"0s a.example/robots.txt", "1m0s a.example/1"},
		10 * sec:        {"0s a.example/robots.txt"},
	} {
		w := newWorld(t, map[string][]http.HandlerFunc{"a.example/robots.txt": robots})
		p := policies()["seed"]
		p.MaxCrawlDelay = 30 * sec
		c := hosts(w.client(p), polite.Hosts{"*": {Delay: sec, LongestDelay: longest}})
		_, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/1", Once: true})
		var no *polite.AbandonedError
		assert.Equal(t, len(want) == 1, errors.As(err, &no), longest)
		assert.Equal(t, want, w.requests(), longest)
	}
}

// The file's max_crawl_delay bounds what is waited for. It shortens no pause that an overloaded site gets.
func TestHostsLongestDelayOfARefusal(t *testing.T) {
	for longest, want := range map[time.Duration][]string{
		10 * sec:    {"0s a.example/1", "16s a.example/1", "46s a.example/1"}, // up to Policy.MaxRetryAfter
		time.Minute: {"0s a.example/1", "16s a.example/1", "48s a.example/1"},
	} {
		w := newWorld(t, map[string][]http.HandlerFunc{"a.example/1": list(respond(503, ""))})
		c := hosts(w.client(polite.Policy{Gap: polite.Range{Min: 8 * sec, Max: 8 * sec}, MaxRetryAfter: 30 * sec}), polite.Hosts{"a.example": {LongestDelay: longest}})
		c.Pacer.Adapt = 1
		for range want {
			_, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/1", Invited: true, Once: true})
			require.NoError(t, err)
		}
		assert.Equal(t, want, w.requests(), longest)
	}
}

// A host gets the file's User-Agent, and the rules for it, also where a redirect leads.
func TestHostsAgent(t *testing.T) {
	var sent sync.Map
	seen := func(of http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { sent.Store(r.Host+r.URL.Path, r.UserAgent()); of(w, r) }
	}
	robots := seen(respond(200, "User-agent: ours\nDisallow: /no\n\nUser-agent: *\nDisallow: /1\n"))
	w := newWorld(t, map[string][]http.HandlerFunc{
		"a.example/robots.txt": list(robots), "b.example/robots.txt": list(robots),
		"a.example/1": list(seen(respond(302, "", "Location", "https://b.example/2"))), "b.example/2": list(seen(respond(200, ""))),
	})
	c := hosts(w.client(polite.Policy{Robots: polite.Robots{Agent: "Job/1"}}), polite.Hosts{"a.example": {UserAgent: "Ours/2 (+https://x.example)"}})
	_, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/1", MaxRedirects: 2})
	require.NoError(t, err)
	_, err = c.Get(t.Context(), polite.Request{URL: "https://a.example/no"})
	var no *polite.DisallowedError
	require.ErrorAs(t, err, &no)
	got := map[any]any{}
	sent.Range(func(k, v any) bool { got[k] = v; return true })
	ours, job := "Ours/2 (+https://x.example)", web.DefaultUserAgent
	assert.Equal(t, map[any]any{"a.example/robots.txt": ours, "a.example/1": ours, "b.example/robots.txt": job, "b.example/2": job}, got)
}

// The hosts of a pattern share its requests in flight; other hosts have theirs.
func TestHostsConcurrency(t *testing.T) {
	var mu sync.Mutex
	now, most := map[string]int{}, map[string]int{}
	answers := map[string][]http.HandlerFunc{}
	groups := map[string]string{"a.example": "pattern", "b.example": "pattern", "www.c.example": "other"}
	for host, group := range groups {
		answers[host+"/1"] = list(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			now[group]++
			most[group] = max(most[group], now[group])
			mu.Unlock()
			time.Sleep(30 * time.Millisecond) // the answer takes time, so that two would be seen together
			mu.Lock()
			now[group]--
			mu.Unlock()
		})
	}
	w := newWorld(t, answers)
	w.sim.Handle("www.c.example", http.HandlerFunc(w.serve))
	c := w.client(polite.Policy{})
	c.Pacer.Clock = polite.Clock{}
	hosts(c, polite.Hosts{"*": {Concurrency: 1}, "www.c.example": {}, "c.example": {Concurrency: 2}})
	var all sync.WaitGroup
	for host := range groups {
		for range 3 {
			all.Go(func() {
				_, err := c.Get(context.Background(), polite.Request{URL: "https://" + host + "/1", Invited: true, Parallel: true})
				assert.NoError(t, err)
			})
		}
	}
	all.Wait()
	assert.Equal(t, map[string]int{"pattern": 1, "other": 2}, most)
	assert.Len(t, w.requests(), 9)
}

// A request whose site closes while it waits for something else is not sent: here the run is
// paused over the end of the hours. Nothing is remembered of the site.
func TestHoursEndInAPause(t *testing.T) {
	w := newWorld(t, map[string][]http.HandlerFunc{"a.example/1": list(respond(200, ""))})
	c := hosts(w.client(polite.Policy{}), polite.Hosts{"*": {Hours: hours(t, "09:00-10:00 UTC")}})
	var closed []string
	c.Pacer.Closed = func(e *polite.AbandonedError) {
		closed = append(closed, e.Site)
		used := make(chan bool)
		go func() { used <- c.Abandoned(&url.URL{Host: e.Site}) != nil }()
		select {
		case <-used:
		case <-time.After(5 * time.Second):
			t.Error("the client is locked while it tells of a closed site")
		}
	}
	c.Control = &pausing{clock: w.clock, at: 1}
	for range 2 {
		_, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/1", Invited: true})
		var no *polite.AbandonedError
		require.ErrorAs(t, err, &no)
		assert.Equal(t, "a.example gets requests at 09:00-10:00 UTC only (* in the politeness file): a run from 2026-03-03T09:00:00Z on continues", no.Error())
	}
	assert.Empty(t, w.requests())
	assert.Equal(t, []string{"a.example"}, closed)
	w.clock.Advance(23*time.Hour - 20*sec) // short enough to wait
	_, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/1", Invited: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"24h0m0s a.example/1"}, w.requests())
}

// pausing is a control that pauses the run for an hour at the call with that number.
type pausing struct {
	clock *politetest.Clock
	at    int
}

func (p *pausing) Stopping() context.Context { return context.Background() }

func (p *pausing) Proceed(context.Context) bool {
	if p.at--; p.at == -1 {
		p.clock.Advance(time.Hour)
	}
	return true
}

// A request that a job may send in parallel takes turns where the file asks for a pause.
func TestHostsParallel(t *testing.T) {
	for delay, want := range map[time.Duration][]string{
		0:       {"0s a.example/1", "0s a.example/2"},
		4 * sec: {"0s a.example/1", "4s a.example/2"},
	} {
		w := newWorld(t, map[string][]http.HandlerFunc{})
		c := hosts(w.client(polite.Policy{}), polite.Hosts{"*": {Delay: delay}})
		for _, path := range []string{"1", "2"} {
			_, err := c.Get(t.Context(), polite.Request{URL: "https://a.example/" + path, Invited: true, Parallel: true})
			require.NoError(t, err)
		}
		assert.Equal(t, want, w.requests())
	}
}
