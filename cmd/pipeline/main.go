// Command pipeline runs the crawl jobs. See `pipeline help`.
package main

import (
	"os"
	"runtime/debug"

	"github.com/newsfork/seed-engine/pipeline"
)

// collectAt is Go's GOGC. A crawl holds little and throws much away: at Go's
// own 100 the collector took a tenth of the CPU, to spare some 70 MB.
const collectAt = 300

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	pipeline.Worker(os.Args[1:], os.Stderr)
	os.Exit(pipeline.Main(os.Args[1:], os.Stdout, os.Stderr))
}
