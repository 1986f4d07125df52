// Command server starts the crawl jobs by HTTP or
// cron, shows them and steers them. See docs/server.md.
package main

import (
	"os"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/server"
)

// asPipeline as the first argument makes this program the pipeline: so
// `go run ./cmd/server` needs no second binary.
const asPipeline = "pipeline"

func main() {
	args := os.Args[1:]
	pipeline.Worker(args, os.Stderr)
	if len(args) > 0 && args[0] == asPipeline {
		os.Exit(pipeline.Main(args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(pipeline.Exit("server", server.Main(args, asPipeline, pipeline.Serve), os.Stderr))
}
