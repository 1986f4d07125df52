package estimate

import (
	"math"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/price"
)

// Range is a figure with the bounds between which it is expected.
type Range struct {
	Low    float64 `json:"low"`
	Likely float64 `json:"likely"`
	High   float64 `json:"high"`
}

func exactly(v float64) Range { return Range{v, v, v} }

// pick chooses one of a range's figures.
type pick func(Range) float64

func low(r Range) float64    { return r.Low }
func likely(r Range) float64 { return r.Likely }
func high(r Range) float64   { return r.High }

// each applies f to the three figures of ranges: the lows together, and so on. Where f
// falls as a range rises, low and high change places.
func each(f func(of pick) float64) Range {
	a, mid, b := f(low), f(likely), f(high)
	return Range{Low: min(a, mid, b), Likely: mid, High: max(a, mid, b)}
}

// margin is the least distance of a range's bounds from what was measured: the next run
// is another one.
const margin = 0.2

// measured is the range of a figure of several runs: sum is that of all of them together.
func measured(sum float64, runs []float64) Range {
	r := Range{Low: sum * (1 - margin), Likely: sum, High: sum * (1 + margin)}
	for _, v := range runs {
		r.Low, r.High = math.Min(r.Low, v), math.Max(r.High, v)
	}
	return r
}

// The figures of a run.
const (
	seconds = iota
	requests
	received
	dead
	reads
	lists
	writes
	deletes
	written
	read
	nFigures
)

type (
	figures [nFigures]float64
	ranges  [nFigures]Range
)

// figuresOf are the figures of a run by its report.
func figuresOf(r ledger.Report) figures {
	c := price.Classes(r.Store)
	return figures{seconds: r.Duration, requests: float64(r.HTTP.Requests), received: float64(r.HTTP.Bytes), reads: float64(c.Reads), lists: float64(c.Lists),
		writes: float64(c.Writes), deletes: float64(c.Deletes), written: float64(r.StoreBytes.Written), read: float64(r.StoreBytes.Read)}
}

func (r ranges) estimate(basis string) Estimate {
	return Estimate{Basis: basis, Unreachable: r[dead], Requests: r[requests], Bytes: r[received], Seconds: r[seconds],
		Calls: calls{r[reads], r[lists], r[writes], r[deletes]}, Written: r[written], Read: r[read]}
}
