package ledger

import (
	"fmt"

	"github.com/newsfork/seed-engine/io/store/price"
)

// Cost is what a run took, and what was expected of it.
type Cost struct {
	Actual    Figures     `json:"actual"`
	Estimated *Figures    `json:"estimated,omitempty"`
	Basis     string      `json:"basis,omitempty"`  // of the estimate
	Prices    *price.List `json:"prices,omitempty"` // nil where the store's calls cost nothing
}

// Figures are what a run costs.
type Figures struct {
	Requests int64        `json:"requests"`
	Bytes    int64        `json:"bytes"` // received from sites
	Duration float64      `json:"duration_s"`
	Calls    price.Calls  `json:"store"` // by class
	Written  int64        `json:"store_bytes_written"`
	Read     int64        `json:"store_bytes_read"`
	Price    *price.Price `json:"price,omitempty"`
}

// Figures are what a run took, by its report.
func (r *Report) Figures() Figures {
	return Figures{Requests: r.HTTP.Requests, Bytes: r.HTTP.Bytes, Duration: r.Duration,
		Calls: price.Classes(r.Store), Written: r.StoreBytes.Written, Read: r.StoreBytes.Read}
}

// CostLine is one figure of a cost, as text.
type CostLine struct{ Label, Actual, Estimated string }

// Lines are the figures of a cost as people read them. The prices come last, where there
// are any.
func (c Cost) Lines() (lines []CostLine) {
	line := func(label string, form func(Figures) string) {
		l := CostLine{Label: label, Actual: form(c.Actual)}
		if c.Estimated != nil {
			l.Estimated = form(*c.Estimated)
		}
		lines = append(lines, l)
	}
	line("requests", func(f Figures) string { return FormatCount(f.Requests) })
	line("received", func(f Figures) string { return FormatBytes(f.Bytes) })
	line("duration", func(f Figures) string { return formatSeconds(f.Duration) })
	line("store: reads", func(f Figures) string { return FormatCount(f.Calls.Reads) })
	line("store: lists", func(f Figures) string { return FormatCount(f.Calls.Lists) })
	line("store: writes", func(f Figures) string { return FormatCount(f.Calls.Writes) })
	line("store: deletes", func(f Figures) string { return FormatCount(f.Calls.Deletes) })
	line("store: written", func(f Figures) string { return FormatBytes(f.Written) })
	if c.Prices == nil {
		return lines
	}
	dollars := func(of func(price.Price) float64) func(Figures) string {
		return func(f Figures) string {
			if f.Price == nil {
				return "-"
			}
			return fmt.Sprintf("$%.4f", of(*f.Price))
		}
	}
	line("price of calls", dollars(func(p price.Price) float64 { return p.Calls }))
	line("price of a month", dollars(func(p price.Price) float64 { return p.Storage }))
	return lines
}

// cost writes what a run cost, in two columns.
func (t *table) cost(c Cost) {
	write := func(label, actual, estimated string) {
		t.print(fmt.Sprintf("  %-22s %14s", label, actual))
		if c.Estimated != nil {
			t.print(fmt.Sprintf(" %14s", estimated))
		}
		t.print("\n")
	}
	t.print("\n")
	write("Cost", "actual", "estimated")
	for _, l := range c.Lines() {
		write(l.Label, l.Actual, l.Estimated)
	}
	if c.Prices != nil {
		t.print("      " + c.Prices.Name + ", as of " + c.Prices.AsOf + "\n")
	}
	if c.Estimated != nil {
		t.print("      basis of the estimate: " + c.Basis + "\n")
	}
}
