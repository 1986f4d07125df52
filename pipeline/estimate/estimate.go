// Package estimate says before a run what it will cost: requests, bytes, hours, calls to
// the store and their price. It computes them from the run's work and from the reports of
// earlier runs. No promise: see docs/library.md.
package estimate

import (
	"bytes"
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
func (c Calls) at(of pick) price.Calls {
	n := func(r Range) int64 { return int64(math.Round(of(r))) }
	return price.Calls{Reads: n(c.Reads), Lists: n(c.Lists), Writes: n(c.Writes), Deletes: n(c.Deletes)}
}

// Priced adds the price by a price list.
func (e Estimate) Priced(l price.List) Estimate {
	of := func(figure func(price.Price) float64) Range {
		return each(func(of pick) float64 { return figure(l.Of(e.Calls.at(of), int64(of(e.Written)), int64(of(e.Read)))) })
	}
	e.Price = &Price{l, of(func(p price.Price) float64 { return p.Calls }), of(func(p price.Price) float64 { return p.Storage }), of(func(p price.Price) float64 { return p.Egress })}
	return e
}

// Figures are the likely figures, as a run's report has them.
func (e Estimate) Figures() ledger.Figures {
	n := func(r Range) int64 { return int64(math.Round(r.Likely)) }
	f := ledger.Figures{Requests: n(e.Requests), Bytes: n(e.Bytes), Duration: math.Round(e.Seconds.Likely*1000) / 1000, Calls: e.Calls.at(likely),
		Written: n(e.Written), Read: n(e.Read)}
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
	var b bytes.Buffer
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format, args...) } // memory takes everything
	row := func(label string, r Range, form func(float64) string) {
		line("  %-28s %12s %12s %12s\n", label, form(r.Likely), form(r.Low), form(r.High))
	}
	line("Estimate of a run of %s. No site was asked, and nothing was written.\nBasis: %s.\n", e.Job, e.Basis)
	if k := e.Work; k != nil {
		line("\nWork\n")
		number := func(label string, n int64) { line("  %-28s %12s\n", label, count(float64(n))) }
		number("raw files to read", k.Files)
		if k.BadFiles > 0 {
			number("of these broken", k.BadFiles)
		}
		number("registrable domains", k.Domains)
		number("of these finished", k.Finished)
		number("of these to visit", k.Open)
		number("results to write", k.Results)
	}
	line("\n  %-28s %12s %12s %12s\n", "Cost", "likely", "from", "to")
	if e.Work != nil {
		row("hosts that do not answer", e.Unreachable, count)
	}
	row("requests", e.Requests, count)
	row("received", e.Bytes, size)
	row("duration", e.Seconds, duration)
	row("store: reads", e.Calls.Reads, count)
	row("store: lists", e.Calls.Lists, count)
	row("store: writes", e.Calls.Writes, count)
	row("store: deletes", e.Calls.Deletes, count)
	row("store: written", e.Written, size)
	if p := e.Price; p != nil {
		row("price of the store's calls", p.Calls, dollars)
		row("price of a month's storage", p.Storage, dollars)
		row("price of traffic *", p.Egress, dollars)
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
