package pipeline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/webtest"
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
	ledger.Job // what servers and reports know of it
	// Shared are the common flags that mean something to this job, but not to
	// every job. On the command line of another job they are refused, as the
	// job's own flags are: --dry-run in front of a seed run would else be a run.
	Shared []string
	// OfOneRun are the job's own flags that say what one run does: a server does
	// not take them for all its runs.
	OfOneRun []string
	// Defaults are the job's where they differ from the flags' own.
	Defaults map[string]string
	// SQL says that the job keeps its state in --db.
	SQL bool
	// Input are the objects of the store that the job reads; nil: none.
	Input *Input

	// Define adds the flags that this job alone has; nil: none.
	Define func(*flag.FlagSet)
	// Check refuses what the job cannot run with, from the options alone; nil: nothing.
	Check func(*Common) error
	// Instead is what the job's flags ask for in place of a run; nil: only runs.
	Instead func() *Action
	// Prepare refuses what cannot be run before anything is made, Accept once the
	// store is open; nil: nothing.
	Prepare func(context.Context, *Common) error
	Accept  func(context.Context, store.Store, *Common) error
	// Demo lays the job's simulated sites out for --web=demo, and DemoNotice says
	// what is different with them; nil: the seed job's are there.
	Demo       func(*webtest.Web)
	DemoNotice string

	// Config is what the workers get: all of it, for they have none of the
	// launcher's flags, files or environment. Build makes the graph of it.
	Config func(c Common, l lane.Config, forceID string) any
	Build  func(s beam.Scope, config any)
	// Watch is how the job takes new files as they come; nil: it does not.
	Watch *Watch

	// Counts and Unit are what the live line shows: a counter of the report, and its name.
	Counts, Unit string
	// Live are more counters that the live line shows, each with a word for it.
	Live [][2]string
	// NotDone counts what a complete run left for the next one, to which --strict
	// objects; "": nothing.
	NotDone string
	// Failure is why a run that came to its end has failed all the same, by its
	// counts; nil: it has not.
	Failure func(ledger.Counts) error
	// Extend adds to the run report what only this job has, Write prints more
	// than the report's table; nil: nothing.
	Extend func(context.Context, store.Store, *ledger.Report) error
	Write  func(ctx context.Context, s store.Store, runID string, stdout io.Writer) error
	// Reopen lets the next run do a dead letter's input again; nil: by its .success.
	Reopen func(context.Context, Common, store.Store, []ledger.DeadLetter) error
}

// Action is what is done in place of a run.
type Action struct {
	Preview bool // it prints what a run would do, and touches nothing
	Do      func(ctx context.Context, c Common, s store.Store, stdout io.Writer) error
}

// Watch is how a job takes new files as they come: a batch for what is new, or
// one unbounded graph.
type Watch struct {
	Tracker func(Common) Tracker
	// Config is Job.Config for a batch of these files.
	Config func(c Common, l lane.Config, files []string) any
	// Stream is the unbounded graph. hold is how long its lister may stay in one call.
	Stream func(s beam.Scope, c Common, l lane.Config, hold time.Duration)
}

// Tracker finds the files that are new or changed.
type Tracker struct {
	// List lists the store once. due then gives the names of the files that a
	// batch should take, so many at most.
	List func(ctx context.Context, s store.Store) (due func(now time.Time, most int) []string, err error)
	// Pause is how long to wait before the next listing.
	Pause func() time.Duration
}

// crawling are the flags of jobs that send requests.
var crawling = []string{"lanes", "concurrency", "rate", "host-delay", "max-crawl-delay", "web", "connect-to", "allow-private"}

// partitioned are the filters of jobs that read the bucket's Hive partitions.
var partitioned = []string{"country", "category", "date"}

// forceField is --force in a request to a server.
var forceField = ledger.Field{Name: "force", Label: "Do again what is done", Flag: "force", Kind: "yes", Wrong: "write true or false"}

// All are the jobs, each with flags of its own that nothing has set yet.
func All() []Job {
	var all []Job
	for _, make := range Jobs {
		all = append(all, make())
	}
	return all
}

// Names are the jobs' names.
func Names() []string {
	var names []string
	for _, j := range All() {
		names = append(names, j.Name)
	}
	return names
}

// NoJob says that there is no job of that name.
func NoJob(name string) error {
	return usage.Errorf("--job=%s: there is no such job; use %s", name, usage.Or(Names()))
}

// Descriptions are the jobs for those who do not run them.
func Descriptions() []ledger.Job {
	var all []ledger.Job
	for _, j := range All() {
		all = append(all, j.Job)
	}
	return all
}

// Named is the job of that name.
func Named(name string) (Job, bool) { return Find(All(), name) }

// Find is the job of that name among all.
func Find(all []Job, name string) (Job, bool) {
	i := slices.IndexFunc(all, func(j Job) bool { return j.Name == name })
	if i < 0 {
		return Job{}, false
	}
	return all[i], true
}

// Flags are the flags that mean something to this job, but not to every job.
func (j Job) Flags() []string {
	f := flag.NewFlagSet(j.Name, flag.ContinueOnError)
	if fresh, ok := Named(j.Name); ok && fresh.Define != nil { // to define a flag sets its value
		fresh.Define(f)
	}
	out := slices.Clone(j.Shared)
	f.VisitAll(func(g *flag.Flag) { out = append(out, g.Name) })
	return out
}

// Foreign are the flags that mean something to other jobs only.
func (j Job) Foreign() []string {
	own := j.Flags()
	var out []string
	for _, other := range All() {
		for _, name := range other.Flags() {
			if !slices.Contains(own, name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Filters names what a forced run is about, so that one that was killed is
// resumed by the same command only.
func (j Job) Filters(c Common) string {
	if j.Input == nil {
		return j.Name
	}
	return c.FilterHash()
}

// Input are the objects that a job reads.
type Input struct {
	Name string // of one of them, for a person
	List string // how a person sees which there are
	Read func(key string) (hive.Raw, bool)
}

// NoMatch says that the filters let none through.
func (in *Input) NoMatch(c *Common) error {
	return usage.Errorf("no %s matches --country=%q --category=%q --date=%q; %s", in.Name, c.Country, c.Category, c.Date, in.List)
}

// SampleMatches looks for the filters in the sample bucket and in an earlier
// copy of it, before a copy is made.
func (in *Input) SampleMatches(c *Common) error {
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
				if r, ok := in.Read(key); ok && c.Wants(r.Partition) {
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
	return in.NoMatch(c)
}

// LiveText is what the live line says of a run so far. It is short, for a line
// that is wider than the terminal cannot be written over.
func (j Job) LiveText(t ledger.Tally) string {
	if len(j.Live) == 0 {
		return fmt.Sprintf("%d %s", t.Counts[j.Counts], j.Unit)
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
