// Command pipeline runs the crawl jobs. See `pipeline help`.
package main

import (
	"os"
	"runtime/debug"

	"github.com/newsfork/seed-engine/pipeline/cli"
	"github.com/newsfork/seed-engine/pipeline/launch"
)

// gcPercent is the value of GOGC where the environment has none. A crawl has a small
// heap and much garbage: with Go's default of 100 the collector took a tenth of the
// CPU and saved some 70 MB.
const gcPercent = 300

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	launch.Worker(os.Args[1:], os.Stderr)
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
