// Command server is `pipeline serve` as a program of its own, for scripts that start it.
package main

import (
	"os"
	"strings"

	"github.com/newsfork/seed-engine/pipeline/cli"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/server"
)

func main() {
	args := os.Args[1:]
	launch.Worker(args, os.Stderr)
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && !strings.HasPrefix(args[0], "--job=") { // else a run or a command, which the server started
		args = append([]string{"serve"}, args...)
	}
	os.Exit(cli.Program{Serve: server.Main}.Main(args, os.Stdout, os.Stderr))
}
