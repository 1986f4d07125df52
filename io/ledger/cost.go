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

// cost writes what a run cost, in two columns.
func (t *table) cost(c Cost) {
	t.print(fmt.Sprintf("\n  %-22s %14s", "Cost", "actual"))
	if c.Estimated != nil {
		t.print(fmt.Sprintf(" %14s", "estimated"))
	}
	t.print("\n")
	row := func(label string, form func(Figures) string) {
		t.print(fmt.Sprintf("  %-22s %14s", label, form(c.Actual)))
		if c.Estimated != nil {
			t.print(fmt.Sprintf(" %14s", form(*c.Estimated)))
		}
		t.print("\n")
	}
	row("requests", func(f Figures) string { return FormatCount(f.Requests) })
	row("received", func(f Figures) string { return FormatBytes(f.Bytes) })
	row("duration", func(f Figures) string { return formatSeconds(f.Duration) })
	row("store: reads", func(f Figures) string { return FormatCount(f.Calls.Reads) })
	row("store: lists", func(f Figures) string { return FormatCount(f.Calls.Lists) })
	row("store: writes", func(f Figures) string { return FormatCount(f.Calls.Writes) })
	row("store: deletes", func(f Figures) string { return FormatCount(f.Calls.Deletes) })
	row("store: written", func(f Figures) string { return FormatBytes(f.Written) })
	if c.Prices != nil {
		dollars := func(of func(price.Price) float64) func(Figures) string {
			return func(f Figures) string {
				if f.Price == nil {
					return "-"
				}
				return fmt.Sprintf("$%.4f", of(*f.Price))
			}
		}
		row("price of calls", dollars(func(p price.Price) float64 { return p.Calls }))
		row("price of a month", dollars(func(p price.Price) float64 { return p.Storage }))
		t.print("      " + c.Prices.Name + ", as of " + c.Prices.AsOf + "\n")
	}
	if c.Estimated != nil {
		t.print("      basis of the estimate: " + c.Basis + "\n")
	}
}
