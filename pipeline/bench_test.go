package pipeline_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/resident"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

var (
	benchDomains = flag.Int("domains", 2000, "domains of BenchmarkSeed")
	benchRounds  = flag.Int("rounds", 3, "runs of each side; medians are reported")
	benchMost    = flag.Int("most-domains", 5000, "the larger input of BenchmarkSeedSize, such as 100000")
)

const benchRaw = "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"

// comparison is the set-up of a benchmark: the program, and a simulated web in
// this process that answers both sides in the same way.
type comparison struct {
	b       *testing.B
	dir     string
	program string
	web     *webtest.Web
	ca      string
	objects map[string]string // of one domain, as the first run wrote them
}

func init() {
	beam.RegisterDoFn(reflect.TypeFor[countHosts]())
	beam.RegisterDoFn(reflect.TypeFor[makeBatches]())
	beam.RegisterType(reflect.TypeFor[lane.Batch]())
}

var buildProgram = sync.OnceValues(func() (string, error) {
	dir, _, err := scratch.Dir("seed-bench-") // no benchmark knows that it is the last: the next process removes it
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "pipeline")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/pipeline").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return program, nil
})

// newComparison puts the stores of its runs into dir, which must exist until the
// last run has ended. No store is removed between two runs: ext4 steps over
// inodes that were deleted within the last half minute, one by one, and a run
// after a large removal was seen to take four times the kernel's CPU.
func newComparison(b *testing.B, dir string, latency time.Duration) *comparison {
	b.Helper()
	program, err := buildProgram()
	require.NoError(b, err)
	f := &comparison{b: b, dir: dir, program: program, web: webtest.New(webtest.Options{Seed: 1, Latency: latency, Mix: map[webtest.Kind]int{webtest.KindURLSet: 1}})}
	require.NoError(b, f.web.Start())
	b.Cleanup(func() {
		assert.NoError(b, f.web.Close())
	})
	f.ca = filepath.Join(f.dir, "ca.pem")
	require.NoError(b, os.WriteFile(f.ca, f.web.CAPEM(), 0o600))
	return f
}

// cost is the time and memory that one child process used.
type cost struct {
	wall, cpu  time.Duration
	first      time.Duration // from start to the web's first request
	rss        int64         // peak, bytes
	handshakes int           // of TLS
}

// run writes a new store with that many domains, lets a bare pool ("durable" or
// "plain") or the program on a runner process it, and checks that all domains were
// done.
func (f *comparison) run(side string, domains, concurrency int) cost {
	f.b.Helper()
	dir, err := os.MkdirTemp(f.dir, "store-")
	if err != nil {
		f.b.Fatal(err)
	}
	writeRaw(f.b, filepath.Join(dir, filepath.FromSlash(benchRaw)), 0, domains)
	cmd := exec.Command(f.program, "--runner="+side, "--store="+dir, "--connect-to="+f.web.Addr(), "--host-delay=0s",
		"--concurrency="+strconv.Itoa(concurrency), "--progress=off", "--log-level=warn")
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+f.ca)
	if slices.Contains(pools, side) {
		cmd.Path, cmd.Args = os.Args[0], os.Args[:1]
		cmd.Env = append(cmd.Env, poolSettings+"="+pool{Web: f.web.Addr(), Dir: dir, Concurrency: concurrency, Durable: side == "durable"}.String())
	}
	f.web.ResetLog()
	start := time.Now()
	out, rss, err := measured(cmd)
	wall := time.Since(start)
	if err != nil {
		f.b.Fatalf("%s: %v\n%s", side, err, out[max(0, len(out)-2000):])
	}
	requests := f.web.Requests()
	if len(requests) != 2*domains {
		f.b.Fatalf("%s sent %d requests for %d domains, want two for each", side, len(requests), domains)
	}
	marks, err := filepath.Glob(filepath.Join(dir, "processing", "*", "*", "*", "*", "*"+hive.Success))
	if err != nil || len(marks) != domains {
		f.b.Fatalf("%s marked %d of %d domains (%v)", side, len(marks), domains, err)
	}
	f.same(side, filepath.Dir(marks[0]))
	first := requests[0].Start
	for _, r := range requests {
		if r.Start.Before(first) {
			first = r.Start
		}
	}
	p := cmd.ProcessState
	handshakes, _ := f.web.Handshakes()
	return cost{handshakes: handshakes, wall: wall, cpu: p.UserTime() + p.SystemTime(), first: first.Sub(start), rss: rss}
}

// measured runs a program to its end, and returns its output and the peak of its
// resident memory in bytes.
func measured(cmd *exec.Cmd) (out []byte, rss int64, err error) {
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	peak := resident.Watch(cmd.Process.Pid)
	err = cmd.Wait()
	return both.Bytes(), peak(), err
}

