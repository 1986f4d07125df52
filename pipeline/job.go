// Package pipeline has the graph of each job, one file each, and the list of the jobs. No promise: see docs/library.md.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/estimate"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/testdata"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Jobs is the list of jobs. A new job is a file with its graph and its own
// flags, and its line here.
var Jobs = []func() Job{seedJob, docsJob, catalogJob, newsJob, migrateJob}

// Job is one of the program's jobs, and the values that one command line gives
// to the job's own flags.
type Job struct {
	ledger.Job // the part that servers and reports use
	// Agent is the job's User-Agent; "": the program's own.
	Agent string
	// SQL says that the job keeps its state in --db.
	SQL bool
	// Keeps are the prefixes of the store, and Tables those of --db, in which runs leave what they found.
	Keeps, Tables []string
	// Rows are the kinds of rows that it finds.
	Rows []rows.What
	// Removal says what it keeps of a source; nil: it has no sources. Knows refuses a source that is misspelt; nil: one of
	// which nothing is kept.
	Removal *removal.What
	// Policies are those of its providers, sites or publishers, which people change on a server; nil: it has none.
	Policies option.Policies
	Knows    func(ctx context.Context, o *RunOptions, s store.Store, name string) error
	// Audit calls found for what is inconsistent in what runs left, and how to mend it, from several goroutines; d may be nil. nil: nothing.
	Audit func(ctx context.Context, s store.Store, d *db.DB, found func(what, key, mend string)) error
	// Commands are its own commands, next to those that every job has.
	Commands []Command
	told     *option.Set // by Told

	// Offline reports whether its flags ask for a run without requests; nil: there is none.
	Offline func() bool
	// Input describes the objects of the store that the job reads; nil: none.
	Input *input

	// Options tells the options that mean something to this job, but not to every job; nil: none.
	Options func(*option.Set)
	// Check refuses options with which the job cannot run; nil: nothing.
	Check func(*RunOptions) error
	// Instead returns what the job's flags ask for in place of a run; nil: only runs.
	Instead func() *Action
	// Prepare and Accept refuse what cannot be run: Prepare before anything is
	// created, Accept when the store is open; nil: nothing. Accept may set what
	// follows from the input: see RunOptions.LanesByInput.
	Prepare func(context.Context, *RunOptions) error
	Accept  func(context.Context, store.Store, *RunOptions) error
	// Offer returns the names that the job's options choose from, by option, after Check and Accept; nil: none.
	Offer func(context.Context, store.Store, *RunOptions) (map[string][]string, error)
	// Demo adds the job's simulated sites to the simulated web, for --web=demo.
	// DemoNotice says what is different with them; nil: the seed job's sites.
	Demo       func(*webtest.Web)
	DemoNotice string

	// Config makes the complete configuration of the workers: they see none of
	// the launcher's flags, files or environment. Build makes the graph from it.
	Config func(c RunOptions, l lane.Config, forceID string) any
	Build  func(s beam.Scope, config any)
	// Watch is how the job watches for new files; nil: it cannot.
	Watch *watch

	// LiveCount and Unit are what the live line shows: a counter of the report, and its name.
	LiveCount, Unit string
	// Live are more counters that the live line shows, each with its label.
	Live [][2]string
	// NotDone is the counter of what a complete run left for the next one. With
	// --strict such a run fails; "": no counter.
	NotDone string
	// Failure says by the counts why a run that reached its end has failed all
	// the same; nil: it has not.
	Failure func(ledger.Counts) error
	// Unmet says why a run that came to its end did not do what its flags asked for, so that it
	// has failed; nil: it did.
	Unmet func(ctx context.Context, runID string) error
	// Extend adds this job's own part to the run report. Write prints more than
	// the report's table; nil: nothing.
	Extend func(context.Context, store.Store, *ledger.Report) error
	Write  func(ctx context.Context, s store.Store, runID string, stdout io.Writer) error
	// Estimate says what a run will cost. Afterwards says it for what a run turned out to
	// do. nil: as much as the last runs.
	Estimate   func(context.Context, RunOptions, store.Store, estimate.Past) (estimate.Estimate, error)
	Afterwards func(ledger.Report, estimate.Past) estimate.Estimate
	// Reopen lets the next run do the input of dead letters again; nil: by removing its .success.
	Reopen func(context.Context, RunOptions, store.Store, []ledger.DeadLetter) error
}

// Command is a command of one job.
type Command struct {
	Under, Use, Short, Long string   // Under is the command below which it is
	Stored                  bool     // it opens the store
	Asks                    bool     // it sends requests, but those of a run
	Takes                   []string // options of runs that it takes, next to those of the store and of requests; db: the job's database
	Options                 func(*option.Set)
	Do                      func(ctx context.Context, c *RunOptions, s store.Store, words []string, stdout, stderr io.Writer) error
}

// Action is something to do in place of a run.
type Action struct {
	Preview bool // it prints what a run would do, and touches nothing
	Alone   bool // it needs nothing that is stored: without a store it makes neither ./out nor a database
	Do      func(ctx context.Context, c RunOptions, s store.Store, stdout io.Writer) error
}

