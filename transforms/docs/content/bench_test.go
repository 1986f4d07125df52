//go:build unix

package content_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/content"
)

// BenchmarkExtract turns the pages of docs_pages from bytes into Markdown and
// links, as a crawl does. In a second of CPU time on one machine this read 300 of
// these pages, and trafilatura 2.3.1 read 14; since then it became faster: 480 to 510.
// cpu-pages/s is by the process's CPU time, as a busy machine does not change it much.
func BenchmarkExtract(b *testing.B) {
	pages := docsPages(b)
	size := 0
	for _, p := range pages {
		size += len(p.body)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		for _, p := range pages {
			if _, err := content.Extract(p.body, "text/html; charset="+p.Encoding, content.Options{Base: base}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(pages))/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric(float64(b.N*len(pages))/(cpu(b)-before).Seconds(), "cpu-pages/s")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSplit cuts the Markdown of the same pages into chunks.
func BenchmarkSplit(b *testing.B) {
	var texts []string
	size := 0
	for _, p := range docsPages(b) {
		page, err := content.Extract(p.body, "text/html; charset="+p.Encoding, content.Options{})
		if err != nil {
			b.Fatal(err)
		}
		texts = append(texts, page.Markdown)
		size += len(page.Markdown)
	}
	chunk.Tokens("") // the vocabulary is built once for each process
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, text := range texts {
			chunk.Split("https://docs.example.com/a", text, nil, chunk.Default)
		}
	}
	b.ReportMetric(float64(b.N*len(texts))/b.Elapsed().Seconds(), "pages/s")
}
