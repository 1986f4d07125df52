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

// Lines are the figures as people read them, each with its label. The prices come last, where there are any.
func (f Figures) Lines() [][2]string {
	lines := [][2]string{
		{"requests", FormatCount(f.Requests)}, {"received", FormatBytes(f.Bytes)}, {"duration", formatSeconds(f.Duration)},
		{"store: reads", FormatCount(f.Calls.Reads)}, {"store: lists", FormatCount(f.Calls.Lists)}, {"store: writes", FormatCount(f.Calls.Writes)},
		{"store: deletes", FormatCount(f.Calls.Deletes)}, {"store: written", FormatBytes(f.Written)},
	}
	if p := f.Price; p != nil {
		lines = append(lines, [2]string{"price of calls", fmt.Sprintf("$%.4f", p.Calls)}, [2]string{"price of a month", fmt.Sprintf("$%.4f", p.Storage)})
	}
	return lines
}

// Lines are the figures of a cost as people read them.
func (c Cost) Lines() (lines []CostLine) {
	var estimated [][2]string
	if c.Estimated != nil {
		estimated = c.Estimated.Lines()
	}
	for i, l := range c.Actual.Lines() {
		line := CostLine{Label: l[0], Actual: l[1]}
		if i < len(estimated) {
			line.Estimated = estimated[i][1]
		} else if estimated != nil {
			line.Estimated = "-"
		}
		lines = append(lines, line)
	}
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
