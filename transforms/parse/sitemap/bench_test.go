//go:build unix

package sitemap_test

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/sitemap"
)

// BenchmarkParse counts the URLs of a large sitemap. cpu-MB/s is by the process's CPU
// time, because on a busy machine the wall clock says nothing.
func BenchmarkParse(b *testing.B) {
	var body bytes.Buffer
	body.WriteString("<urlset>")
	for i := range 50_000 {
		fmt.Fprintf(&body, "<url><loc>https://www.example.com/articles/%d</loc><lastmod>2026-01-02T03:04:05Z</lastmod></url>\n", i)
	}
	body.WriteString("</urlset>")
	b.SetBytes(int64(body.Len()))
	before := cpu(b)
	for b.Loop() {
		r, err := sitemap.Parse(body.Bytes(), 0)
		require.True(b, err == nil && r.Count == 50_000, "%v %v", r, err)
	}
	b.ReportMetric(float64(b.N*body.Len())/1e6/(cpu(b)-before).Seconds(), "cpu-MB/s")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
