// Package cli is the command line: flags, environment and file, help, and the
// commands. Outside scripts rely on its flags, messages and exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/traces"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// Exit codes of the command line.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitDisallowed  = 3 // robots: the site's robots.txt disallows the URL
	ExitStrict      = 4 // with --strict: complete, but with dead letters
	ExitInterrupted = 130
)

// Main is the program: it runs the command that args name and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	words := lastWords()
	err := dispatch(context.Background(), args, printable.Writer(stdout), stderr)
	words.say(err)
	return Exit("pipeline", err, stderr)
}

// Exit writes in one line, without secrets, how a program ended, and returns its
// exit code.
func Exit(program string, err error, stderr io.Writer) int {
	if err == nil {
		return ExitOK
	}
	if _, werr := fmt.Fprintf(stderr, "%s: %s\n", program, printable.Line(ledger.Redact(usage.OneLine(err)))); werr != nil {
		return ExitFailed
	}
	switch {
	case usage.Is(err):
		return ExitUsage
	case errors.Is(err, errDisallowed):
		return ExitDisallowed
	case errors.Is(err, launch.ErrInterrupted), errors.Is(err, errExportInterrupted):
		return ExitInterrupted
	case errors.Is(err, launch.ErrStrict), errors.Is(err, launch.ErrNotDone):
		return ExitStrict
	}
	return ExitFailed
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "runs":
			return runsCommand(ctx, args[1:], stdout, stderr)
		case "dead-letters":
			return deadLettersCommand(ctx, args[1:], stdout, stderr)
		case "alerts":
			return alertsCommand(ctx, args[1:], stdout, stderr)
		case "domains":
			return domainsCommand(ctx, args[1:], stdout, stderr)
		case "changes":
			return changesCommand(ctx, args[1:], stdout, stderr)
		case "embed", "search", "mcp":
			return searchCommand(ctx, args[0], args[1:], stdout, stderr)
		case "export":
			return exportCommand(ctx, args[1:], stdout, stderr)
		case "snapshot":
			return snapshotCommand(ctx, args[1:], stdout)
		case "materialize", "compact", "purge":
			return packedCommand(ctx, args[0], args[1:], stdout, stderr)
		case "removals":
			return removalsCommand(ctx, args[1:], stdout, stderr)
		case "bot-page":
			return botPageCommand(ctx, args[1:], stdout)
		case "robots":
			return robotsCommand(ctx, args[1:], stdout)
		case "news":
			return newsCommand(ctx, args[1:], stdout)
		case "version":
			if len(args) > 1 {
				return usage.Errorf("version takes nothing after it, not %q", args[1])
			}
			_, err := fmt.Fprintln(stdout, version())
			return err
		case "help":
			return help(args[1:], stdout)
		}
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, errHelp) {
		return help(nil, stdout)
	}
	if err != nil {
		return err
	}
	if err := o.Reach(ctx); err != nil {
		return err
	}
	endTraces, err := traces.Start(ctx, version())
	if err != nil {
		return usage.Errorf("%w", err)
	}
	defer endTraces()
	return launch.Run(ctx, o.Options, stdout, stderr)
}

func version() string {
	v := "devel"
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		v = b.Main.Version
	}
	return "seed-engine " + v
}
