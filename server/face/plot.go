package face

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger"
)

// Plots are small SVG pictures without axes; runs.LineChart and runs.ColumnChart draw those with axes. No script draws them, and their
// colours are classes of style.css. A label says in words what a plot shows. A plot in place of a table has the table next to it.

// The size of a small plot, and of one that is alone.
const (
	plotWidth, plotHeight = 160.0, 32.0
	wideWidth, wideHeight = 720.0, 160.0
)

func plot(label, class string, width, height float64, inside string) template.HTML {
	//nolint:gosec // numbers, classes of ours and an escaped label
	return template.HTML(fmt.Sprintf(`<svg class="plot %s" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">%s</svg>`,
		class, width, height, width, height, template.HTMLEscapeString(label), inside))
}

// tower draws a bar of a strip, which has its text next to it; share is its height, from 0 to 1.
func tower(share float64) template.HTML {
	h := max(3, 40*share)
	return template.HTML(fmt.Sprintf(`<svg class="tower" viewBox="0 0 10 40" preserveAspectRatio="none" aria-hidden="true"><rect x="1" width="8" y="%.1f" height="%.1f"/></svg>`, //nolint:gosec // numbers
		40-h, h))
}

// columnPlot draws a column for each value; most is the value of a full column.
func columnPlot(label string, values []int64, most int64) template.HTML {
	var b strings.Builder
	each := plotWidth / float64(max(len(values), 1))
	for i, v := range values {
		if v <= 0 {
			continue
		}
		h := max(1.5, plotHeight*float64(v)/float64(max(most, 1)))
		fmt.Fprintf(&b, `<rect class="calm" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, each*(float64(i)+.1), plotHeight-h, each*.8, h)
	}
	fmt.Fprintf(&b, `<line class="grid" x1="0" y1="%g" x2="%g" y2="%g"/>`, plotHeight, plotWidth, plotHeight)
	return plot(label, "small", plotWidth, plotHeight, b.String())
}

// priced writes a value of a series.
func priced(s *explore.Series, v float64) string {
	return strings.TrimSpace(strconv.FormatFloat(v, 'f', -1, 64) + " " + shown(s.Unit))
}

// lastPrice is the present value of a series.
func lastPrice(s *explore.Series) string { return priced(s, s.Points[len(s.Points)-1].Value) }

// seriesText says in words how a value changed.
func seriesText(s *explore.Series) string {
	least, most, changes := s.Points[0].Value, s.Points[0].Value, 0
	for i, p := range s.Points[1:] {
		least, most = min(least, p.Value), max(most, p.Value)
		if p.Value != s.Points[i].Value {
			changes++
		}
	}
	first, last := s.Points[0].At.UTC().Format(time.DateOnly), s.Points[len(s.Points)-1].At.UTC().Format(time.DateOnly)
	if changes == 0 {
		return fmt.Sprintf("%s %s, the same from %s to %s", shown(s.Name), lastPrice(s), first, last)
	}
	times := "once"
	if changes > 1 {
		times = ledger.FormatCount(int64(changes)) + " times"
	}
	return fmt.Sprintf("%s %s, between %s and %s from %s to %s, changed %s", shown(s.Name), lastPrice(s), priced(s, least), priced(s, most),
		first, last, times)
}

// linePlot draws a series as steps: each value holds until the next one. A wide one that never changed is left out.
func linePlot(s *explore.Series, wide bool) template.HTML {
	if len(s.Points) < 2 {
		return ""
	}
	least, most := s.Points[0].Value, s.Points[0].Value
	for _, p := range s.Points {
		least, most = min(least, p.Value), max(most, p.Value)
	}
	width, height, class := plotWidth, plotHeight, "small"
	switch {
	case wide && most == least:
		return "" // its caption states the only value
	case wide:
		width, height, class = wideWidth, wideHeight, "wide"
	}
	from := s.Points[0].At
	span := max(s.Points[len(s.Points)-1].At.Sub(from).Seconds(), 1)
	y := func(v float64) float64 {
		if most == least {
			return height / 2
		}
		return height - 3 - (height-6)*(v-least)/(most-least)
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M0 %.1f", y(s.Points[0].Value))
	for _, p := range s.Points[1:] {
		fmt.Fprintf(&path, "H%.1fV%.1f", width*p.At.Sub(from).Seconds()/span, y(p.Value))
	}
	return plot(seriesText(s), class, width, height, fmt.Sprintf(`<path class="line calm" d="%s"/>`, path.String()))
}

// maxShade is how many shades a table of figures has, without that of 0.
const maxShade = 5

// shade is the class of a figure in a table.
func shade(v, most int64) string {
	if v <= 0 {
		return "heat-0"
	}
	return fmt.Sprint("heat-", 1+min(maxShade-1, maxShade*v/(most+1)))
}
