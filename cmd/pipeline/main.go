// Command pipeline runs the crawl jobs. See `pipeline help`.
package main

import (
	"os"

	"github.com/newsfork/seed-engine/pipeline"
)

func main() {
	pipeline.Worker(os.Args[1:], os.Stderr)
	os.Exit(pipeline.Main(os.Args[1:], os.Stdout, os.Stderr))
}