// same fails the benchmark when a side does not write what the first one wrote.
// Times may differ.
func (f *comparison) same(side, domain string) {
	f.b.Helper()
	objects := map[string]string{}
	entries, err := os.ReadDir(domain)
	if err != nil {
		f.b.Fatal(err)
	}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(domain, e.Name()))
		if err != nil {
			f.b.Fatal(err)
		}
		objects[e.Name()] = times.ReplaceAllString(string(body), "$1")
	}
	if f.objects == nil {
		f.objects = objects
	}
	if !maps.Equal(objects, f.objects) {
		f.b.Fatalf("%s writes %q, the first side wrote %q", side, objects, f.objects)
	}
}

var times = regexp.MustCompile(`("(?:collected_at|fetched_at|response_ms)": )[^,\n]*`)

// writeRaw writes a raw file with the n domains from, from+1, ….
func writeRaw(b *testing.B, path string, from, n int) {
	b.Helper()
	require.NoError(b, os.MkdirAll(filepath.Dir(path), 0o755))
	file, err := os.Create(path)
	require.NoError(b, err)
	w := bufio.NewWriter(file)
	_, _ = w.WriteString(`{"records":[`) // a bufio.Writer keeps its error for Flush
	for i := range n {
		if i > 0 {
			_, _ = w.WriteString(",\n")
		}
		_, _ = fmt.Fprintf(w, `{"raw_url":"https://site-%d.com/"}`, from+i)
	}
	_, _ = w.WriteString("]}")
	require.NoError(b, errors.Join(w.Flush(), file.Close()))
}

