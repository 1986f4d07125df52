// Package launch takes one run from its lease to its report: it opens the store,
// acquires and renews the job's lease, submits the graph to a Beam runner, waits
// for its end, and writes how it ended. It also starts Beam's workers. No promise: see docs/library.md.
package launch

import (
	"flag"
	"path/filepath"
	"strings"

	// Beam's own flags are registered on flag.CommandLine by its packages.
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"
	"github.com/spf13/pflag"

	"github.com/newsfork/seed-engine/io/store/price"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Options are the options of a run.
type Options struct {
	pipeline.RunOptions
	Runner           string
	Strict           bool
	Report, Progress string
	SharedFilesystem bool
	Estimate         estimateForm
	Prices           string         // file of price lists
	Sample           bool           // the store is a copy of the sample bucket
	Fresh            bool           // a run makes the store's directory, which is not there
	Jobs             []pipeline.Job // with the values of their flags
	Flags            *option.Set    // all flags, Beam's too

	prices price.Lists // set by CheckEstimate
}

// Target returns the job that is run.
func (o *Options) Target() pipeline.Job {
	j, _ := pipeline.Find(o.Jobs, o.Job) // checked with the other options
	return j
}

// action returns what the flags ask for in place of a run; nil: a run.
func (o *Options) action() *pipeline.Action {
	if o.Estimate != "" {
		return &pipeline.Action{Preview: true, Do: o.estimate}
	}
	if j := o.Target(); j.Instead != nil {
		return j.Instead()
	}
	return nil
}

// Preview reports whether the program only prints what a run would do.
func (o *Options) Preview() bool {
	a := o.action()
	return a != nil && a.Preview
}

// Alone reports whether what is done in place of a run needs nothing that is stored.
func (o *Options) Alone() bool {
	a := o.action()
	return a != nil && a.Alone
}

// LaneConfig is the part of the options that the workers of every job get.
func (o *Options) LaneConfig() lane.Config {
	at := o.Store
	if abs, err := filepath.Abs(at); err == nil && at != "" && !strings.Contains(at, "://") {
		at = abs // workers have a working directory of their own
	}
	build := ""
	if o.Remote() { // elsewhere only this process is the worker
		build = lane.Build(o.Runner == "dataflow")
	}
	return lane.Config{Job: o.Job, Build: build, Store: at, Roots: o.Roots, Slots: o.Slots(), Limit: o.Limit,
		Web: o.WebConfig(o.Target().Agent), Polite: o.PoliteConfig(), Grace: grace, LogFormat: o.LogFormat, LogLevel: o.Level(),
		Leases: o.leases(), LeaseTTL: o.LeaseTTL}
}

// Public returns the options that a report may show: those that the user set,
// without anything that could be a secret.
func (o *Options) Public() map[string]any {
	out := map[string]any{}
	for name := range o.Flags.Given() {
		if p := o.Flags.Get(name); p != nil && !p.Has(option.Secret) {
			out[name] = o.Flags.Value(name)
		}
	}
	return out
}

// AddBeamFlags adds Beam's own flags to f, under their names. Their values go to
// flag.CommandLine, which the SDK copies into the job. The values of this
// program's flags never go there.
func AddBeamFlags(f *pflag.FlagSet) {
	flag.CommandLine.VisitAll(func(b *flag.Flag) {
		if f.Lookup(b.Name) == nil && !strings.HasPrefix(b.Name, "test.") {
			option.Lend(f, &beamFlag{b}, b.Name, "Beam: "+b.Usage)
		}
	})
}

// beamFlag passes a value on to Beam's own flag set, where it counts as given.
type beamFlag struct{ of *flag.Flag }

// String implements flag.Value.
func (b *beamFlag) String() string {
	if b.of == nil {
		return ""
	}
	return b.of.Value.String()
}

// Set implements flag.Value.
func (b *beamFlag) Set(v string) error { return flag.CommandLine.Set(b.of.Name, v) }

// IsBoolFlag lets a boolean flag of Beam be given without a value.
func (b *beamFlag) IsBoolFlag() bool {
	v, ok := b.of.Value.(interface{ IsBoolFlag() bool })
	return ok && v.IsBoolFlag()
}

// beam returns the value of one of Beam's flags.
func (o *Options) beam(name string) string { return o.Flags.Value(name) }
