package pipeline

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// RunIDVariable names the environment variable that gives a run its id: a
// server tells the id before the run has begun.
const RunIDVariable = "SEED_RUN_ID"

// LastWordsVariable names the environment variable with the number of an open
// file, into which a process that a server started writes why it failed: also
// when its run had not begun, and when it crashes.
const LastWordsVariable = "SEED_LAST_WORDS"

type lastWordsFile struct{ file *os.File }

// lastWords takes the server's file; the processes that this one starts do not
// get it.
func lastWords() lastWordsFile {
	fd, err := strconv.Atoi(os.Getenv(LastWordsVariable))
	if err != nil || fd < 3 || os.Unsetenv(LastWordsVariable) != nil {
		return lastWordsFile{}
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "last words")
	_ = debug.SetCrashOutput(f, debug.CrashOptions{}) // without it a crash is told on standard error alone
	return lastWordsFile{f}
}

func (w lastWordsFile) say(err error) {
	if w.file == nil || err == nil {
		return
	}
	_, _ = w.file.WriteString(ledger.Why(errors.New(oneLine(err)))) // standard error has it too
}

// ofOneRun are the flags that say what one run does: each start of a run has
// its own.
var ofOneRun = []string{"job", "country", "category", "date", "force", "until", "report", "progress", "config", "dry-run", "delete-verified",
	"watch", "streaming", "purge-provider", "enable-provider", "explain", "diff", "reparse", "purge-expired", "as-of"}

// Serve settles the options that all runs of a server share: flags in args,
// then the environment, then file, which has flags' values by their names. The
// environ gives a run in a child process the same options; as a flag, one would
// be refused by the jobs that have none of that name.
func Serve(ctx context.Context, args []string, file map[string]string, stderr io.Writer) (s store.Store, environ []string, log *slog.Logger, err error) {
	bad := func(err error) (store.Store, []string, *slog.Logger, error) { return nil, nil, nil, err }
	o := Options{Job: "seed"}
	o.flags = newFlags(&o)
	addBeamFlags(o.flags)
	if err := o.flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return bad(err)
		}
		return bad(usagef("%w; `pipeline help` lists the flags", err))
	}
	if o.flags.NArg() > 0 {
		return bad(usagef("%q: a server takes flags alone", o.flags.Arg(0)))
	}
	given := map[string]bool{}
	o.flags.Visit(func(g *flag.Flag) { given[g.Name] = true })
	for _, name := range ofOneRun {
		if _, inFile := file[name]; given[name] || inFile {
			return bad(usagef("--%s is for one run; say it when a run is started", name))
		}
	}
	if err := o.layers(given); err != nil {
		return bad(err)
	}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		if o.flags.Lookup(name) == nil {
			return bad(usagef("flags: unknown key %q; keys are the flags' names, `pipeline help` lists them", name))
		}
		if given[name] {
			continue
		}
		if err := o.flags.Set(name, file[name]); err != nil {
			return bad(usagef("flags: %q is no value for %s: %w", file[name], name, err))
		}
		given[name] = true
	}
	// What no run could begin with is refused now. Flags of other jobs than seed
	// are checked by the runs that they are for.
	if err := o.check(nil, stderr); err != nil {
		return bad(err)
	}
	if strings.HasPrefix(o.Store, "mem://") {
		return bad(usagef("--store=%s: each run is a process of its own and would see an empty one; use a directory or a bucket", o.Store))
	}
	given["store"] = true
	given["log-format"] = true
	environ = []string{"SEED_PROGRESS=off"}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		environ = append(environ, variable(name)+"="+o.flags.Lookup(name).Value.String())
	}
	log = lane.Logger(o.LogFormat, o.level())
	lane.TakeLibraryLines(log)
	s, err = openStore(ctx, &o, stderr)
	return s, environ, log, err
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "SEED_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
