package estimate

import (
	"fmt"
	"math"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// maxRuns is the most earlier runs that an estimate is computed from.
const maxRuns = 5

// minHosts is how many hosts a run must have visited to tell something about others.
const minHosts = 20

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
func optionsOf(r ledger.Report, byDefault Option) Option {
	return func(name string) string {
		if v, ok := r.Options[name]; ok {
			return fmt.Sprint(v)
		}
		return byDefault(name)
	}
}

// history is what earlier runs of the seed job say about the next one.
type history struct {
	Basis string
	Rates Rates
	Scale scale
}

// seedHistory reads the reports that say something about the next run.
func seedHistory(p Past) history {
	h := history{Rates: assumed(), Scale: unscaled()}
	var alike, sameLayout []ledger.Report
	for _, r := range p.Reports {
		of := optionsOf(r, p.Default)
		if r.Counts["hosts_visited"] < minHosts || !equal(p.Extent, of, p.Option) {
			continue
		}
		if len(alike) < maxRuns {
			alike = append(alike, r)
		}
		if len(sameLayout) < maxRuns && equal([]string{"layout"}, of, p.Option) {
			sameLayout = append(sameLayout, r)
		}
	}
	if len(alike) == 0 {
		h.Basis = "no earlier run of this kind in this store: assumptions about usual sites, so look at the range"
		return h
	}
	h.Rates = rates(alike)
	h.Basis = fmt.Sprintf("the last %s of this kind in this store, with %s hosts", plural(len(alike), "run"), ledger.FormatCount(hosts(alike)))
	h.Scale.Time = scaleOf(alike, p.Default).Time
	if len(sameLayout) == 0 {
		h.Basis += "; none had --layout=" + p.Option("layout") + ", so its calls to the store are computed and not measured"
		return h
	}
	h.Scale = scaleOf(sameLayout, p.Default)
	return h
}

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func equal(names []string, a, b Option) bool {
	for _, n := range names {
		if a(n) != b(n) {
			return false
		}
	}
	return true
}

func hosts(reports []ledger.Report) (n int64) {
	for _, r := range reports {
		n += r.Counts["hosts_visited"]
	}
	return n
}

// perHost is the range of a figure of runs for each host.
func perHost(reports []ledger.Report, figure func(ledger.Report) float64) Range {
	var sum float64
	var runs []float64
	for _, r := range reports {
		v := figure(r)
		sum += v
		runs = append(runs, ratio(v, float64(r.Counts["hosts_visited"])))
	}
	return measured(ratio(sum, float64(hosts(reports))), runs)
}

func rates(reports []ledger.Report) Rates {
	count := func(name string) Range {
		r := perHost(reports, func(r ledger.Report) float64 { return float64(r.Counts[name]) })
		return Range{r.Low, r.Likely, math.Min(1, r.High)}
	}
	longest := 0.0
	for _, r := range reports {
		longest = math.Max(longest, r.Timings.Max)
	}
	return Rates{
		Dead:     count("hosts_unreachable"),
		Requests: perHost(reports, func(r ledger.Report) float64 { return float64(r.HTTP.Requests) }),
		Bytes:    perHost(reports, func(r ledger.Report) float64 { return float64(r.HTTP.Bytes) }),
		Seconds:  perHost(reports, func(r ledger.Report) float64 { return r.Timings.Mean * float64(r.Counts["hosts_visited"]) }),
		Longest:  measured(longest, nil),
		Robots:   count("robots_found"),
		Sitemaps: count("sitemaps_found"),
	}
}

// scaleOf compares what runs needed with the model of the same runs.
func scaleOf(reports []ledger.Report, byDefault Option) scale {
	likely := func(r Range) float64 { return r.Likely }
	// few keeps what a short run does only once from weighing too much.
	one := func(few float64, figure func(figures) float64) Range {
		var got, want float64
		var runs []float64
		for _, r := range reports {
			g := figure(figuresOf(r))
			w := figure(model(seedWork(r), setupOf(optionsOf(r, byDefault), float64(max(1, len(r.Lanes))), 1), likely, rates([]ledger.Report{r})))
			if g > 0 && w > 0 { // reports of earlier versions do not have every figure
				got, want, runs = got+g, want+w, append(runs, (g+few)/(w+few))
			}
		}
		if want == 0 {
			return exactly(1)
		}
		r := measured((got+few)/(want+few), runs)
		return Range{clip(r.Low), clip(r.Likely), clip(r.High)}
	}
	return scale{
		Reads:   one(fewCalls, func(f figures) float64 { return f.reads }),
		Lists:   one(fewCalls, func(f figures) float64 { return f.lists }),
		Writes:  one(fewCalls, func(f figures) float64 { return f.writes }),
		Deletes: one(fewCalls, func(f figures) float64 { return f.deletes }),
		Written: one(0, func(f figures) float64 { return f.written }),
		Time:    one(0, func(f figures) float64 { return f.seconds }),
	}
}

// fewCalls is about what a run calls the store for once: its lease, state and report.
const fewCalls = 40

// clip keeps a factor within what a difference between runs can explain.
func clip(v float64) float64 { return math.Max(0.1, math.Min(10, v)) }

// setupOf reads how a run of the seed job works from its options.
func setupOf(option Option, lanes, slots float64) setup {
	pause := func(name string) time.Duration { d, _ := time.ParseDuration(option(name)); return d } // checked with the options of the run
	number := func(name string) (v float64) { _, _ = fmt.Sscan(option(name), &v); return v }
	layout := seed.Layout(option("layout"))
	s := setup{Packed: layout.Packs(), Objects: layout != seed.Packed, Homepage: option("homepage") == "true",
		Concurrency: math.Max(1, number("concurrency")), Rate: number("rate"), HostDelay: pause("host-delay"),
		Lanes: lanes, Slots: slots, LeaseTTL: max(time.Second, pause("lease-ttl")), SegmentAge: max(time.Second, pause("segment-age"))}
	s.Visits = float64(seed.Visits(int(s.Concurrency), s.HostDelay, s.Rate))
	return s
}

// FromRuns estimates a run of a job whose input is the same each time, such as the sites
// of its files: what its last done runs of the same extent took. ok is
// false if there are none.
func FromRuns(p Past) (e Estimate, ok bool) {
	var reports []ledger.Report
	for _, r := range p.Reports {
		if len(reports) < maxRuns && equal(p.Extent, optionsOf(r, p.Default), p.Option) {
			reports = append(reports, r)
		}
	}
	if len(reports) == 0 {
		return e, false
	}
	of := func(figure func(figures, ledger.Report) float64) Range {
		var sum float64
		var runs []float64
		for _, r := range reports {
			v := figure(figuresOf(r), r)
			sum, runs = sum+v, append(runs, v)
		}
		return measured(sum/float64(len(reports)), runs)
	}
	return Estimate{
		Basis:    fmt.Sprintf("what the last %s took", plural(len(reports), "done run")),
		Requests: of(func(_ figures, r ledger.Report) float64 { return float64(r.HTTP.Requests) }),
		Bytes:    of(func(_ figures, r ledger.Report) float64 { return float64(r.HTTP.Bytes) }),
		Seconds:  of(func(f figures, _ ledger.Report) float64 { return f.seconds }),
		Calls: Calls{
			Reads:   of(func(f figures, _ ledger.Report) float64 { return f.reads }),
			Lists:   of(func(f figures, _ ledger.Report) float64 { return f.lists }),
			Writes:  of(func(f figures, _ ledger.Report) float64 { return f.writes }),
			Deletes: of(func(f figures, _ ledger.Report) float64 { return f.deletes }),
		},
		Written: of(func(f figures, _ ledger.Report) float64 { return f.written }),
		Read:    of(func(f figures, _ ledger.Report) float64 { return f.read }),
	}, true
}
