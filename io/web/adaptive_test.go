package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
)

// The pause grows with a host's response time and its refusals, and shrinks slowly. It is
// never shorter than the usual one and the Crawl-delay, and never longer than the longest
// pause that is waited for, 20 s here.
func TestAdaptiveDelay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		factor  float64
		delay   int    // Crawl-delay
		answers string // status and milliseconds
		want    string // gaps in milliseconds
	}{
		{"off", 0, 0, "200/9000 503/10 200/10", "1000 1000"},
		{"quick", 2, 0, "200/100 200/400 200/500 200/10", "1000 1000 1000"},
		{"slow at once", 2, 0, "200/4000 200/4000 200/10", "8000 8000"},
		{"slow later", 2, 0, "200/100 200/4000 200/4000 200/100 200/100 200/100 200/100 200/100 200/100", "1000 2150 3612 2759 2119 1639 1279 1009"},
		{"bounded", 2, 0, "200/15000 200/15000 200/10", "20000 20000"},
		{"refusals", 2, 0, "503/10 429/10 503/10 503/10 503/10 200/10 200/10 200/10 200/10 200/10 200/10 200/10 200/10 200/10 200/10 200/10 200/10",
			"2000 4000 8000 16000 20000 15000 11250 8437 6328 4746 3559 2669 2002 1501 1126 1000"},
		{"other failures", 2, 0, "500/10 404/10 403/10", "1000 1000"},
		{"a failure is not quicker", 2, 0, "200/4000 500/10 500/10 500/8000 404/0 200/0", "8000 8000 8000 10000 7500"},
		{"Crawl-delay", 2, 3, "200/100 200/100 200/100 200/2900 200/4300 200/100", "3000 3000 3000 3000 3350"},
		{"refusals with a Crawl-delay", 2, 3, "503/10 200/10 200/10 200/10", "6000 4500 3375"},
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := strings.Fields(tt.answers)
			a := newTestClient(t, web.Config{}, sec, func(n int, r *http.Request) answer {
				if r.URL.Path == "/robots.txt" {
					return answer{status: 200, body: fmt.Sprintf("User-agent: *\nCrawl-delay: %d\n", tt.delay)}
				}
				if tt.delay > 0 {
					n--
				}
				says := answer{}
				var ms int
				_, err := fmt.Sscanf(answers[n], "%d/%d", &says.status, &ms)
				assert.NoError(t, err)
				says.took = time.Duration(ms) * time.Millisecond
				return says
			})
			a.Pacer.Adapt = tt.factor
			if tt.delay > 0 {
				a.Policy.Robots.For = nil
			}
			for range answers {
				_, err := a.Get(t.Context(), polite.Request{URL: "http://a.test/"})
				require.NoError(t, err, tt.name)
			}
			log := slices.DeleteFunc(a.log, func(r request) bool { return r.path == "/robots.txt" })
			var got []string
			for i := 1; i < len(log); i++ {
				got = append(got, fmt.Sprint((log[i].start - log[i-1].end).Milliseconds()))
			}
			assert.Equal(t, tt.want, strings.Join(got, " "), "%s: gaps %v, want", tt.name, got)
		})
	}
}

// That a site refused requests is not forgotten between two visits; its response time
// may be.
func TestRefusalsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestClient(t, web.Config{}, sec, func(n int, _ *http.Request) answer { return answer{status: []int{503, 503, 200, 200}[n]} })
		a.Pacer.Adapt = 1
		a.get(a.again(), "http://a.test/", "http://a.test/") // 0, 2
		time.Sleep(time.Minute)
		a.get(a.again(), "http://a.test/", "http://a.test/") // then 3 s, not 1 s
		a.started(0, 2*sec, 62*sec, 65*sec)
		assert.Equal(t, 1, a.Pacer.Len(), "the site is forgotten")
		time.Sleep(10 * time.Minute)
		for i := range 300 {
			a.n = 2
			a.get(a.again(), fmt.Sprintf("http://h%d.test/", i))
			time.Sleep(sec)
		}
		assert.LessOrEqual(t, a.Pacer.Len(), 256)
	})
}
