package runs

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/known"
)

// A chart is an SVG picture in the page; no script draws it. Its colours are classes
// of style.css. For people who cannot see it, its label and a table next to it have
// the same information.

const (
	chartWidth, chartHeight = 640.0, 180.0
	marginLeft, marginRight = 52.0, 8.0
	marginTop, marginBottom = 10.0, 26.0
)

// niceTop is a round number that is at least v.
func niceTop(v float64) float64 {
	if v <= 0 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*step >= v {
			return m * step
		}
	}
	return 10 * step
}

// short writes 12345 as 12.3k.
func short(v float64) string {
	for _, u := range []struct {
		over float64
		unit string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if v >= u.over {
			d := u.over
			if u.unit == "k" {
				d = 1e3
			}
			return strings.TrimSuffix(fmt.Sprintf("%.1f", v/d), ".0") + u.unit
		}
	}
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// frame begins a chart with its axis from 0 to top.
func frame(b *strings.Builder, label string, top float64) {
	fmt.Fprintf(b, `<svg class="chart" viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight,
		template.HTMLEscapeString(label))
	for i := range 5 {
		v := top * float64(i) / 4
		y := chartHeight - marginBottom - (chartHeight-marginTop-marginBottom)*float64(i)/4
		fmt.Fprintf(b, `<line class="grid" x1="%g" y1="%.1f" x2="%g" y2="%.1f"/>`, marginLeft, y, chartWidth-marginRight, y)
		fmt.Fprintf(b, `<text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`, marginLeft-6, y+4, short(v))
	}
}

// Point is a value at a time.
type Point struct {
	At time.Time
	V  float64
}

// LineChart draws values over time; unit goes into its label.
func LineChart(title, unit, class string, points []Point) template.HTML {
	if len(points) < 2 {
		return ""
	}
	most := slices.MaxFunc(points, func(a, b Point) int { return cmp.Compare(a.V, b.V) }).V
	top := niceTop(most)
	first, last := points[0].At, points[len(points)-1].At
	span := max(last.Sub(first).Seconds(), 1)
	var b strings.Builder
	frame(&b, fmt.Sprintf("%s: from %s to %s %s, at most %s", title, short(points[0].V), short(points[len(points)-1].V), unit, short(most)),
		top)
	var path strings.Builder
	for i, p := range points {
		x := marginLeft + (chartWidth-marginLeft-marginRight)*p.At.Sub(first).Seconds()/span
		y := chartHeight - marginBottom - (chartHeight-marginTop-marginBottom)*p.V/top
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", verb, x, y)
	}
	base := chartHeight - marginBottom
	fmt.Fprintf(&b, `<path class="area %s" d="%sL%g %gL%g %gZ"/><path class="line %s" d="%s"/>`, class, path.String(),
		chartWidth-marginRight, base, marginLeft, base, class, path.String())
	fmt.Fprintf(&b, `<text class="tick" x="%g" y="%g">%s</text><text class="tick" x="%g" y="%g" text-anchor="end">%s <tspan data-zone="">UTC</tspan></text></svg>`,
		marginLeft, chartHeight-8, at("tspan", first, time.TimeOnly), chartWidth-marginRight, chartHeight-8, at("tspan", last, time.TimeOnly))
	return template.HTML(b.String()) //nolint:gosec // made of numbers and an escaped label
}

const minute = "01-02 15:04"

// at is a time in UTC, in an element that says which it is, so that it can be written in another zone.
func at(element string, t time.Time, layout string) string {
	return fmt.Sprintf(`<%s data-at="%s">%s</%[1]s>`, element, t.UTC().Format(time.RFC3339), t.UTC().Format(layout))
}

// Rates are the differences of a run's samples, a second.
func Rates(samples []Sample, of func(Sample) int64) []Point {
	var out []Point
	if len(samples) > 0 {
		out = append(out, Point{At: samples[0].At})
	}
	for i := 1; i < len(samples); i++ {
		if dt := samples[i].At.Sub(samples[i-1].At).Seconds(); dt > 0 {
			out = append(out, Point{samples[i].At, max(0, float64(of(samples[i])-of(samples[i-1]))) / dt})
		}
	}
	return out
}

// Column is one run in a chart of runs.
type Column struct {
	At    time.Time
	Parts []Part
}

// Part is a piece of a column.
type Part struct {
	Class string
	V     float64
}

// ColumnChart draws stacked columns, one a run, oldest first.
func ColumnChart(title string, columns []Column) template.HTML {
	if len(columns) == 0 {
		return ""
	}
	most := 0.0
	for _, c := range columns {
		sum := 0.0
		for _, p := range c.Parts {
			sum += p.V
		}
		most = max(most, sum)
	}
	top := niceTop(most)
	var b strings.Builder
	frame(&b, fmt.Sprintf("%s of the last %d runs, oldest first, at most %s", title, len(columns), short(most)), top)
	width := (chartWidth - marginLeft - marginRight) / float64(max(len(columns), 12))
	scale := (chartHeight - marginTop - marginBottom) / top
	for i, c := range columns {
		y := chartHeight - marginBottom
		x := marginLeft + width*float64(i) + width*0.12
		for _, p := range c.Parts {
			h := p.V * scale
			y -= h
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f">%s</rect>`, p.Class, x, y, width*0.76, h,
				at("title", c.At, minute))
		}
	}
	fmt.Fprintf(&b, `<text class="tick" x="%g" y="%g">%s</text>`, marginLeft, chartHeight-8, at("tspan", columns[0].At, minute))
	if n := len(columns); n > 4 { // with fewer columns the two labels would overlap
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%g" text-anchor="end">%s</text>`, marginLeft+width*float64(n), chartHeight-8,
			at("tspan", columns[n-1].At, minute))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // made of numbers and escaped labels
}

// Bar is a row of a table with a bar in it.
type Bar struct {
	Name  string
	N     int64
	Class string
	Share float64 // percent of the sum
}

// Draw is the bar as SVG.
func (b Bar) Draw() template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="10"/><rect class="%s" width="%.2f" height="10"/></svg>`, b.Class, b.Share)) //nolint:gosec // numbers and a class of ours
}

// Bars are counts as rows, without those that are 0.
func Bars(counts ledger.Counts, class func(name string) string) []Bar {
	sum := known.Total(counts)
	var out []Bar
	for name, n := range counts {
		if n == 0 {
			continue
		}
		out = append(out, Bar{name, n, class(name), 100 * float64(n) / float64(max(sum, 1))})
	}
	slices.SortFunc(out, func(a, b Bar) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// StatusClass is the colour of an HTTP status.
func StatusClass(status string) string {
	switch {
	case strings.HasPrefix(status, "2"):
		return "good"
	case strings.HasPrefix(status, "3"):
		return "calm"
	case strings.HasPrefix(status, "4"):
		return "warn"
	}
	return "bad"
}
