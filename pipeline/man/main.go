// Command man writes the manual pages of the commands into a folder. No promise: see docs/library.md.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/newsfork/seed-engine/pipeline/cli"
	"github.com/newsfork/seed-engine/pipeline/option"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// noServer is in the place of the server, so that the page of `serve` is there too.
func noServer(context.Context, string, string, cli.ServerOptions, []option.Job) error { return nil }

// write makes the pages in the folder that args name. SOURCE_DATE_EPOCH is their date.
func write(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one folder for the pages")
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // others may read the pages
		return err
	}
	root := cli.Program{Serve: noServer}.Root()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Title: "SEED-ENGINE", Section: "1"}, args[0])
}
