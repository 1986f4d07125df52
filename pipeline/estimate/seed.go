package estimate

import (
	"fmt"
	"math"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// Work is what a run of the seed job has to do.
type Work struct {
	Files      int64 `json:"files"`      // raw files to read
	FileBytes  int64 `json:"file_bytes"` // their size
	BadFiles   int64 `json:"bad_files"`  // of these, broken ones
	Listed     int64 `json:"listed"`     // objects that a listing of the input has
	Partitions int64 `json:"partitions"`
	Domains    int64 `json:"domains"`  // registrable domains in the files
	Finished   int64 `json:"finished"` // of these, done by earlier runs
	Open       int64 `json:"open"`     // of these, to visit
	Results    int64 `json:"results"`  // metadata to write: one for each partition that has the domain
	Asked      int64 `json:"asked"`    // results of partitions that have some already
	Stored     int64 `json:"stored"`   // objects of these partitions, if the run lists them instead of asking for each mark
}

// setup is how a run works.
type setup struct {
	Packed       bool // its layout
	Homepage     bool
	Visits       float64       // hosts that are visited at the same time
	Concurrency  float64       // requests in flight
	Rate         float64       // requests a second; 0 for no limit
	HostDelay    time.Duration // between two requests to one host
	Lanes, Slots float64
	LeaseTTL     time.Duration
	SegmentAge   time.Duration
}

// Rates are what one visit is expected to take.
type Rates struct {
	Dead     Range `json:"dead"`     // share of hosts that do not answer
	Requests Range `json:"requests"` // a host
	Bytes    Range `json:"bytes"`    // received, a host
	Seconds  Range `json:"seconds"`  // of a visit
	Longest  Range `json:"longest"`  // of all visits, in seconds
	Robots   Range `json:"robots"`   // share of hosts with a robots.txt
	Sitemaps Range `json:"sitemaps"` // share of hosts with a sitemap
}

// assumed are the rates for a store without earlier runs.
func assumed() Rates {
	return Rates{Dead: Range{0.05, 0.15, 0.40}, Requests: Range{1.5, 3, 6}, Bytes: Range{5_000, 60_000, 600_000}, Seconds: Range{0.8, 2, 6},
		Longest: Range{20, 30, 120}, Robots: Range{0.5, 0.75, 0.9}, Sitemaps: Range{0.3, 0.6, 0.85}}
}

// unscaled multiplies the model's figures for a store without earlier runs of the same layout.
func unscaled() (scale ranges) {
	for i := range scale {
		scale[i] = exactly(1)
	}
	calls := Range{0.8, 1, 1.3}
	scale[reads], scale[lists], scale[writes], scale[deletes] = calls, calls, calls, calls
	scale[written], scale[seconds] = Range{0.4, 1, 3}, Range{0.8, 1, 1.5}
	return scale
}

// The intervals of a run's own calls: see packages lane and launch.
const (
	controlEvery  = 2
	progressEvery = 5
	logEvery      = 15
)

// documentBytes is the size of a usual domain_metadata.json.
const documentBytes = 2_500

// model computes a run's figures from its work and the rates of a visit.
func model(w Work, s setup, of pick, r Rates) (f figures) {
	hosts, results := float64(w.Open), float64(w.Results)
	f[requests], f[received], f[dead] = hosts*of(r.Requests), hosts*of(r.Bytes), hosts*of(r.Dead)
	// A visit waits between its requests, so more hosts are visited than requests are in flight.
	busy := math.Max(0, of(r.Seconds)-(of(r.Requests)-1)*s.HostDelay.Seconds())
	took := math.Max(hosts*of(r.Seconds)/s.Visits, hosts*busy/s.Concurrency)
	if s.Rate > 0 {
		took = math.Max(took, f[requests]/s.Rate)
	}
	if hosts > 0 {
		took += of(r.Longest)
	}
	alive := 1 - math.Min(1, of(r.Dead))
	evidence := of(r.Robots) + of(r.Sitemaps)
	if s.Homepage {
		evidence += alive
	}
	beats := took / (s.LeaseTTL.Seconds() / 3)
	files, lanes := float64(w.Files), s.Lanes
	f[seconds] = took
	f[reads] = 3*files + took/controlEvery*s.Slots + beats + 15
	f[lists] = math.Ceil(float64(w.Listed)/1000) + math.Ceil(float64(w.Stored)/1000) + float64(w.Partitions) + beats + 8
	f[writes] = files + took/progressEvery*s.Slots + beats + 2*took/logEvery + lanes + s.Slots + 12
	f[deletes] = 2 + lanes
	if lanes > 1 { // each has a lease of its own
		for _, i := range []int{reads, lists, writes} {
			f[i] += 3*lanes + beats*s.Slots
		}
	}
	body := results * (documentBytes + of(r.Bytes))
	if !s.Packed {
		f[writes] += results * (2 + evidence)
		f[written] += body
		if w.Stored == 0 {
			f[reads] += float64(w.Asked)
		}
		// Evidence of an earlier visit is removed if the site has it no more.
		f[deletes] += math.Min(results, float64(w.Asked)) * math.Max(0, 2-evidence)
	} else {
		segments := math.Max(results/10_000, body/(128<<20))
		if hosts > 0 {
			segments = math.Max(segments, math.Ceil(took*s.Slots/s.SegmentAge.Seconds())) + lanes
		}
		f[writes] += 3*segments + lanes
		f[reads] += segments + lanes
		f[lists] += segments
		f[written] += 0.3 * body
	}
	f[read] = float64(w.FileBytes) + f[reads]*500
	return f
}

// Seed estimates a run of the seed job.
func Seed(w Work, past Past) Estimate {
	s := setupOf(past.Option, past.Lanes, past.Slots)
	basis, rates, scale := past.history()
	var all ranges
	for i := range all {
		all[i] = each(func(of pick) float64 { return model(w, s, of, rates)[i] * of(scale[i]) })
	}
	e := all.estimate(basis)
	e.Work, e.Rates = &w, &rates
	return e
}

// Afterwards is the estimate for what a run of the seed job turned out to do.
func Afterwards(r ledger.Report, past Past) Estimate { return Seed(seedWork(r), past) }

// seedWork is the work that a run of the seed job did, by its report.
func seedWork(r ledger.Report) Work {
	c := r.Counts
	return Work{Files: c["files_read"] + c["files_bad"], Listed: c["files_listed"] + c["files_ignored"], Partitions: max(1, c["files_read"]),
		Open: c["hosts_visited"], Results: c["metadata_written"]}
}

// setupOf reads how a run of the seed job works from its options.
func setupOf(option Option, lanes, slots float64) setup {
	pause := func(name string) time.Duration { d, _ := time.ParseDuration(option(name)); return d } // checked with the options of the run
	number := func(name string) (v float64) { _, _ = fmt.Sscan(option(name), &v); return v }
	layout := seed.Layout(option("layout"))
	s := setup{Packed: layout.Packs(), Homepage: option("homepage") == "true",
		Concurrency: math.Max(1, number("concurrency")), Rate: number("rate"), HostDelay: pause("host-delay"),
		Lanes: lanes, Slots: slots, LeaseTTL: max(time.Second, pause("lease-ttl")), SegmentAge: max(time.Second, pause("segment-age"))}
	s.Visits = float64(seed.Visits(int(s.Concurrency), s.HostDelay, s.Rate))
	return s
}
