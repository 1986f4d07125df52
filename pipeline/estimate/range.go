package estimate

import "math"

// Range is a figure with the bounds between which it is expected.
type Range struct {
	Low    float64 `json:"low"`
	Likely float64 `json:"likely"`
	High   float64 `json:"high"`
}

func exactly(v float64) Range { return Range{v, v, v} }

// each applies f to the three figures of ranges: the lows together, and so on. Where f
// falls as a range rises, low and high change places.
func each(f func(of func(Range) float64) float64) Range {
	low := f(func(r Range) float64 { return r.Low })
	likely := f(func(r Range) float64 { return r.Likely })
	high := f(func(r Range) float64 { return r.High })
	return Range{Low: min(low, likely, high), Likely: likely, High: max(low, likely, high)}
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

// ratio is a/b, or 0 of nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
