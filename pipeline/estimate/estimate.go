// Package estimate says before a run what it will cost: requests, bytes, hours, calls to
// the store and their price. It computes them from the run's work and from the reports of
// earlier runs. No promise: see docs/library.md.
package estimate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

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
	Calls       Calls  `json:"store"`
	Written     Range  `json:"store_bytes_written"`
	Read        Range  `json:"store_bytes_read"`
	Price       *Price `json:"price,omitempty"` // nil where the store's calls have none
}

// Calls are calls to the store by class, as in price.Calls.
type Calls struct {
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

// at returns the calls of one of the three figures.
func (c Calls) at(of func(Range) float64) price.Calls {
	n := func(r Range) int64 { return int64(math.Round(of(r))) }
	return price.Calls{Reads: n(c.Reads), Lists: n(c.Lists), Writes: n(c.Writes), Deletes: n(c.Deletes)}
}

// Priced adds the price by a price list.
func (e Estimate) Priced(l price.List) Estimate {
	at := func(of func(Range) float64) price.Price {
		return l.Of(e.Calls.at(of), int64(of(e.Written)), int64(of(e.Read)))
	}
	e.Price = &Price{
		List:    l,
		Calls:   each(func(of func(Range) float64) float64 { return at(of).Calls }),
		Storage: each(func(of func(Range) float64) float64 { return at(of).Storage }),
		Egress:  each(func(of func(Range) float64) float64 { return at(of).Egress }),
	}
	return e
}

// Figures are the likely figures, as a run's report has them.
func (e Estimate) Figures() ledger.Figures {
	likely := func(r Range) float64 { return r.Likely }
	f := ledger.Figures{Requests: int64(math.Round(e.Requests.Likely)), Bytes: int64(math.Round(e.Bytes.Likely)),
		Duration: math.Round(e.Seconds.Likely*1000) / 1000, Calls: e.Calls.at(likely),
		Written: int64(math.Round(e.Written.Likely)), Read: int64(math.Round(e.Read.Likely))}
	if e.Price != nil {
		f.Price = &price.Price{Calls: e.Price.Calls.Likely, Storage: e.Price.Storage.Likely, Egress: e.Price.Egress.Likely}
	}
	return f
}

// WriteJSON writes the estimate for programs.
func (e Estimate) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(e); err != nil {
		return fmt.Errorf("writing the estimate: %w", err)
	}
	return nil
}

// WriteTable writes the estimate for a terminal.
func (e Estimate) WriteTable(w io.Writer) error {
	t := table{w: w}
	t.line("Estimate of a run of %s. No site was asked, and nothing was written.\n", e.Job)
	t.line("Basis: %s.\n", e.Basis)
	if k := e.Work; k != nil {
		t.line("\nWork\n")
		t.number("raw files to read", k.Files)
		if k.BadFiles > 0 {
			t.number("of these broken", k.BadFiles)
		}
		t.number("registrable domains", k.Domains)
		t.number("of these finished", k.Finished)
		t.number("of these to visit", k.Open)
		t.number("results to write", k.Results)
	}
	t.line("\n  %-28s %12s %12s %12s\n", "Cost", "likely", "from", "to")
	if e.Work != nil {
		t.row("hosts that do not answer", e.Unreachable, count)
	}
	t.row("requests", e.Requests, count)
	t.row("received", e.Bytes, size)
	t.row("duration", e.Seconds, duration)
	t.row("store: reads", e.Calls.Reads, count)
	t.row("store: lists", e.Calls.Lists, count)
	t.row("store: writes", e.Calls.Writes, count)
	t.row("store: deletes", e.Calls.Deletes, count)
	t.row("store: written", e.Written, size)
	if p := e.Price; p != nil {
		t.row("price of the store's calls", p.Calls, dollars)
		t.row("price of a month's storage", p.Storage, dollars)
		t.row("price of traffic *", p.Egress, dollars)
		t.line("\nPrices: %s, as of %s (%s).\n", p.List.Name, p.List.AsOf, p.List.Source)
		t.line("* of what the run reads from the store, if it runs outside the provider's network\n")
	} else {
		t.line("\nNo prices: this store's calls cost nothing. --prices=FILE gives it prices.\n")
	}
	if t.err != nil {
		return fmt.Errorf("writing the estimate: %w", t.err)
	}
	return nil
}

// table writes lines, and remembers the first error.
type table struct {
	w   io.Writer
	err error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

func (t *table) number(label string, n int64) { t.line("  %-28s %12s\n", label, count(float64(n))) }

func (t *table) row(label string, r Range, form func(float64) string) {
	t.line("  %-28s %12s %12s %12s\n", label, form(r.Likely), form(r.Low), form(r.High))
}

func count(v float64) string { return ledger.FormatCount(int64(math.Round(v))) }
func size(v float64) string  { return ledger.FormatBytes(int64(math.Round(v))) }

func duration(s float64) string {
	if s >= 3600 {
		return strconv.FormatFloat(s/3600, 'f', 1, 64) + " h"
	}
	return time.Duration(math.Round(s) * float64(time.Second)).String()
}

// dollars has as many digits as a small price needs.
func dollars(v float64) string {
	if v != 0 && v < 0.995 {
		return "$" + strconv.FormatFloat(v, 'g', 2, 64)
	}
	return "$" + strconv.FormatFloat(v, 'f', 2, 64)
}
