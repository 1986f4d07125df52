//go:build unix && !race

// Under the race detector these hundreds of runs, one after another, take minutes.

package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// paper is a publisher that brings an article every so often, of which its sitemap has the newest thirty.
type paper struct {
	w     *world
	every time.Duration
	asked []time.Time // for its sitemap
}

func (p *paper) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	p.w.mu.Lock()
	now := p.w.now
	p.w.mu.Unlock()
	var n int
	switch r.URL.Path {
	case "/sitemap.xml":
		p.asked = append(p.asked, now)
		var b strings.Builder
		newest := int(now.Sub(p.published(0)) / p.every)
		for n := newest; n > max(newest-30, 0); n-- {
			fmt.Fprintf(&b, "<url><loc>https://%s/a/%d</loc><lastmod>%s</lastmod></url>", r.Host, n, p.published(n).Format(time.RFC3339))
		}
		_, _ = fmt.Fprintf(rw, "<urlset>%s</urlset>", b.String()) // it fails only when the client has closed the connection
	default:
		if _, err := fmt.Sscanf(r.URL.Path, "/a/%d", &n); err != nil {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(rw, story(`<meta property="article:published_time" content="`+p.published(n).Format(time.RFC3339)+`">`, fmt.Sprintf("<p>Number %d of the made-up articles of this test, which is long enough to be one.</p>", n))) // as above
	}
}

func (p *paper) published(n int) time.Time {
	return begin.AddDate(0, 0, -30).Add(37 * time.Minute).Add(time.Duration(n) * p.every)
}

// Three days of a busy publisher and of one with two articles a week, whose schedule starts a run
// every ten minutes, next to a run an hour for both.
func TestFreshness(t *testing.T) {
	type seen struct {
		asked, requests, stored int
		delay                   time.Duration
		missed                  int64
		shortest                time.Duration
	}
	end := begin.AddDate(0, 0, 3)
	days := func(due bool, every time.Duration) map[string]seen {
		w := once(t)
		w.cfg.MaxArticlesPerProvider = 20
		papers := map[string]*paper{"busy": {w: w, every: 24 * time.Hour / 200}, "slow": {w: w, every: 84 * time.Hour}}
		providers := map[string]provider.Provider{}
		for name, p := range papers {
			w.sim.Handle(name+".example", p)
			providers[name] = declared(t, "id: "+name+"\nbaseUrl: https://"+name+".example\narticleUrl: ^/a/\nsitemapHints: [https://"+name+".example/sitemap.xml]\nminInterval: 20m\n")
		}
		e := w.engine()
		e.OnlyDue = due
		out := map[string]seen{}
		w.sim.ResetLog()
		for at := begin; at.Before(end); at = at.Add(every) {
			for _, name := range []string{"busy", "slow"} {
				w.mu.Lock()
				w.now = at
				w.mu.Unlock()
				e.RunID = at.Format(time.RFC3339)
				r, err := e.Run(t.Context(), providers[name])
				require.NoError(t, err)
				s := out[name]
				s.missed += r.Missed
				out[name] = s
			}
		}
		for name, p := range papers {
			s := out[name]
			s.asked, s.shortest = len(p.asked), end.Sub(begin)
			for i := range p.asked[1:] {
				s.shortest = min(s.shortest, p.asked[i+1].Sub(p.asked[i]))
			}
			for _, r := range w.sim.Requests() {
				if strings.HasPrefix(r.Host, name) {
					s.requests++
				}
			}
			for _, a := range w.articles(name) {
				if a.PublishedAt.After(begin) {
					s.stored++
					s.delay += a.CollectedAt.Sub(*a.PublishedAt)
				}
			}
			s.delay /= time.Duration(s.stored)
			out[name] = s
		}
		return out
	}
	fixed, due := days(false, time.Hour), days(true, 10*time.Minute)
	for _, name := range []string{"busy", "slow"} {
		for how, s := range map[string]seen{"an hour": fixed[name], "due": due[name]} {
			t.Logf("%s, %-7s: asked %4d times, %5d requests, %4d articles stored after %v on average, %d missed", name, how, s.asked, s.requests, s.stored, s.delay.Round(time.Second), s.missed)
		}
	}
	assert.Less(t, due["busy"].delay, fixed["busy"].delay/2)
	assert.Less(t, due["slow"].asked, fixed["slow"].asked/5, "every six hours")
	assert.Less(t, due["slow"].delay, 6*time.Hour)
	assert.Equal(t, fixed["slow"].stored, due["slow"].stored)
	for name, s := range due {
		assert.Zero(t, s.missed, name)
		assert.GreaterOrEqual(t, s.shortest, 19*time.Minute+50*time.Second, "minInterval, less the seconds from the start to the sitemap")
	}
}
