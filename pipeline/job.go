package pipeline

import (
	"context"
	"flag"
	"io"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

// job is one of the program's jobs, as the command line knows it. A new job is
// a file with its graph and its own flags, and a line in jobs.
type job struct {
	name string
	// flags mean something to this job, but not to every job. On the command
	// line of another they are refused: --dry-run in front of a seed run would
	// else be a run.
	flags []string
	// defaults are the job's where they differ from the flags' own.
	defaults map[string]string
	// define adds the flags that this job alone has; nil: none.
	define func(*Options, *flag.FlagSet)
	// sql says that the job keeps its state in --db, and reads no raw files.
	sql bool
	// check refuses what the job cannot run with; nil: nothing.
	check func(*Options) error
	// demo lays the job's simulated sites out for --web=demo; nil: seed's are there.
	demo func(Options, *webtest.Web) error
	// extend adds to the run report what only this job has; nil: nothing.
	extend func(context.Context, store.Store, *ledger.Report) error
	// counts and unit are what the live line shows: a counter of the report, and its name.
	counts, unit string
	// live are more counters that the live line shows, each with a word for it.
	live [][2]string
	run  func(ctx context.Context, o Options, stdout, stderr io.Writer) error
	// reopen lets the next run do a dead letter's input again; nil: by its .success.
	reopen func(ctx context.Context, o Options, s store.Store, letters []ledger.DeadLetter) error
}

// crawling are the flags of jobs that send requests.
var crawling = []string{"lanes", "concurrency", "rate", "host-delay", "max-crawl-delay", "web", "connect-to", "allow-private"}

// partitioned are the filters of jobs that read the bucket's Hive partitions.
var partitioned = []string{"country", "category", "date"}

// jobs is a function, not a variable: a job's run looks itself up in it.
func jobs() []job { return []job{seedJob(), docsJob(), catalogJob(), newsJob(), migrateJob()} }

func jobNames() []string {
	var names []string
	for _, j := range jobs() {
		names = append(names, j.name)
	}
	return names
}

func jobNamed(name string) (job, bool) {
	all := jobs()
	i := slices.IndexFunc(all, func(j job) bool { return j.name == name })
	if i < 0 {
		return job{}, false
	}
	return all[i], true
}

func noJob(name string) error {
	return usagef("--job=%s: there is no such job; use %s", name, or(jobNames()))
}

// or joins words for a person: "a, b or c".
func or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// foreign are the flags that mean something to other jobs only.
func (j job) foreign() []string {
	var out []string
	for _, other := range jobs() {
		for _, name := range other.flags {
			if !slices.Contains(j.flags, name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}