// watch is how a job watches for new files: with a batch run for the new ones,
// or with one unbounded graph.
type watch struct {
	Tracker func(RunOptions) Tracker
	// Config is Job.Config for a batch of these files.
	Config func(c RunOptions, l lane.Config, files []string) any
	// Stream is the unbounded graph. maxCall is the longest time that one call of its lister may take.
	Stream func(s beam.Scope, c RunOptions, l lane.Config, maxCall time.Duration)
}

// Tracker finds the files that are new or changed.
type Tracker struct {
	// List lists the store once. due then returns the names of the files that a
	// batch should read, at most that many.
	List func(ctx context.Context, s store.Store) (due func(now time.Time, maxFiles int) []string, err error)
	// Pause is how long to wait before the next listing.
	Pause func() time.Duration
}

// costed are the options of jobs of which --estimate says what a run will cost.
var costed = []string{"estimate", "prices"}

// requesting are the options of jobs that send requests, but for the figures that some take from their files.
var requesting = []string{"lanes", "adaptive-delay", "server-delay", "cdn-rate", "turns", "politeness", "bot", "contact", "web", "connect-to", "allow-private", "limit", "events"}

// partitioned are the filters of jobs that read the bucket's Hive partitions.
var partitioned = []string{"country", "category", "date"}

// All returns the jobs, each with its own flags, which nothing has set yet.
func All() []Job {
	var all []Job
	for _, make := range Jobs {
		j := make()
		for _, w := range j.Rows {
			if w.Find != nil {
				j.Finds = append(j.Finds, *w.Find)
			}
		}
		if j.Removal != nil {
			j.Commands = append(j.Commands, j.rm())
		}
		all = append(all, j)
	}
	return all
}

// Names returns the jobs' names.
func Names() []string {
	var names []string
	for _, j := range All() {
		names = append(names, j.Name)
	}
	return names
}

// NoJob is the error for the name of a job that does not exist.
func NoJob(name string) error {
	return usage.Errorf("--job=%s: there is no such job; use %s", name, usage.Or(Names()))
}

// Told returns the jobs, and tells their options in a set that has the shared ones.
func Told(s *option.Set) []Job {
	all := All()
	for i, j := range all {
		all[i].told = s
		if s.Begin(j.Name); j.Options != nil {
			j.Options(s)
		}
	}
	s.Begin("")
	return all
}

// Takes reports whether an option means something to a job that Told returned.
func (j Job) Takes(name string) bool { return j.told.Get(name).Means(j.Name) }

// Named returns the job of that name.
func Named(name string) (Job, bool) { return Find(All(), name) }

// Find returns the job of that name among all.
func Find(all []Job, name string) (Job, bool) {
	i := slices.IndexFunc(all, func(j Job) bool { return j.Name == name })
	if i < 0 {
		return Job{}, false
	}
	return all[i], true
}

// Filters identifies the input of a forced run, so that only the same command
// resumes a forced run that was killed.
func (j Job) Filters(c RunOptions) string {
	if j.Input == nil {
		return j.Name
	}
	return c.filterHash()
}

// input describes the objects that a job reads.
type input struct {
	Name string // what a person calls one of them
	List string // tells a person how to see which ones exist
	Read func(key string) (hive.Raw, bool)
}

// noMatch is the error for filters that no object matches.
func (in *input) noMatch(c *RunOptions) error {
	return usage.Errorf("no %s matches --country=%q --category=%q --date=%q; %s", in.Name, c.Country, c.Category, c.Date, in.List)
}

// SampleMatches refuses filters that match nothing in the sample bucket, nor in
// an earlier copy of it, before a copy is made.
func (in *input) SampleMatches(c *RunOptions) error {
	bucket, err := fs.Sub(testdata.Bucket, "bucket")
	if err != nil {
		return err
	}
	for _, at := range []fs.FS{bucket, os.DirFS(c.Store)} {
		found := false
		for _, root := range []string{"datasets", "research"} {
			err := fs.WalkDir(at, root, func(key string, _ fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) {
					return fs.SkipDir
				}
				if err != nil {
					return err
				}
				if r, ok := in.Read(key); ok && c.wants(r.Partition) {
					found = true
					return fs.SkipAll
				}
				return nil
			})
			if err != nil {
				return usage.Errorf("reading ./%s: %w", c.Store, err)
			}
		}
		if found {
			return nil
		}
	}
	return in.noMatch(c)
}

// LiveText returns the live line's text for a run so far. It is short, because a
// line that is wider than the terminal cannot be overwritten.
func (j Job) LiveText(t ledger.Tally) string {
	if len(j.Live) == 0 {
		return fmt.Sprintf("%d %s", t.Counts[j.LiveCount], j.Unit)
	}
	var b strings.Builder
	for i, c := range j.Live {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", c[1], t.Counts[c[0]])
	}
	return b.String()
}

// reopenIn returns the Reopen of a job whose database has what the next run does.
func reopenIn(migrate func(context.Context, *db.DB) error, reopen func(context.Context, *db.DB, []ledger.DeadLetter) error) func(context.Context, RunOptions, store.Store, []ledger.DeadLetter) error {
	return func(ctx context.Context, o RunOptions, _ store.Store, letters []ledger.DeadLetter) error {
		if file, missing := db.Missing(o.DB); missing {
			return usage.Errorf("no run has used %s: add the --db of the runs that left these dead letters", file)
		}
		d, err := openDB(ctx, o.DB, migrate)
		if err != nil {
			return err
		}
		return errors.Join(reopen(ctx, d, letters), d.Close())
	}
}
