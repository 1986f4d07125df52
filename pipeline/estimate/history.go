package estimate

import (
	"fmt"
	"math"

	"github.com/newsfork/seed-engine/io/ledger"
)

const (
	maxRuns  = 5  // earlier runs from which an estimate is computed
	minHosts = 20 // that a run must have visited to tell something about others
	// fewCalls is about what a run calls the store for once: its lease, state and report.
	fewCalls = 40
)

// Option returns the value of a run's option by its flag's name.
type Option func(name string) string

// Past is what is known before a run.
type Past struct {
	Reports []ledger.Report // of done runs of the job, the newest first
	Option  Option          // of the run
	Default Option          // of a run that did not set the option
	Extent  []string        // the options that decide how much a run requests of its sites
	Lanes   float64
	Slots   float64
}

// optionsOf returns the options of an earlier run.
func (p Past) optionsOf(r ledger.Report) Option {
	return func(name string) string {
		if v, ok := r.Options[name]; ok {
			return fmt.Sprint(v)
		}
		return p.Default(name)
	}
}

// alike returns the newest runs that had the same options and visited enough hosts.
func (p Past) alike(least int64, names ...string) (some []ledger.Report) {
runs:
	for _, r := range p.Reports {
		of := p.optionsOf(r)
		for _, name := range names {
			if of(name) != p.Option(name) {
				continue runs
			}
		}
		if len(some) < maxRuns && r.Counts["hosts_visited"] >= least {
			some = append(some, r)
		}
	}
	return some
}

// history returns what earlier runs of the seed job say about the next one: the rates of its visits, and by what to multiply the model's
// figures.
func (p Past) history() (basis string, rates Rates, scale ranges) {
	all := p.alike(minHosts, p.Extent...)
	if len(all) == 0 {
		return "no earlier run of this kind in this store: assumptions about usual sites, so look at the range", assumed(), unscaled()
	}
	hosts := int64(0)
	for _, r := range all {
		hosts += r.Counts["hosts_visited"]
	}
	basis = fmt.Sprintf("the last %s of this kind in this store, with %s hosts", several(len(all), "run"), ledger.FormatCount(hosts))
	same := p.alike(minHosts, append([]string{"layout"}, p.Extent...)...)
	if len(same) > 0 {
		return basis, ratesOf(all), p.scale(same)
	}
	scale = unscaled()
	scale[seconds] = p.scale(all)[seconds]
	return basis + "; none had --layout=" + p.Option("layout") + ", so its calls to the store are computed and not measured", ratesOf(all), scale
}

// ratesOf measures the visits of runs.
func ratesOf(reports []ledger.Report) Rates {
	perHost := func(figure func(ledger.Report) float64) Range {
		var sum, hosts float64
		var runs []float64
		for _, r := range reports {
			v, n := figure(r), float64(r.Counts["hosts_visited"])
			sum, hosts, runs = sum+v, hosts+n, append(runs, v/n)
		}
		return measured(sum/hosts, runs)
	}
	share := func(name string) Range {
		r := perHost(func(r ledger.Report) float64 { return float64(r.Counts[name]) })
		return Range{r.Low, r.Likely, math.Min(1, r.High)}
	}
	longest := 0.0
	for _, r := range reports {
		longest = math.Max(longest, r.Timings.Max)
	}
	return Rates{
		Dead: share("hosts_unreachable"), Robots: share("robots_found"), Sitemaps: share("sitemaps_found"), Longest: measured(longest, nil),
		Requests: perHost(func(r ledger.Report) float64 { return float64(r.HTTP.Requests) }),
		Bytes:    perHost(func(r ledger.Report) float64 { return float64(r.HTTP.Bytes) }),
		Seconds:  perHost(func(r ledger.Report) float64 { return r.Timings.Mean * float64(r.Counts["hosts_visited"]) }),
	}
}

// scale compares what runs needed with the model of the same runs.
func (p Past) scale(reports []ledger.Report) (scale ranges) {
	clip := func(v float64) float64 { return math.Max(0.1, math.Min(10, v)) } // what a difference between runs can explain
	var got, want [nFigures]float64
	var runs [nFigures][]float64
	few := figures{reads: fewCalls, lists: fewCalls, writes: fewCalls, deletes: fewCalls} // keeps what a short run does only once from weighing too much
	for _, r := range reports {
		took := figuresOf(r)
		model := model(seedWork(r), setupOf(p.optionsOf(r), float64(max(1, len(r.Lanes))), 1), likely, ratesOf([]ledger.Report{r}))
		for i := range scale {
			if took[i] > 0 && model[i] > 0 { // reports of earlier versions do not have every figure
				got[i], want[i], runs[i] = got[i]+took[i], want[i]+model[i], append(runs[i], (took[i]+few[i])/(model[i]+few[i]))
			}
		}
	}
	for i := range scale {
		scale[i] = exactly(1)
		if measurable := i == seconds || i >= reads && i <= written; measurable && want[i] > 0 {
			r := measured((got[i]+few[i])/(want[i]+few[i]), runs[i])
			scale[i] = Range{clip(r.Low), clip(r.Likely), clip(r.High)}
		}
	}
	return scale
}

// FromRuns estimates a run of a job whose input is the same each time, such as the sites
// of its files: what its last done runs of the same extent took. ok is
// false if there are none.
func FromRuns(p Past) (e Estimate, ok bool) {
	reports := p.alike(0, p.Extent...)
	if len(reports) == 0 {
		return e, false
	}
	var all ranges
	for i := range all {
		var sum float64
		var runs []float64
		for _, r := range reports {
			v := figuresOf(r)[i]
			sum, runs = sum+v, append(runs, v)
		}
		all[i] = measured(sum/float64(len(reports)), runs)
	}
	return all.estimate("what the last " + several(len(reports), "done run") + " took"), true
}

func several(n int, what string) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
