// Package cli is the command line: flags, environment and file, help, and the
// commands. Outside scripts rely on its flags, messages and exit codes. No promise: see docs/library.md.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/traces"
	"github.com/newsfork/seed-engine/pipeline/export"
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

// command is what the first word of the command line may name.
type command struct {
	name  string
	run   func(ctx context.Context, args []string, stdout, stderr io.Writer) error
	usage string
}

// commands are all of them, besides help and jobCommands.
func commands() []command {
	packed := func(name string) command {
		return command{name, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
			return packedCommand(ctx, name, args, stdout, stderr)
		}, packedUsage + controlFlags}
	}
	return []command{
		{"runs", runsCommand, runsUsage + controlFlags},
		{"dead-letters", deadLettersCommand, deadLettersUsage + controlFlags},
		{"alerts", alertsCommand, alertsUsage + controlFlags},
		{"domains", domainsCommand, domainsUsage + controlFlags},
		{"changes", changesCommand, changesUsage + controlFlags},
		{"export", exportCommand, fmt.Sprintf(exportUsage+controlFlags, usage.Or(export.Names()))},
		packed("materialize"), packed("compact"), packed("purge"),
		{"snapshot", snapshotCommand, "pipeline " + snapshotUsage + "\n\nmakes a news provider's snapshot of a saved page: the page, and what the provider reads from it as JSON. See docs/add-a-publisher.md.\n"},
		{"removals", removalsCommand, removalsUsage + controlFlags},
		{"bot-page", botPageCommand, botPageUsage},
		{"robots", robotsCommand, robotsUsage},
		{"version", versionCommand, "pipeline version    prints the program's version\n"},
	}
}

// jobCommands are those of one job. help shows them after the job's flags.
func jobCommands() []command {
	return []command{{"docs", docsCommand, docsUsage + controlFlags}, {"news", newsCommand, newsUsage}}
}

func commandNames() (names []string) {
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		if args[0] == "help" {
			return help(args[1:], stdout)
		}
		for _, c := range append(commands(), jobCommands()...) {
			if c.name == args[0] {
				err := c.run(ctx, args[1:], stdout, stderr)
				if errors.Is(err, flag.ErrHelp) {
					_, err = io.WriteString(stdout, c.usage)
				}
				return err
			}
		}
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
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

func versionCommand(_ context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) > 0 {
		return usage.Errorf("version takes nothing after it, not %q", args[0])
	}
	_, err := fmt.Fprintln(stdout, version())
	return err
}

func version() string {
	v := "devel"
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		v = b.Main.Version
	}
	return "seed-engine " + v
}
