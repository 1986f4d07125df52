package alert

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
)

// TestParse changes the defaults.
func TestParse(t *testing.T) {
	with := func(change func(Thresholds)) Thresholds {
		want := Thresholds{"success_rate": 0.9, "pages_change": 0.5, "mean_response": 5, "error_rate": 0.2, "empty_rate": 0.1, "duration": 10800, "retry_rate": 0.15}
		change(want)
		return want
	}
	for text, want := range map[string]Thresholds{
		"":                  with(func(Thresholds) {}),
		"success_rate=0.85": with(func(w Thresholds) { w["success_rate"] = 0.85 }),
		"duration=6h, error_rate=0,mean_response=300ms": with(func(w Thresholds) { w["duration"], w["mean_response"] = 21600, 0.3; delete(w, "error_rate") }),
		"pages_change=2,empty_rate=1,retry_rate=0.5,":   with(func(w Thresholds) { w["pages_change"], w["empty_rate"], w["retry_rate"] = 2, 1, 0.5 }),
	} {
		got, err := Parse(text, PageRules()...)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, says := range map[string]string{"success=1": `"success" is not an alert; use success_rate`, "error_rate=20": "error_rate=20: use a share from 0 to 1", "error_rate=NaN": "use a share",
		"retry_rate": "retry_rate=: use a share", "duration=3": "duration=3: use a duration", "mean_response=-1s": "use a duration", "=1": `"" is not an alert`,
		"failure_rate=0.5": `"failure_rate" is not an alert`, "minimum_samples=5": `"minimum_samples" is not an alert`, "pages_change=11": "from 0 to 10"} {
		_, err := Parse(text, PageRules()...)
		require.ErrorContains(t, err, says)
	}
	require.ErrorContains(t, Thresholds{}.Set(MinimumSamples, "0"), "minimum_samples=0: use 1 or more")
}

// TestJudge compares figures with their limits: at a limit, over it, and where a rule
// does not apply.
func TestJudge(t *testing.T) {
	limits := Defaults(Rules()...)
	limits[MinimumSamples] = 20
	for _, c := range []struct {
		f      Figure
		judged bool
		raised bool
		text   string
	}{
		{Figure{Rule: "success_rate", Value: 0.9, Samples: 20}, true, false, "90.0 % of the requests were answered by 200 or 304 (limit 90 %)"},
		{Figure{Rule: "success_rate", Value: 0.8999, Samples: 20}, true, true, "89.99 % of the requests were answered by 200 or 304 (limit 90 %)"},
		{Figure{Rule: "success_rate", Value: 0, Samples: 19}, false, false, ""},
		{Figure{Rule: "error_rate", Value: 0.1 + 0.1, Samples: 100}, true, false, "20.0 % of the requests were answered by 4xx or 5xx (limit 20 %)"},
		{Figure{Rule: "retry_rate", Value: 0.16, Samples: 100}, true, true, "16.0 % of the requests were retries (limit 15 %)"},
		{Figure{Rule: "pages_change", Value: -0.5}, true, true, "the number of pages changed by -50.0 % (limit 50 %)"},
		{Figure{Rule: "pages_change", Value: 0.49}, true, false, "the number of pages changed by 49.0 % (limit 50 %)"},
		{Figure{Rule: "duration", Value: 10800.25, Text: "the session took %s"}, true, true, "the session took 3h0m0.25s (limit 3 h)"},
		{Figure{Rule: "mean_response", Value: 5.2, Samples: 20}, true, true, "it answers after 5.2 s on average (limit 5 s)"},
		{Figure{Rule: "no_such_rule", Value: 1, Samples: 100}, false, false, ""},
	} {
		got, judged := limits.Judge(c.f)
		assert.Equal(t, c.judged, judged, c.text)
		assert.Equal(t, c.raised, got.Raised, c.text)
		assert.Equal(t, c.text, got.Text)
	}
	_, judged := Thresholds{}.Judge(Figure{Rule: "duration", Value: 1e9})
	assert.False(t, judged, "a rule that is off")
}

// TestThreshold has figures whose sums are not exact in binary.
func TestThreshold(t *testing.T) {
	fall := Threshold{0.3, Share, Above}
	assert.False(t, fall.Broken(1-0.7))
	assert.True(t, fall.Broken(0.31))
	runs := Threshold{3, Count, AtLeast}
	assert.True(t, runs.Broken(3))
	assert.False(t, runs.Broken(2))
	assert.False(t, Threshold{0, Share, below}.Broken(-1), "off")
	f, limit := runs.format(4)
	assert.Equal(t, []string{"4", "3"}, []string{f, limit})
}

// TestJudgeRow judges providers by their rows, also those that could not be crawled.
func TestJudgeRow(t *testing.T) {
	limits := Defaults(PageRules()...)
	full, half := 100.0, 50.0
	raised := func(r Row) (out []string) {
		for _, f := range limits.JudgeRow(r) {
			assert.Equal(t, r.Provider, f.Provider)
			if f.Raised {
				out = append(out, f.Rule+": "+f.Text)
			}
		}
		return out
	}
	fine := Row{Provider: "p", State: "done", Requests: 100, SuccessRate: &full, TotalPages: 10, PreviousPages: 10}
	assert.Empty(t, raised(fine))
	few := fine
	few.SuccessRate = &half
	assert.Equal(t, []string{"success_rate: 50.0 % of the requests were answered by 200 or 304 (limit 90 %)"}, raised(few))
	few.SuccessRate = nil
	assert.Empty(t, raised(few), "a job that does not give the rate")
	less := fine
	less.TotalPages = 5
	assert.Equal(t, []string{"pages_change: it has 5 pages, 10 at the last crawl: -50.0 % (limit 50 %)"}, raised(less))
	less.State = "cut"
	assert.Empty(t, raised(less), "a part of its pages is no change")
	assert.Equal(t, []string{"success_rate: it cannot be reached"}, raised(Row{Provider: "p", State: "unreachable", TotalPages: 1, PreviousPages: 100}))

	for rule, r := range map[string]Row{"mean_response": {AvgResponseMS: 5001}, "empty_rate": {EmptyRate: 10.1}, "error_rate": {ErrorRate: 20.1},
		"retry_rate": {RetryRate: 15.1}, "success_rate": {SuccessRate: new(89.9)}, "pages_change": {TotalPages: 150, PreviousPages: 100}} {
		r.Provider, r.Requests = "p", 100
		require.Len(t, raised(r), 1, rule)
		assert.Contains(t, raised(r)[0], rule+": ")
	}
	assert.Empty(t, raised(Row{TotalPages: 51, PreviousPages: 100}))
	assert.Empty(t, raised(Row{TotalPages: 50}), "its first pages")

	for state, stopped := range map[string]bool{"": false, "run": false, "done": false, "cut": false, "open": false, "held": true, "skipped": true, "stopped": true, "unreachable": true} {
		assert.Equal(t, stopped, Row{State: state}.Stopped(), state)
	}
	assert.True(t, Row{State: "done", Reason: "unreachable"}.Stopped())
}

// TestJudgeRun judges the rates of complete runs only, and the duration of every run.
func TestJudgeRun(t *testing.T) {
	limits := Defaults(Rules()...)
	r := ledger.Report{State: ledger.Running, Duration: 4 * 3600, HTTP: ledger.HTTP{Requests: 100, Retries: 50, ByStatus: ledger.Counts{"500": 100}}}
	rules := func(state ledger.State) (out []string) {
		r.State = state
		for _, f := range limits.JudgeRun(r, 10, 10) {
			if f.Raised {
				out = append(out, f.Rule)
			}
		}
		return out
	}
	assert.Equal(t, []string{"duration"}, rules(ledger.Running))
	assert.Equal(t, "the run has taken 4 h (limit 3 h)", limits.JudgeRun(ledger.Report{State: ledger.Running, Duration: 4 * 3600}, 0, 0)[0].Text)
	assert.Equal(t, []string{"duration"}, rules(ledger.Interrupted))
	assert.Equal(t, []string{"duration", "failure_rate", "success_rate", "error_rate", "retry_rate"}, rules(ledger.Done))

	// Sources that a site does not have are no failures; pages that are gone are.
	r = ledger.Report{HTTP: ledger.HTTP{Requests: 22, Absent: 4, ByStatus: ledger.Counts{"200": 18, "404": 4}}}
	assert.Equal(t, []string{"failure_rate"}, rules(ledger.Done))
	r.HTTP.Absent = 0
	assert.Equal(t, []string{"failure_rate", "success_rate"}, rules(ledger.Done))
}

func TestUnits(t *testing.T) {
	for s, want := range map[float64]string{0.12: "120 ms", 10: "10 s", 12.34: "12.3 s", 60: "1 min", 125: "2 min 5 s", 10800: "3 h", 11520: "3 h 12 min", 90000: "25 h"} {
		assert.Equal(t, want, formatDuration(s))
	}
	v, l := formatDurations(10800.25, 10800)
	assert.Equal(t, []string{"3h0m0.25s", "3 h"}, []string{v, l}, "what differs does not look the same")
	v, l = formatShares(0.2000001, 0.2)
	assert.NotEqual(t, v, l)
	assert.Zero(t, share(1, 0))
}
