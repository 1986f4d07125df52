// Package alert compares the figures of a run with thresholds, for the run's own
// report and for the server. Both use the same rules. Each figure has one unit: a
// share from 0 to 1, seconds, or a count. No promise: see docs/library.md.
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

// direction says on which side of its limit a figure raises an alert.
type direction string

// The directions.
const (
	Above   direction = "above"
	below   direction = "below"
	AtLeast direction = "at least" // compares the figure without its sign
)

// Threshold is the limit of one figure.
type Threshold struct {
	Limit     float64 // in Unit; 0 turns the alert off
	Unit      Unit
	Direction direction
}

// Broken reports whether a figure raises the alert. It ignores differences below a
// billionth, which come from floating-point arithmetic.
func (t Threshold) Broken(figure float64) bool {
	const fine = 1e9
	figure, limit := math.Round(fine*figure), math.Round(fine*t.Limit)
	switch {
	case t.Limit == 0:
		return false
	case t.Direction == below:
		return figure < limit
	case t.Direction == AtLeast:
		return math.Abs(figure) >= limit
	}
	return figure > limit
}

// format writes a figure and the limit, with enough digits to show that they differ.
func (t Threshold) format(figure float64) (f, limit string) {
	switch t.Unit {
	case Share:
		return formatShares(figure, t.Limit)
	case Seconds:
		return formatDurations(figure, t.Limit)
	}
	return strconv.FormatFloat(figure, 'f', -1, 64), strconv.FormatFloat(t.Limit, 'f', -1, 64)
}

// rule is an alert that a job's configuration can set a threshold for.
type rule struct {
	name string
	Threshold
	max     float64 // the maximum of its limit, for a share
	sampled bool    // a rate of requests or items, which needs MinimumSamples of them
	text    string  // %s is the figure
}

// MinimumSamples is the name in Thresholds of the minimum number of requests or items
// for a rate to be judged.
const MinimumSamples = "minimum_samples"

var rules = []rule{
	{"failure_rate", Threshold{0.2, Share, Above}, 1, true, "%s of the work failed"},
	{Freshness, Threshold{0, Seconds, Above}, 0, false, "the last run that was done ended %s ago"},
	{"success_rate", Threshold{0.9, Share, below}, 1, true, "%s of the requests were answered by 200 or 304"},
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

// InForce is an alert that can be raised, and when that happens.
type InForce struct {
	Rule string `json:"rule"`
	Text string `json:"text"`
}

// Always are the alerts without a limit, which every job has.
var Always = []InForce{
	{"run_failed", "a run failed, was interrupted or did not begin"},
	{"provider", "a provider, publisher or site was skipped, stopped, held, blocked or out of reach"},
	{"quality", "a report says what is wrong with a provider, publisher or site"},
	{"schedule", "a scheduled run did not start"},
	{"late", "a scheduled run was skipped because another run of its job was still active"},
	{"removal", "a request to remove a provider has less than 24 hours left"},
}

// InForce are the alerts that the limits turn on.
func (t Thresholds) InForce() (out []InForce) {
	words := map[direction]string{Above: "more than %s", below: "less than %s", AtLeast: "%s or more"}
	for _, r := range rules {
		if r.Limit = t[r.name]; r.Limit != 0 {
			_, limit := r.format(r.Limit)
			out = append(out, InForce{r.name, fmt.Sprintf(r.text, fmt.Sprintf(words[r.Direction], limit))})
		}
	}
	return out
}

// Names are the names of all alerts: of the rules, and of those without a limit.
func Names() []string {
	names := Rules()
	for _, a := range Always {
		names = append(names, a.Rule)
	}
	return names
}

// Freshness is the rule about the time since a job's last run that was done. It is off
// unless a limit is set.
const Freshness = "freshness"

// PageRules are the rules by which a run of a job that crawls pages judges itself: all
// except failure_rate and freshness.
func PageRules() []string { return Rules()[2:] }

// Thresholds are limits by the names of rules, in the units of the rules. A rule that
// is absent is off.
type Thresholds map[string]float64

// Defaults are the default limits of rules.
func Defaults(names ...string) Thresholds {
	t := Thresholds{}
	for _, name := range names {
		if r, ok := ruleNamed(name); ok && r.Limit != 0 {
			t[name] = r.Limit
		}
	}
	return t
}

// Set parses and sets the limit of a rule: a share like 0.2, a time like 5s or 3h; 0
// turns the alert off.
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

// Parse returns the limits of rules: the defaults, changed by a text such as
// success_rate=0.85,mean_response=3s.
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
	return fmt.Errorf("%q is not an alert; use %s", name, strings.Join(names, ", "))
}

// Figure is a value to be judged by a rule.
type Figure struct {
	Rule     string
	Provider string // or site; "" for the whole run
	Value    float64
	Samples  int64  // how many requests or items a rate is of
	Text     string // replaces the rule's text; %s is the value
}

// Finding is a figure that was judged.
type Finding struct {
	Rule, Provider string
	Value          float64
	Threshold
	Raised bool
	Text   string
}

// Judge compares a figure with its limit. judged is false if the rule is off or if
// there are too few samples, which is neither good nor bad.
func (t Thresholds) Judge(f Figure) (finding Finding, judged bool) {
	r, ok := ruleNamed(f.Rule)
	r.Limit = t[f.Rule]
	if !ok || r.Limit == 0 || r.sampled && float64(f.Samples) < t[MinimumSamples] {
		return Finding{}, false
	}
	value, limit := r.format(f.Value)
	text := fmt.Sprintf(cmp.Or(f.Text, r.text), value) + " (limit " + limit + ")"
	return Finding{f.Rule, f.Provider, f.Value, r.Threshold, r.Broken(f.Value), text}, true
}

// formatShares writes two shares, with enough digits to show that they differ.
func formatShares(value, limit float64) (v, l string) {
	for digits := 1; ; digits++ {
		v, l = strconv.FormatFloat(100*value, 'f', digits, 64)+" %", strconv.FormatFloat(100*limit, 'f', -1, 64)+" %"
		if w := strconv.FormatFloat(100*limit, 'f', digits, 64) + " %"; v != w || value == limit || digits == 6 {
			return v, l
		}
	}
}

// formatDurations writes two times in seconds, each in suitable units.
func formatDurations(value, limit float64) (v, l string) {
	v, l = formatDuration(value), formatDuration(limit)
	if v == l && value != limit {
		v = time.Duration(value * float64(time.Second)).String()
	}
	return v, l
}

// formatDuration writes 11520 as 3 h 12 min.
func formatDuration(s float64) string {
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
