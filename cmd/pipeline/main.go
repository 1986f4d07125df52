// Command pipeline is the one program: it runs the crawl jobs, and serves. See `pipeline help`.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/newsfork/seed-engine/pipeline/cli"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/server"
)

// The collector's settings where the environment has no GOGC. Garbage may take as much
// as what is in use, and spare bytes more. A crawl of some thousand hosts has a small
// heap and much garbage: with Go's default alone the collector took a tenth of the CPU.
// A multiple of what is in use that is large enough there wastes hundreds of megabytes
// with a million hosts; only under a GOMEMLIMIT it wastes nothing.
const (
	gcPercent      = 100
	spare          = 40 << 20
	limitedPercent = 300
)

func main() {
	var ballast []byte // counts as in use; it is never touched, so it has addresses and no memory
	switch {
	case os.Getenv("GOGC") != "":
	case os.Getenv("GOMEMLIMIT") != "":
		debug.SetGCPercent(limitedPercent)
	default:
		ballast = make([]byte, spare)
		debug.SetGCPercent(gcPercent)
	}
	launch.Worker(os.Args[1:], os.Stderr)
	code := cli.Program{Serve: server.Main}.Main(os.Args[1:], os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	os.Exit(code)
}
