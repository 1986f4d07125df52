//go:build e2e

package flink

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx" // the runners
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

var (
	benchDomains = flag.Int("domains", 10_000, "domains of BenchmarkSeed")
	benchRounds  = flag.Int("rounds", 1, "runs of each side; medians are reported")
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[countHosts]())
	beam.RegisterDoFn(reflect.TypeFor[sumHosts]())
}

// BenchmarkSeed compares the job on Flink, with the workers in the program's own
// process, with prism. It measures domains a second from the first request on,
// because a cluster starts only once. The goal is ≥0.85.
func BenchmarkSeed(b *testing.B) {
	const latency, concurrency, lanes = 50 * time.Millisecond, 256, 32
	w := rig.StartWeb(b, webtest.Options{Seed: 1, Latency: latency, Mix: map[webtest.Kind]int{webtest.KindURLSet: 1}})
	s := startServer(b, w)
	raw := map[string]string{"datasets/country=sg/category=news/date=2026-01-28/raw_0001.json": benchRaw(*benchDomains)}
	run := func(args ...string) (speed, start float64) {
		dir := rig.Directory(b, raw)
		w.ResetLog()
		begin := time.Now()
		w.Run(b, dir, append(args, "--host-delay=0", fmt.Sprintf("--concurrency=%d", concurrency))...)
		log := w.Requests()
		if len(log) != 2**benchDomains {
			b.Fatalf("%v sent %d requests for %d domains, want two for each", args, len(log), *benchDomains)
		}
		from, to := log[0].Start, log[0].End
		for _, r := range log {
			if r.Start.Before(from) {
				from = r.Start
			}
			if r.End.After(to) {
				to = r.End
			}
		}
		return float64(*benchDomains) / to.Sub(from).Seconds(), from.Sub(begin).Seconds()
	}
	run("--runner=prism") // the web signs its certificates at the first handshake
	b.ResetTimer()
	var prism, flink, ratio, start []float64
	for range b.N {
		for range *benchRounds {
			f, began := run(s.args("LOOPBACK", 2, fmt.Sprintf("--lanes=%d", lanes))...)
			p, _ := run("--runner=prism")
			prism, flink, ratio, start = append(prism, p), append(flink, f), append(ratio, f/p), append(start, began)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(prism), "prism-domains/s")
	b.ReportMetric(median(flink), "flink-domains/s")
	b.ReportMetric(median(ratio), "flink/prism-speed")
	b.ReportMetric(median(start), "s-to-first-request")
	b.ReportMetric(s.peak(b), "JVM-peak-MiB")
}

const (
	groupedFiles = 2
	groupedHosts = 500_000 // the same ones in each file: a million URL records
)

// BenchmarkGrouping moves a million URL records from raw files to their lanes,
// where they are merged by host. Start-up is included: "empty" is the time of a
// job that finds no file.
func BenchmarkGrouping(b *testing.B) {
	s := startServer(b, rig.StartWeb(b, webtest.Options{}))
	beam.Init()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // prism logs every stage
	beamlog.SetLogger(mute{})
	empty := rig.Directory(b, nil)
	full := rig.Directory(b, map[string]string{
		"datasets/country=sg/category=news/date=2026-01-28/raw_0001.json": benchRaw(groupedHosts),
		"datasets/country=sg/category=news/date=2026-01-28/raw_0002.json": benchRaw(groupedHosts),
	})
	for _, runner := range []string{"direct", "prism", "flink"} {
		b.Run(runner, func(b *testing.B) {
			if runner == "flink" { // last, because prism would read Flink's flags too
				for name, value := range map[string]string{"endpoint": s.endpoint, "environment_type": "LOOPBACK", "parallelism": "2"} {
					require.NoError(b, flag.Set(name, value))
				}
			}
			var speed, start []float64
			for range b.N {
				for range *benchRounds {
					start = append(start, group(b, runner, empty, 0).Seconds())
					speed = append(speed, groupedFiles*groupedHosts/group(b, runner, full, groupedHosts).Seconds())
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(speed), "records/s")
			b.ReportMetric(median(start), "s-empty")
			if runner == "flink" {
				b.ReportMetric(s.peak(b), "JVM-peak-MiB")
			}
		})
	}
}

func group(b *testing.B, runner, dir string, want int64) time.Duration {
	b.Helper()
	cfg := seed.Config{Lanes: 1, Lane: lane.Config{Job: seed.Job, RunID: ledger.NewRunID(time.Now()), Store: dir, Slots: 1, LogFormat: "json", LogLevel: slog.LevelError}}
	if runner == "flink" {
		cfg.Lanes, cfg.Lane.Slots = 32, 2
	}
	p, s := beam.NewPipelineWithRoot()
	files, _ := seed.List(s, cfg)
	_, records, _ := seed.Extract(s, cfg, files)
	hosts := beam.ParDo(s, &countHosts{}, beam.GroupByKey(s, records))
	sum := beam.ParDo(s, &sumHosts{Want: want}, beam.GroupByKey(s, beam.AddFixedKey(s, hosts)))
	beam.GroupByKey(s, beam.AddFixedKey(s, sum)) // as in the job: prism 2.77 spins a core while a stage without an output works
	start := time.Now()
	_, err := beam.Run(b.Context(), runner, p)
	require.NoError(b, err)
	took := time.Since(start)
	require.NoError(b, lane.Close(cfg.Lane.RunID))
	return took
}

// countHosts merges a lane's URL records by host, as the visits do. It panics
// when a file has no URL record of a host.
type countHosts struct{}

func (fn *countHosts) ProcessElement(_ int, batches func(*lane.Batch) bool, emit func(int64)) {
	hosts := map[string]int{}
	var batch lane.Batch
	for batches(&batch) {
		records, err := batch.Records()
		if err != nil {
			panic(err)
		}
		for _, m := range records {
			hosts[m.Host]++
		}
	}
	for h, n := range hosts {
		if n != groupedFiles {
			panic(fmt.Sprintf("%s was named %d times, want %d", h, n, groupedFiles))
		}
	}
	emit(int64(len(hosts)))
}

// sumHosts panics unless the lanes together have Want hosts.
type sumHosts struct{ Want int64 }

func (fn *sumHosts) ProcessElement(_ int, lanes func(*int64) bool, emit func(int64)) {
	var sum, n int64
	for lanes(&n) {
		sum += n
	}
	if sum != fn.Want {
		panic(fmt.Sprintf("%d hosts arrived, want %d", sum, fn.Want))
	}
	emit(sum)
}

// benchRaw returns a raw file of n domains.
func benchRaw(n int) string {
	var s strings.Builder
	s.WriteString(`{"records":[`)
	for i := range n {
		if i > 0 {
			s.WriteString(",\n")
		}
		fmt.Fprintf(&s, `{"raw_url":"https://site-%d.com/"}`, i)
	}
	s.WriteString("]}")
	return s.String()
}

// peak returns the job server's largest resident set so far, in MiB.
func (s server) peak(b *testing.B) float64 {
	f, err := os.Open(filepath.Join("/proc", fmt.Sprint(s.Cmd.Process.Pid), "status"))
	require.NoError(b, err)
	defer func() { _ = f.Close() }() // only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kib float64
		if _, err := fmt.Sscanf(lines.Text(), "VmHWM: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	b.Fatal(errors.Join(errors.New("no VmHWM in the process's status"), lines.Err()))
	return 0
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

type mute struct{}

// Log implements Beam's log.Logger.
func (mute) Log(context.Context, beamlog.Severity, int, string) {}
