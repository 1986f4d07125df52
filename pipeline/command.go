// Package pipeline builds, runs and reports the jobs: one file a job with its
// graph, and beside them the command line that outside scripts rely on.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
)

// Exit codes of the command line.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitStrict      = 4 // complete, but with dead letters, under --strict
	ExitInterrupted = 130
)

// usageError is bad usage, found before anything is touched: exit code 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage tells Exit that it is one; the server's program has its own.
func (e *usageError) Usage() {}

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// errInterrupted ends a run that a signal or a cancel stopped: exit code 130.
var errInterrupted = errors.New("interrupted: what was done is kept, the same command goes on from there")

// errStrict ends a complete run with dead letters under --strict: exit code 4.
var errStrict = errors.New("the run is complete, but it left dead letters: see `dead-letters list`")

// errNotDone ends a complete docs run that left providers held, unreachable or
// out of budget under --strict: exit code 4.
var errNotDone = errors.New("the run is complete, but some providers are not done: their rows of the report say why; the next run asks them again")

// Main is the program: it runs the command that args name and gives the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	words := lastWords()
	err := dispatch(context.Background(), args, printable.Writer(stdout), stderr)
	words.say(err)
	return Exit("pipeline", err, stderr)
}

// Exit tells how a program ended, in one line and without secrets, and gives
// its exit code.
func Exit(program string, err error, stderr io.Writer) int {
	if err == nil {
		return ExitOK
	}
	if _, werr := fmt.Fprintf(stderr, "%s: %s\n", program, printable.Line(ledger.Redact(oneLine(err)))); werr != nil {
		return ExitFailed
	}
	var usage interface{ Usage() }
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, errInterrupted):
		return ExitInterrupted
	case errors.Is(err, errStrict), errors.Is(err, errNotDone):
		return ExitStrict
	}
	return ExitFailed
}

// oneLine is a message as scripts and schedulers want it; the runners' and the
// YAML library's span several, and joined errors have a line each.
func oneLine(err error) string {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var each, lines []string
		for _, e := range several.Unwrap() {
			each, lines = append(each, e.Error()), append(lines, oneLine(e))
		}
		if strings.Join(each, "\n") == err.Error() {
			return strings.Join(lines, "; ")
		}
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "runs":
			return runsCommand(ctx, args[1:], stdout, stderr)
		case "dead-letters":
			return deadLettersCommand(ctx, args[1:], stdout, stderr)
		case "snapshot":
			return snapshotCommand(ctx, args[1:], stdout)
		case "version":
			if len(args) > 1 {
				return usagef("version takes nothing after it, not %q", args[1])
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
	if err := o.reach(ctx); err != nil {
		return err
	}
	j, _ := jobNamed(o.Job) // checked with the other options
	return j.run(ctx, o, stdout, stderr)
}

func version() string {
	v := "devel"
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		v = b.Main.Version
	}
	return "seed-engine " + v
}
