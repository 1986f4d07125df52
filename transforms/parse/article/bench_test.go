//go:build unix

package article_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// BenchmarkExtract reads the scrapinghub pages on one core. cpu-pages/s is by
// the process's CPU time, as time.process_time counts it for trafilatura, because on
// a busy machine the wall clock says nothing. docs/performance.md has the figures, in turns with
// trafilatura's (goal: 20 times as many).
func BenchmarkExtract(b *testing.B) {
	var pages [][]byte
	size := 0
	for _, row := range newsPages(b) {
		if row.Source == "aeb" {
			pages = append(pages, row.page)
			size += len(row.page)
		}
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		for _, p := range pages {
			if _, err := article.Extract(p, "", article.Rules{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(pages))/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric(float64(b.N*len(pages))/(cpu(b)-before).Seconds(), "cpu-pages/s")
}

// The cost of reading a page does not grow with its nesting depth. The limit is four
// times the parser's own work: these pages need less, and a reader that searches again
// below every element needs more.
func TestDeepPagesCostWhatLongOnesDo(t *testing.T) {
	const sentence = "Some words of prose that are long enough to be a sentence, as in a paragraph. "
	for name, page := range map[string]struct {
		open, in, end string
		depth         int
	}{
		"phrases with text": {"<span>word word ", "x", "</span>", 480},
		"phrases":           {"<span>", "x", "</span>", 480},
		"times":             {"<time>", sentence, "</time>", 480},
		"changes' times":    {`<span class="updated" title="2024-05-03T10:00:00Z">`, "x", "</span>", 480},
	} {
		one := strings.Repeat(page.open, page.depth) + page.in + strings.Repeat(page.end, page.depth)
		text := `<!doctype html><title>A title</title><meta property="og:description" content="A description that is long enough to be looked for in the page's own text."><body>` +
			strings.Repeat(one, 400_000/len(one))
		least := 1e9
		for range 3 { // garbage collection may disturb one round
			before := cpu(t)
			if _, err := html.Parse(strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			parsed := cpu(t)
			if _, err := article.Extract([]byte(text), "text/html; charset=utf-8", article.Rules{}); err != nil {
				t.Fatal(err)
			}
			least = min(least, float64(cpu(t)-parsed)/float64(parsed-before))
		}
		if least > 4 {
			t.Errorf("%s: it costs %.1f times the parser's work", name, least)
		}
	}
}

func cpu(b testing.TB) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
