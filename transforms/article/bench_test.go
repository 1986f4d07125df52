//go:build unix

package article_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/transforms/article"
)

// BenchmarkExtract reads the scrapinghub pages on one core. cpu-pages/s is by
// the process's CPU time, as time.process_time counts it for trafilatura: on a
// busy machine the wall's clock says nothing. Beside it, in the same minutes on
// the same two cores, trafilatura 2.3.1 read 21 to 25 a second, this 350 to 400
// (goal: 15 times as many).
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

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
