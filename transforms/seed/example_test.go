package seed_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

func init() { register.Function2x0(report) }

// report is a stage of the user's own.
func report(file string, o seed.FileOutcome) { fmt.Println(filepath.Base(file), o.Finished) }

// A pipeline that adds a stage to those of the seed job. pipeline/e2etest/flink/testdata/own is such a program
// for Flink too.
func Example() {
	sim := webtest.New(webtest.Options{}) // a program of your own needs neither ConnectTo nor RootCAs
	if err := sim.Start(); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	raw := filepath.Join(dir, "datasets/country=sg/category=news/date=2026-01-28")
	if err := os.MkdirAll(raw, 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(raw, "raw_0001.json"), []byte(rawFile("https://urlset-1.com/news", "https://gzip-2.org/")), 0o644); err != nil {
		log.Fatal(err)
	}

	cfg := seed.Config{Lanes: 1, Lane: lane.Config{Job: seed.Job, RunID: "example", Store: dir, Slots: 1, LogFormat: "text", LogLevel: 12,
		Web: web.Config{UserAgent: "YourBot/1.0", Concurrency: 8, ConnectTo: sim.Addr(), RootCAs: sim.CAPEM()}}}
	p, s := beam.NewPipelineWithRoot()
	files, listed := seed.List(s, cfg)
	read, records, extracted := seed.Extract(s, cfg, files)
	outcomes, network, visited := seed.Visit(s, cfg, records)
	beam.ParDo0(s, report, outcomes)
	completed := seed.Complete(s, cfg, read, outcomes, network)
	lane.Total(s, cfg.Lane, listed, extracted, visited, completed)
	if _, err := beam.Run(context.Background(), "direct", p); err != nil {
		log.Fatal(err)
	}
	if err := lane.Close(cfg.Lane.RunID); err != nil {
		log.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(raw, "raw_0001.json.success"))
	fmt.Println(err, sim.Close(), os.RemoveAll(dir))
	// Output:
	// raw_0001.json 2
	// <nil> <nil> <nil>
}
