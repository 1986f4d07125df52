// Command own is a Beam pipeline of a user's own with the stages of the seed job, on one machine or on Flink:
//
//	go run . --store=/srv/crawl --runner=flink --endpoint=localhost:8099 --environment_type=LOOPBACK
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/direct"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/flink"

	_ "github.com/newsfork/seed-engine/io/store/bucket" // --store=s3://…, r2://…, gs://…
	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

var (
	bucket = flag.String("store", "", "bucket or directory of raw files, which all workers see")
	runner = flag.String("runner", "direct", "direct or flink")
	to     = flag.String("connect-to", "", "address that all requests go to, for a try without the Internet")
	roots  = flag.String("ca", "", "file of the certificates to trust there")
)

func init() { register.Function2x0(finished) }

// finished is a stage of the user's own.
func finished(file string, o seed.FileOutcome) {
	fmt.Println("finished", filepath.Base(file), o.Finished)
}

func main() {
	flag.Parse()
	beam.Init() // on a cluster the workers run this program too, and stay here
	var ca []byte
	if *roots != "" {
		var err error
		if ca, err = os.ReadFile(*roots); err != nil {
			log.Fatal(err)
		}
	}
	cfg := seed.Config{Lanes: 4, Lane: lane.Config{Job: seed.Job, RunID: "own-" + time.Now().UTC().Format("20060102-150405"), Store: *bucket,
		Slots: 4, LogFormat: "text", LogLevel: 4, Web: web.Config{UserAgent: "YourBot/1.0 (+https://example.com/bot)", Concurrency: 32, ConnectTo: *to, RootCAs: ca}}}
	p, s := beam.NewPipelineWithRoot()
	files, listed := seed.List(s, cfg)
	read, records, extracted := seed.Extract(s, cfg, files)
	outcomes, network, visited := seed.Visit(s, cfg, records)
	beam.ParDo0(s, finished, outcomes)
	completed := seed.Complete(s, cfg, read, outcomes, network)
	lane.Total(s, cfg.Lane, listed, extracted, visited, completed)
	if _, err := beam.Run(context.Background(), *runner, p); err != nil {
		log.Fatal(err)
	}
	if err := lane.Close(cfg.Lane.RunID); err != nil { // what runs in this process
		log.Fatal(err)
	}
}
