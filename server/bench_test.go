package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
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

var (
	watchedDomains = flag.Int("domains", 1500, "domains of each run of BenchmarkWatched")
	watchedRounds  = flag.Int("rounds", 5, "rounds of BenchmarkWatched")
)

// BenchmarkWatched runs the seed job by the real program without a server, and under
// a server whose dashboard is open in no, one and eight browsers. Each browser reads
// an event stream and loads its page again at each event, as live.js does. The
// browsers and the simulated web use the same processors. The figures are medians
// over rounds; in each round every variant runs once. The loss is computed from
// pairs of a round: a watched server against an unwatched one, and that against no
// server. The server's own share of processor time is printed too: it is an upper
// bound for the loss when other load on the machine hides it.
func BenchmarkWatched(b *testing.B) {
	program := filepath.Join(b.TempDir(), "server")
	out, err := exec.Command("go", "build", "-o", program, "github.com/newsfork/seed-engine/cmd/pipeline").CombinedOutput()
	require.NoError(b, err, "%s", out)
	sides := []struct {
		name     string
		watchers int // -1: no server at all
	}{{"alone", -1}, {"unwatched", 0}, {"one", 1}, {"eight", 8}}
	rates, taken := make([][]float64, len(sides)), make([][]float64, len(sides))
	for round := range *watchedRounds {
		for i := range sides { // each variant is the first one in some rounds
			n := (round + i) % len(sides)
			rate, share := watchedRun(b, program, sides[n].watchers)
			rates[n], taken[n] = append(rates[n], rate), append(taken[n], share)
			b.Logf("round %d, %s: %.1f domains/s, the server took %.2f %% of the machine", round+1, sides[n].name, rate, share)
		}
	}
	for n, side := range sides {
		b.ReportMetric(middle(rates[n]), "domains/s-"+side.name)
		if n == 0 {
			continue
		}
		var loss []float64
		than := min(n-1, 1) // a server against none; a watched one against an unwatched one
		for r, v := range rates[n] {
			loss = append(loss, 100*(1-v/rates[than][r]))
		}
		b.ReportMetric(middle(loss), "%lost-"+side.name)
		b.ReportMetric(middle(taken[n]), "%cpu-"+side.name)
	}
}

func middle(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// watchedRun runs the job once on its own store. It returns domains a second, and the
// server's share of all processor time, in percent.
func watchedRun(b *testing.B, program string, watchers int) (rate, share float64) {
	// Each run has its own port, because closed connections keep theirs for a minute.
	web := webtest.New(webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	require.NoError(b, web.Start())
	defer func() { require.NoError(b, web.Close()) }()
	dir, err := os.MkdirTemp(b.TempDir(), "") // with TMPDIR=/dev/shm the disk does not disturb the figures
	require.NoError(b, err)
	defer func() { require.NoError(b, os.RemoveAll(dir)) }()
	ca := filepath.Join(b.TempDir(), "ca.pem")
	require.NoError(b, os.WriteFile(ca, web.CAPEM(), 0o600))
	s, err := store.Open(b.Context(), dir)
	require.NoError(b, err)
	var raw strings.Builder
	for i := range *watchedDomains {
		fmt.Fprintf(&raw, ",{\"raw_url\":\"https://urlset-%d.com/\"}", i+1)
	}
	require.NoError(b, s.Put(b.Context(), "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json", strings.NewReader(`{"meta":{},"records":[`+raw.String()[1:]+`]}`), store.PutOptions{}))
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append(args, "--store="+dir, "--connect-to="+web.Addr(), "--host-delay=0s", "--log-level=error")...)
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+ca)
		cmd.Stderr = os.Stderr
		return cmd
	}
	if watchers < 0 {
		job := command("seed", "--progress=off")
		require.NoError(b, job.Start())
		rate = domainsPerSecond(b, s)
		require.NoError(b, job.Wait())
		return rate, 0
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	at := "http://" + l.Addr().String()
	server := command("serve", "--listen="+l.Addr().String())
	require.NoError(b, l.Close())
	require.NoError(b, server.Start())
	defer func() {
		require.NoError(b, server.Process.Signal(os.Interrupt))
		require.NoError(b, server.Wait())
	}()
	require.Eventually(b, func() bool {
		resp, err := http.Get(at + "/readyz")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
	used, begin := processorTime(b, server.Process.Pid), time.Now()
	resp, err := http.Post(at+"/api/v1/seeds/orchestrate", "", nil)
	require.NoError(b, err)
	var started struct {
		RunID string `json:"run_id"`
	}
	require.NoError(b, errors.Join(json.NewDecoder(resp.Body).Decode(&started), resp.Body.Close()))
	looking, away := context.WithCancel(b.Context())
	var looks atomic.Int64
	var watching sync.WaitGroup
	for i := range watchers {
		page := at + "/runs/" + started.RunID
		if i%2 == 1 {
			page = at + "/"
		}
		watching.Go(func() { looks.Add(watch(looking, b, at, page)) })
	}
	rate = domainsPerSecond(b, s)
	share = 100 * (processorTime(b, server.Process.Pid) - used).Seconds() / (time.Since(begin).Seconds() * float64(runtime.NumCPU()))
	away()
	watching.Wait()
	require.GreaterOrEqual(b, looks.Load(), int64(2*watchers), "nobody looked")
	return rate, share
}

// processorTime is the processor time of a process (proc_pid_stat(5)).
func processorTime(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	var user, system int64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	require.NoError(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond // of 1/100 s
}

// domainsPerSecond waits for the report of a store's only run.
func domainsPerSecond(b *testing.B, s store.Store) float64 {
	var r ledger.Report
	require.Eventually(b, func() bool {
		for run, err := range ledger.List(b.Context(), s) {
			if err == nil {
				r, err = ledger.ReadReport(b.Context(), s, run.RunID)
			}
			return err == nil
		}
		return false
	}, 5*time.Minute, 200*time.Millisecond)
	require.Equal(b, ledger.Done, r.State)
	require.EqualValues(b, *watchedDomains, r.Counts["domains_collected"])
	return float64(r.Counts["domains_collected"]) / r.Duration
}

// watch acts as a browser at one page and returns how often it loaded the page.
func watch(ctx context.Context, b *testing.B, at, page string) (looks int64) {
	get := func(url string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			b.Error(err)
			return nil
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil && ctx.Err() == nil {
			b.Error(err)
		}
		return resp
	}
	events := get(at + "/events")
	if events == nil {
		return 0
	}
	defer func() { _ = events.Body.Close() }()
	for lines := bufio.NewScanner(events.Body); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "data:") {
			continue
		}
		resp := get(page)
		if resp == nil {
			return looks
		}
		_, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			looks++
		}
	}
	return looks
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
