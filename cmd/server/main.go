// Command server starts, shows and controls the crawl jobs: on request by HTTP, or
// on a cron schedule. See docs/server.md.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/newsfork/seed-engine/pipeline/cli"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/server"
)

// pipelineArg as the first argument makes this program run the pipeline command, so
// that `go run ./cmd/server` needs no second binary.
const pipelineArg = "pipeline"

func main() {
	args := os.Args[1:]
	launch.Worker(args, os.Stderr)
	if len(args) > 0 && args[0] == pipelineArg {
		os.Exit(cli.Main(args[1:], os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), launch.Endings()...)
	err := server.Main(ctx, args, pipelineArg, cli.Serve, cli.Descriptions())
	stop()
	os.Exit(cli.Exit("server", err, os.Stderr))
}