func median[T time.Duration | float64 | int64](values []T) T {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// BenchmarkSeed compares the whole program, from its start to its exit, with the
// two bare pools: "durable" syncs what it writes, "plain" only writes. The sides take
// turns, and a ratio is the median of the rounds' ratios: runs that follow each
// other see the same load of the machine. The goal is ≤1.05 of the durable pool's
// time at ≤1.10 of its CPU, and ≤1.10 at ≤1.25 of the plain one's.
func BenchmarkSeed(b *testing.B) {
	sides, dir := []string{"durable", "plain", "direct", "prism"}, b.TempDir()
	for _, latency := range []time.Duration{0, 50 * time.Millisecond} {
		for _, concurrency := range []int{64, 256} {
			b.Run(fmt.Sprintf("latency=%v/concurrency=%d", latency, concurrency), func(b *testing.B) {
				compare(b, newComparison(b, dir, latency), sides, *benchDomains, concurrency)
			})
		}
	}
}

func compare(b *testing.B, f *comparison, sides []string, domains, concurrency int) {
	b.Helper()
	f.run("plain", domains, concurrency) // the web signs its certificates at the first handshake
	b.ResetTimer()
	took := map[string][]cost{}
	for range b.N {
		for round := range *benchRounds {
			for i := range sides {
				side := sides[(i+round)%len(sides)]
				took[side] = append(took[side], f.run(side, domains, concurrency))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, side := range sides {
		var speed, rss, handshakes []float64
		for _, c := range took[side] {
			speed = append(speed, float64(domains)/c.wall.Seconds())
			rss = append(rss, float64(c.rss)/(1<<20))
			handshakes = append(handshakes, float64(c.handshakes)/float64(domains))
		}
		b.ReportMetric(median(speed), side+"-domains/s")
		b.ReportMetric(median(rss), side+"-peak-MiB")
		b.ReportMetric(median(handshakes), side+"-handshakes/domain")
		for _, pool := range pools {
			var wall, cpu []float64
			for i, c := range took[side] {
				bare := took[pool][i]
				wall = append(wall, c.wall.Seconds()/bare.wall.Seconds())
				cpu = append(cpu, c.cpu.Seconds()/bare.cpu.Seconds())
			}
			if !slices.Contains(pools, side) {
				b.ReportMetric(median(wall), side+"/"+pool+"-wall")
				b.ReportMetric(median(cpu), side+"/"+pool+"-cpu")
			}
		}
	}
}

// BenchmarkSeedFirstRequest measures the time from the program's start to its
// first request, with a small input. The goal is 1 s.
func BenchmarkSeedFirstRequest(b *testing.B) {
	dir := b.TempDir()
	for _, runner := range []string{"direct", "prism"} {
		b.Run(runner, func(b *testing.B) {
			f := newComparison(b, dir, 0)
			f.run("plain", 10, 10)
			b.ResetTimer()
			var first []time.Duration
			for range b.N {
				for range 2**benchRounds + 1 {
					first = append(first, f.run(runner, 10, 64).first)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(first).Seconds(), "s-to-first-request")
			b.ReportMetric(slices.Max(first).Seconds(), "s-at-worst")
		})
	}
}

// BenchmarkSeedSize shows whether the ratios and a domain's cost stay flat as inputs
// grow, and the peak of resident memory. The pools run too, because the file system's
// own cost grows with the number of folders in it. -most-domains=100000 takes
// minutes; with TMPDIR on a memory file system the disk plays no part.
func BenchmarkSeedSize(b *testing.B) {
	dir := b.TempDir()
	for _, domains := range []int{1000, *benchMost} {
		b.Run(fmt.Sprintf("domains=%d", domains), func(b *testing.B) {
			compare(b, newComparison(b, dir, 0), []string{"durable", "plain", "direct", "prism"}, domains, 64)
		})
	}
}

const (
	groupedFiles = 2
	groupedHosts = 500_000 // the same ones in each file: a million URL records
)

// BenchmarkGrouping moves a million URL records of half a million hosts to their
// lane, where they are merged by host. "extract" begins with the raw files, so
// it also parses JSON, works out domain ids and drops duplicates within a file.
// "shuffle" begins with finished batches, so it shows the runner's part alone.
func BenchmarkGrouping(b *testing.B) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // prism logs every stage
	beamlog.SetLogger(mute{})
	beam.Init()
	dir := b.TempDir()
	for i := range groupedFiles {
		writeRaw(b, filepath.Join(dir, filepath.FromSlash(strings.Replace(benchRaw, "0001", fmt.Sprintf("%04d", i+1), 1))), 0, groupedHosts)
	}
	for _, from := range []string{"extract", "shuffle"} {
		for _, runner := range []string{"direct", "prism"} {
			b.Run(from+"/"+runner, func(b *testing.B) {
				var speed []float64
				for range b.N {
					for range *benchRounds {
						speed = append(speed, groupedFiles*groupedHosts/group(b, runner, from, dir).Seconds())
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(speed), "records/s")
			})
		}
	}
}

func group(b *testing.B, runner, from, dir string) time.Duration {
	b.Helper()
	cfg := seed.Config{Lanes: 1, Lane: lane.Config{Job: seed.Job, RunID: ledger.NewRunID(time.Now()), Store: dir, Slots: 1, LogFormat: "json", LogLevel: slog.LevelError}}
	p, s := beam.NewPipelineWithRoot()
	var records beam.PCollection
	if from == "extract" {
		files, _ := seed.List(s, cfg)
		_, records, _ = seed.Extract(s, cfg, files)
	} else {
		records = beam.ParDo(s, &makeBatches{Files: groupedFiles, Hosts: groupedHosts}, beam.Impulse(s))
	}
	merged := beam.ParDo(s, &countHosts{Want: groupedHosts}, beam.GroupByKey(s, records))
	beam.GroupByKey(s, beam.AddFixedKey(s, merged)) // as in the job: prism 2.77 spins a core while a stage without an output works
	start := time.Now()
	_, err := beam.Run(b.Context(), runner, p)
	require.NoError(b, err)
	took := time.Since(start)
	require.NoError(b, lane.Close(cfg.Lane.RunID))
	return took
}

// makeBatches emits what Extract would emit for so many Files that name the same Hosts.
type makeBatches struct{ Files, Hosts int }

func (fn *makeBatches) ProcessElement(_ []byte, emit func(int, lane.Batch)) {
	const size = 1024 // as in transforms/seed
	for file := range fn.Files {
		for from := 0; from < fn.Hosts; from += size {
			records := make([]lane.URLRecord, 0, size)
			for i := from; i < min(from+size, fn.Hosts); i++ {
				records = append(records, lane.URLRecord{Host: "site-" + strconv.Itoa(i) + ".com", Label: "gov:sg", Index: i})
			}
			emit(0, lane.NewBatch("file-"+strconv.Itoa(file), records))
		}
	}
}

// countHosts merges a lane's URL records by host, as the visits do. It panics
// unless there are Want hosts, each with one URL record of each file.
type countHosts struct{ Want int }

func (fn *countHosts) ProcessElement(_ int, batches func(*lane.Batch) bool, emit func(int64)) {
	hosts := map[string]int64{}
	var b lane.Batch
	for batches(&b) {
		records, err := b.Records()
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
	if len(hosts) != fn.Want {
		panic(fmt.Sprintf("%d hosts arrived, want %d", len(hosts), fn.Want))
	}
	emit(int64(len(hosts)))
}

type mute struct{}

// Log implements Beam's log.Logger.
func (mute) Log(context.Context, beamlog.Severity, int, string) {}
