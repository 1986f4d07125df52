package estimate

import (
	"math"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/price"
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
	Packed, Objects bool // its layout
	Homepage        bool
	Visits          float64       // hosts that are visited at the same time
	Concurrency     float64       // requests in flight
	Rate            float64       // requests a second; 0 for no limit
	HostDelay       time.Duration // between two requests to one host
	Lanes, Slots    float64
	LeaseTTL        time.Duration
	SegmentAge      time.Duration
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
	return Rates{
		Dead:     Range{0.05, 0.15, 0.40},
		Requests: Range{1.5, 3, 6},
		Bytes:    Range{5_000, 60_000, 600_000},
		Seconds:  Range{0.8, 2, 6},
		Longest:  Range{20, 30, 120},
		Robots:   Range{0.5, 0.75, 0.9},
		Sitemaps: Range{0.3, 0.6, 0.85},
	}
}

// scale corrects the model of a run by what earlier runs needed: their figures divided by
// those of the model for their work.
type scale struct {
	Reads, Lists, Writes, Deletes, Written, Time Range
}

// unscaled is the scale for a store without earlier runs of the same layout.
func unscaled() scale {
	r := Range{0.8, 1, 1.3}
	return scale{Reads: r, Lists: r, Writes: r, Deletes: r, Written: Range{0.4, 1, 3}, Time: Range{0.8, 1, 1.5}}
}

// figures are the figures of one run.
type figures struct {
	seconds, reads, lists, writes, deletes, written, read float64
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
func model(w Work, s setup, of func(Range) float64, r Rates) (f figures) {
	hosts, results := float64(w.Open), float64(w.Results)
	requests := hosts * of(r.Requests)
	// A visit waits between its requests, so more hosts are visited than requests are in flight.
	busy := math.Max(0, of(r.Seconds)-(of(r.Requests)-1)*s.HostDelay.Seconds())
	f.seconds = math.Max(hosts*of(r.Seconds)/s.Visits, hosts*busy/s.Concurrency)
	if s.Rate > 0 {
		f.seconds = math.Max(f.seconds, requests/s.Rate)
	}
	if hosts > 0 {
		f.seconds += of(r.Longest)
	}
	alive := 1 - math.Min(1, of(r.Dead))
	evidence := of(r.Robots) + of(r.Sitemaps)
	if s.Homepage {
		evidence += alive
	}
	beats := f.seconds / (s.LeaseTTL.Seconds() / 3)
	files, lanes := float64(w.Files), s.Lanes
	f.reads = 3*files + f.seconds/controlEvery*s.Slots + beats + 15
	f.lists = math.Ceil(float64(w.Listed)/1000) + math.Ceil(float64(w.Stored)/1000) + float64(w.Partitions) + beats + 8
	f.writes = files + f.seconds/progressEvery*s.Slots + beats + 2*f.seconds/logEvery + 2*lanes + 12
	f.deletes = 2 + lanes
	if lanes > 1 { // each has a lease of its own
		f.reads, f.lists, f.writes = f.reads+3*lanes+beats*s.Slots, f.lists+3*lanes+beats*s.Slots, f.writes+3*lanes+beats*s.Slots
	}
	body := results * (documentBytes + ratio(of(r.Bytes), 1))
	if s.Objects {
		f.writes += results * (2 + evidence)
		f.written += body
		if w.Stored == 0 {
			f.reads += float64(w.Asked)
		}
		// Evidence of an earlier visit is removed if the site has it no more.
		f.deletes += math.Min(results, float64(w.Asked)) * math.Max(0, 2-evidence)
	}
	if s.Packed {
		segments := math.Max(results/10_000, body/(128<<20))
		if hosts > 0 {
			segments = math.Max(segments, math.Ceil(f.seconds*s.Slots/s.SegmentAge.Seconds())) + lanes
		}
		f.writes += 3*segments + lanes
		f.reads += segments + lanes
		f.lists += segments
		f.written += 0.3 * body
	}
	f.read = float64(w.FileBytes) + f.reads*500
	return f
}

// Seed estimates a run of the seed job.
func Seed(w Work, past Past) Estimate {
	s, h := setupOf(past.Option, past.Lanes, past.Slots), seedHistory(past)
	r, k := h.Rates, h.Scale
	of := func(pick func(figures, func(Range) float64) float64) Range {
		return each(func(at func(Range) float64) float64 { return pick(model(w, s, at, r), at) })
	}
	e := Estimate{
		Work: &w, Basis: h.Basis, Rates: &r,
		Requests: each(func(at func(Range) float64) float64 { return float64(w.Open) * at(r.Requests) }),
		Bytes:    each(func(at func(Range) float64) float64 { return float64(w.Open) * at(r.Bytes) }),
		Unreachable: each(func(at func(Range) float64) float64 {
			return float64(w.Open) * at(r.Dead)
		}),
		Seconds: of(func(f figures, at func(Range) float64) float64 { return f.seconds * at(k.Time) }),
		Written: of(func(f figures, at func(Range) float64) float64 { return f.written * at(k.Written) }),
		Read:    of(func(f figures, at func(Range) float64) float64 { return f.read }),
	}
	e.Calls = Calls{
		Reads:   of(func(f figures, at func(Range) float64) float64 { return f.reads * at(k.Reads) }),
		Lists:   of(func(f figures, at func(Range) float64) float64 { return f.lists * at(k.Lists) }),
		Writes:  of(func(f figures, at func(Range) float64) float64 { return f.writes * at(k.Writes) }),
		Deletes: of(func(f figures, at func(Range) float64) float64 { return f.deletes * at(k.Deletes) }),
	}
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

// figuresOf are the figures of a run by its report.
func figuresOf(r ledger.Report) figures {
	c := price.Classes(r.Store)
	return figures{seconds: r.Duration, reads: float64(c.Reads), lists: float64(c.Lists), writes: float64(c.Writes), deletes: float64(c.Deletes),
		written: float64(r.StoreBytes.Written), read: float64(r.StoreBytes.Read)}
}
