// Package estimate says before a run what it will cost: requests, bytes, hours, calls to
// the store and their price. It computes them from the run's work and from the reports of
// earlier runs. No promise: see docs/library.md.
package estimate

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store/price"
)

// Estimate is what a run is expected to cost.
type Estimate struct {
	Job         string `json:"job"`
	Basis       string `json:"basis"`          // what the figures are computed from
	Work        *Work  `json:"work,omitempty"` // of the seed job
	Rates       *Rates `json:"rates,omitempty"`
	Unreachable Range  `json:"hosts_unreachable"`
	Requests    Range  `json:"requests"`
	Bytes       Range  `json:"bytes"` // received from sites
	Seconds     Range  `json:"duration_s"`
	Calls       calls  `json:"store"`
	Written     Range  `json:"store_bytes_written"`
	Read        Range  `json:"store_bytes_read"`
	Price       *Price `json:"price,omitempty"` // nil where the store's calls have none
}

// calls are calls to the store by class, as in price.Calls.
type calls struct {
	Reads   Range `json:"reads"`
	Lists   Range `json:"lists"`
	Writes  Range `json:"writes"`
	Deletes Range `json:"deletes"`
}

// Price is the price of an estimate in dollars, as in price.Price.
type Price struct {
	List    price.List `json:"list"`
	Calls   Range      `json:"calls"`
	Storage Range      `json:"storage_month"`
	Egress  Range      `json:"egress"`
}

// at returns one of the three figures of everything.
func (e Estimate) at(of pick) ledger.Figures {
	n := func(r Range) int64 { return int64(math.Round(of(r))) }
	f := ledger.Figures{Requests: n(e.Requests), Bytes: n(e.Bytes), Duration: math.Round(of(e.Seconds)*1000) / 1000, Written: n(e.Written), Read: n(e.Read),
		Calls: price.Calls{Reads: n(e.Calls.Reads), Lists: n(e.Calls.Lists), Writes: n(e.Calls.Writes), Deletes: n(e.Calls.Deletes)}}
	if e.Price != nil {
		p := e.Price.List.Of(f.Calls, f.Written, f.Read)
		f.Price = &p
	}
	return f
}

// Figures are the likely figures, as a run's report has them.
func (e Estimate) Figures() ledger.Figures { return e.at(likely) }

// Priced adds the price by a price list.
func (e Estimate) Priced(l price.List) Estimate {
	e.Price = &Price{List: l}
	of := func(figure func(price.Price) float64) Range {
		return each(func(of pick) float64 { return figure(*e.at(of).Price) })
	}
	e.Price.Calls = of(func(p price.Price) float64 { return p.Calls })
	e.Price.Storage = of(func(p price.Price) float64 { return p.Storage })
	e.Price.Egress = of(func(p price.Price) float64 { return p.Egress })
	return e
}

// WriteTable writes the estimate for a terminal.
func (e Estimate) WriteTable(w io.Writer) error {
	var b bytes.Buffer
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format, args...) } // memory takes everything
	line("Estimate of a run of %s. No site was asked, and nothing was written.\nBasis: %s.\n", e.Job, e.Basis)
	if k := e.Work; k != nil {
		line("\nWork\n")
		for _, n := range []struct {
			label string
			n     int64
		}{{"raw files to read", k.Files}, {"of these broken", k.BadFiles}, {"registrable domains", k.Domains}, {"of these finished", k.Finished},
			{"of these to visit", k.Open}, {"results to write", k.Results}} {
			line("  %-28s %12s\n", n.label, ledger.FormatCount(n.n))
		}
	}
	const row = "  %-28s %12s %12s %12s\n"
	line("\n"+row, "Cost", "likely", "from", "to")
	if count := ledger.FormatCount; e.Work != nil {
		line(row, "hosts that do not answer", count(int64(e.Unreachable.Likely)), count(int64(e.Unreachable.Low)), count(int64(e.Unreachable.High)))
	}
	from, to := e.at(low).Lines(), e.at(high).Lines()
	for i, l := range e.at(likely).Lines() {
		line(row, l[0], l[1], from[i][1], to[i][1])
	}
	if p := e.Price; p != nil {
		line(row, "price of traffic *", dollars(p.Egress.Likely), dollars(p.Egress.Low), dollars(p.Egress.High))
		line("\nPrices: %s, as of %s (%s).\n", p.List.Name, p.List.AsOf, p.List.Source)
		line("* of what the run reads from the store, if it runs outside the provider's network\n")
	} else {
		line("\nNo prices: this store's calls cost nothing. --prices=FILE gives it prices.\n")
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the estimate: %w", err)
	}
	return nil
}

func dollars(v float64) string { return fmt.Sprintf("$%.4f", v) }

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
