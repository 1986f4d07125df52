package server

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// BenchmarkStatusPage reads the status page of a store with 1,000 runs, 32
// clients at once, while the board changes four times a
// second, more often than in practice; and a static file of
// the same size from net/http's file server. It prints both 99th percentiles.
func BenchmarkStatusPage(b *testing.B) {
	s, err := store.Open(b.Context(), b.TempDir())
	require.NoError(b, err)
	at := time.Date(2026, 1, 28, 9, 0, 0, 0, time.UTC)
	for i := range 1000 {
		run := ledger.Run{RunID: fmt.Sprintf("20260128-090000-%03d-0a1b2c3d", i), Job: "seed", Runner: "prism", StartedAt: at.Add(time.Duration(i) * time.Minute)}
		require.NoError(b, ledger.Start(b.Context(), s, run))
		run, err := ledger.Finish(b.Context(), s, run.RunID, ledger.Done, nil, run.StartedAt.Add(time.Minute))
		require.NoError(b, err)
		require.NoError(b, ledger.WriteReport(b.Context(), s, ledger.BuildReport(testJob(run.Job), run, sampleTally(), run.FinishedAt)))
	}
	server, err := New(Settings{Jobs: testJobs(), Store: s, Log: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	begin := time.Now()
	require.NoError(b, server.board.Refresh(b.Context(), time.Now()))
	b.ReportMetric(time.Since(begin).Seconds()*1000, "ms-to-read-1000-runs")
	web := httptest.NewServer(server.handler)
	defer web.Close()
	page := read(b, web.URL+"/")
	dir := b.TempDir()
	require.NoError(b, os.WriteFile(filepath.Join(dir, "page.html"), page, 0o600))
	static := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer static.Close()

	done := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		t := time.NewTicker(250 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				server.board.Change()
			case <-done:
				return
			}
		}
	})
	b.ResetTimer()
	file := percentile(b, static.URL+"/page.html")
	status := percentile(b, web.URL+"/")
	b.StopTimer()
	close(done)
	changing.Wait()
	b.ReportMetric(status.Seconds()*1000, "p99-ms")
	b.ReportMetric(file.Seconds()*1000, "p99-static-ms")
	b.ReportMetric(status.Seconds()/file.Seconds(), "p99-ratio")
	b.ReportMetric(float64(len(page))/1024, "KiB")
}

func read(b *testing.B, url string) []byte {
	resp, err := http.Get(url)
	require.NoError(b, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
	require.Equal(b, http.StatusOK, resp.StatusCode)
	return body
}

// percentile is the 99th of b.N times 32 requests' times, at least 3,200.
func percentile(b *testing.B, url string) time.Duration {
	const clients = 32
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	all := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for range max(b.N, 100) {
				begin := time.Now()
				resp, err := client.Get(url)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Errorf("%s: %v", url, err)
					return
				}
				all[c] = append(all[c], time.Since(begin))
			}
		})
	}
	wg.Wait()
	times := slices.Concat(all...)
	slices.Sort(times)
	return times[len(times)*99/100]
}
