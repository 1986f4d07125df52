// Package alert judges the figures of a run by thresholds: for the run's own
// report, and for the server that tells people. There is one set of rules, and a
// figure has one unit: a share from 0 to 1, seconds, or a count.
package alert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Unit is what a figure and its limit are measured in.
type Unit string

// The units.
const (
	Share   Unit = "share" // 0.2 is 20 %
	Seconds Unit = "seconds"
	Count   Unit = "count"
)

// Breaks says on which side of its limit a figure raises an alert.
type Breaks string

// The sides.
const (
	Above   Breaks = "above"
	Below   Breaks = "below"
	AtLeast Breaks = "at least" // in either direction, where a figure has a sign
)

// Threshold is the limit of one figure.
type Threshold struct {
	Limit  float64 // in Unit; 0 turns the alert off
	Unit   Unit
	Breaks Breaks
}

// Broken says that a figure raises the alert. Differences below a billionth are
// those of the arithmetic.
func (t Threshold) Broken(figure float64) bool {
	const fine = 1e9
	figure, limit := math.Round(fine*figure), math.Round(fine*t.Limit)
	switch {
	case t.Limit == 0:
		return false
	case t.Breaks == Below:
		return figure < limit
	case t.Breaks == AtLeast:
		return math.Abs(figure) >= limit
	}
	return figure > limit
}

// inWords writes a figure and the limit, with as many digits as tell them apart.
func (t Threshold) inWords(figure float64) (f, limit string) {
	switch t.Unit {
	case Share:
		return percents(figure, t.Limit)
	case Seconds:
		return spans(figure, t.Limit)
	}
	return strconv.FormatFloat(figure, 'f', -1, 64), strconv.FormatFloat(t.Limit, 'f', -1, 64)
}

// rule is an alert that a job's configuration can set a threshold for.
type rule struct {
	name string
	Threshold
	max     float64 // of its limit, for a share
	sampled bool    // of requests or items: of too few of them it says nothing
	text    string  // %s is the figure
}

// MinimumSamples is the name among Thresholds of how many requests or items a
// rate must be of to be judged.
const MinimumSamples = "minimum_samples"

var rules = []rule{
	{"failure_rate", Threshold{0.2, Share, Above}, 1, true, "%s of the work failed"},
	{"success_rate", Threshold{0.9, Share, Below}, 1, true, "%s of the requests were answered by 200 or 304"},
	{"pages_change", Threshold{0.5, Share, AtLeast}, 10, false, "the number of pages changed by %s"},
	{"mean_response", Threshold{5, Seconds, Above}, 0, true, "it answers after %s on average"},
	{"error_rate", Threshold{0.2, Share, Above}, 1, true, "%s of the requests were answered by 4xx or 5xx"},
	{"empty_rate", Threshold{0.1, Share, Above}, 1, true, "%s of the pages were empty; do the content selectors fit?"},
	{"duration", Threshold{3 * 60 * 60, Seconds, Above}, 0, false, "the run took %s"},
	{"retry_rate", Threshold{0.15, Share, Above}, 1, true, "%s of the requests were retries"},
}

func ruleNamed(name string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

// Rules are the names of all rules.
func Rules() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// OfPages are the rules for jobs that crawl pages: all but the rate of the work
// that failed.
func OfPages() []string { return Rules()[1:] }

// Thresholds are limits by the rules' names, in the rules' units; a rule that
// is not in it is off.
type Thresholds map[string]float64

// Defaults are the limits of rules that nobody has set.
func Defaults(names ...string) Thresholds {
	t := Thresholds{}
	for _, name := range names {
		if r, ok := ruleNamed(name); ok {
			t[name] = r.Limit
		}
	}
	return t
}

// Set reads the limit of a rule as a person writes it: a share as 0.2, a time as
// 5s or 3h; 0 turns the alert off.
func (t Thresholds) Set(name, text string) error {
	n, err := strconv.ParseFloat(text, 64)
	r, ok := ruleNamed(name)
	switch {
	case name == MinimumSamples:
		if err != nil || !(n >= 1) {
			return fmt.Errorf("%s=%s: use 1 or more", name, text)
		}
	case !ok:
		return unknown(name, Rules())
	case r.Unit == Seconds:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fmt.Errorf("%s=%s: use a duration, such as 5s or 3h", name, text)
		}
		n = d.Seconds()
	case err != nil || !(n >= 0 && n <= r.max):
		return fmt.Errorf("%s=%s: use a share from 0 to %g; 0.2 means 20 %%", name, text, r.max)
	}
	t[name] = n
	if n == 0 {
		delete(t, name)
	}
	return nil
}

// Parse gives the limits of rules, with what a text sets of them, such as
// success_rate=0.85,mean_response=3s, over the defaults.
func Parse(text string, names ...string) (Thresholds, error) {
	t := Defaults(names...)
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		if !slices.Contains(names, name) {
			return nil, unknown(name, names)
		}
		if err := t.Set(name, value); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func unknown(name string, names []string) error {
	return fmt.Errorf("%q is no alert; there are %s", name, strings.Join(names, ", "))
}

// Figure is a value to be judged by the rule of a name.
type Figure struct {
	Rule     string
	Provider string // or site; "" for the whole run
	Value    float64
	Samples  int64  // of so many requests or items
	Text     string // instead of the rule's; %s is the value
}

// Finding is a figure that was judged.
type Finding struct {
	Rule, Provider string
	Value          float64
	Threshold
	Raised bool
	Text   string
}

// Judge compares a figure with its limit. judged is false where the rule is off,
// and where there are too few samples: that is neither good nor bad.
func (t Thresholds) Judge(f Figure) (finding Finding, judged bool) {
	r, ok := ruleNamed(f.Rule)
	r.Limit = t[f.Rule]
	if !ok || r.Limit == 0 || r.sampled && float64(f.Samples) < t[MinimumSamples] {
		return Finding{}, false
	}
	value, limit := r.inWords(f.Value)
	text := fmt.Sprintf(cmp.Or(f.Text, r.text), value) + " (limit " + limit + ")"
	return Finding{f.Rule, f.Provider, f.Value, r.Threshold, r.Broken(f.Value), text}, true
}

// percents writes two shares, with as many digits as tell them apart.
func percents(value, limit float64) (v, l string) {
	for digits := 1; ; digits++ {
		v, l = strconv.FormatFloat(100*value, 'f', digits, 64)+" %", strconv.FormatFloat(100*limit, 'f', -1, 64)+" %"
		if w := strconv.FormatFloat(100*limit, 'f', digits, 64) + " %"; v != w || value == limit || digits == 6 {
			return v, l
		}
	}
}

// spans writes two times in seconds, each in the units that suit it.
func spans(value, limit float64) (v, l string) {
	v, l = span(value), span(limit)
	if v == l && value != limit {
		v = time.Duration(value * float64(time.Second)).String()
	}
	return v, l
}

// span writes 11520 as 3 h 12 min.
func span(s float64) string {
	d := time.Duration(s * float64(time.Second))
	h, m := d/time.Hour, d%time.Hour/time.Minute
	switch {
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 0, 64) + " ms"
	case d < time.Minute:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	case h == 0 && d%time.Minute < time.Second:
		return fmt.Sprintf("%d min", m)
	case h == 0:
		return fmt.Sprintf("%d min %d s", m, d%time.Minute/time.Second)
	case m == 0:
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d h %d min", h, m)
}
