package launch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/price"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/estimate"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// estimateForm is the value of --estimate: "" for a run, or how the estimate is written.
type estimateForm string

// String implements flag.Value.
func (f *estimateForm) String() string { return string(*f) }

// IsBoolFlag lets the flag be given without a value.
func (f *estimateForm) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (f *estimateForm) Set(v string) error {
	switch v {
	case "true":
		v = "text"
	case "false":
		v = ""
	case "text", "json":
	default:
		return fmt.Errorf("use --estimate, or --estimate=json")
	}
	*f = estimateForm(v)
	return nil
}

// CheckEstimate refuses what does not go with --estimate, and prices that cannot be read.
func (o *Options) CheckEstimate() error {
	switch j := o.Target(); {
	case o.Estimate == "":
	case o.Watch > 0:
		return usage.Errorf("--watch and --estimate: an estimate is for one run; leave --watch out")
	case j.Instead != nil && j.Instead() != nil:
		return usage.Errorf("--estimate says what a run costs, and another flag asks for something in place of a run; give one of them")
	}
	o.prices = price.Public()
	if strings.Contains(o.Store, "endpoint=") { // not Amazon's
		delete(o.prices, "s3")
	}
	if o.Prices == "" {
		return nil
	}
	lists, err := readPrices(o.Prices)
	if err != nil {
		return usage.Errorf("--prices=%s: %w", o.Prices, err)
	}
	if _, ok := lists[price.Scheme(o.Store)]; !ok {
		return usage.Errorf("--prices=%s has no prices for %s:// stores; add them under %q, or leave --prices out", o.Prices, price.Scheme(o.Store), price.Scheme(o.Store)+":")
	}
	o.prices = lists
	return nil
}

func readPrices(name string) (price.Lists, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var lists price.Lists
	if err := yamltext.Strict(b, &lists); err != nil {
		return nil, fmt.Errorf("it is no list of prices (docs/operations.md shows one): %w", err)
	}
	if err := lists.Check(); err != nil {
		return nil, err
	}
	for scheme, l := range lists {
		l.Name, l.Source, l.AsOf = cmp.Or(l.Name, name), cmp.Or(l.Source, name), cmp.Or(l.AsOf, "no date")
		lists[scheme] = l
	}
	return lists, nil
}

// estimate prints what a run will cost. It reads the store, and neither writes to it nor
// sends a request to a site.
func (o *Options) estimate(ctx context.Context, c pipeline.RunOptions, s store.Store, stdout io.Writer) error {
	reports, err := pastReports(ctx, s, o.Job)
	if err != nil {
		return err
	}
	past := o.past(reports)
	past.Lanes = float64(c.Lanes)
	e, ok := estimate.FromRuns(past)
	if of := o.Target().Estimate; of != nil {
		if e, err = of(ctx, c, s, past); err != nil {
			return err
		}
	} else if !ok {
		return usage.Errorf("--estimate: this store has no done run of --job=%s to estimate from, and how many pages its sites have is known only afterwards; run it once, then ask again", o.Job)
	}
	e = o.priced(e)
	if o.Estimate == "json" {
		return printable.JSON(stdout, e)
	}
	return e.WriteTable(stdout)
}

func (o *Options) priced(e estimate.Estimate) estimate.Estimate {
	e.Job = o.Job
	if l, ok := o.prices[price.Scheme(o.Store)]; ok {
		return e.Priced(l)
	}
	return e
}

func (o *Options) past(reports []ledger.Report) estimate.Past {
	return estimate.Past{Reports: reports, Lanes: float64(max(1, o.Lanes)), Slots: float64(o.Slots()), Option: o.Flags.Value,
		Default: o.Flags.DefaultValue,
		Extent:  slices.DeleteFunc(o.Flags.Which(option.Extent), func(name string) bool { return !o.Target().Takes(name) })}
}

const (
	// maxPast is how many reports are read: more than an estimate needs, because some are
	// of runs of another kind.
	maxPast = 20
	// maxPastRuns is how many runs are looked at.
	maxPastRuns = 100
)

// pastReports reads the reports of the job's last done runs, the newest first.
func pastReports(ctx context.Context, s store.Store, job string) (reports []ledger.Report, err error) {
	seen := 0
	for r, err := range ledger.List(ctx, s) {
		if err != nil && r.RunID == "" {
			return nil, err
		}
		if seen++; seen > maxPastRuns || len(reports) == maxPast {
			break
		}
		if err != nil || r.Job != job || r.State != ledger.Done {
			continue // the command `runs` shows unreadable states
		}
		report, err := ledger.ReadReport(ctx, s, r.RunID)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue // purged, or of a run without launcher
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// readPast reads the reports of earlier runs while the run works: its own report compares
// them with what it took.
func (r *run) readPast(ctx context.Context) (end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	r.past = make(chan []ledger.Report, 1)
	go func() {
		reports, err := pastReports(ctx, r.store, r.job)
		if err != nil && ctx.Err() == nil {
			r.log(r.id).Warn("no_estimate", "error", ledger.Redact(err.Error()))
		}
		r.past <- reports
	}()
	return func() error { cancel(); return nil }
}

// pastWithin is how long a run's end waits for the reports of earlier runs.
const pastWithin = 5 * time.Second

// cost compares what a run took with what it was expected to take.
func (r *run) cost(report ledger.Report, interrupted bool) *ledger.Cost {
	o := &r.o
	c := ledger.Cost{Actual: report.Figures()}
	l, priced := o.prices[price.Scheme(o.Store)]
	if priced {
		p := l.Of(c.Actual.Calls, c.Actual.Written, c.Actual.Read)
		c.Actual.Price, c.Prices = &p, &l
	}
	var reports []ledger.Report
	wait := time.After(pastWithin)
	if interrupted {
		wait = time.After(0)
	}
	select {
	case reports = <-r.past:
		r.past <- reports // for the next batch of a watch
	case <-wait:
		return &c
	}
	past := o.past(reports)
	e, ok := estimate.FromRuns(past)
	if of := o.Target().Afterwards; of != nil {
		e, ok = of(report, past), true
	}
	if ok {
		f := o.priced(e).Figures()
		c.Estimated, c.Basis = &f, e.Basis
	}
	return &c
}
