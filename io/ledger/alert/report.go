package alert

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
)

// JudgeRun judges a run by its report, without its providers; failed is how many of
// its items failed, of is how many items it had. A run that is not done is judged only
// by its duration, because its rates are those of a part.
func (t Thresholds) JudgeRun(r ledger.Report, failed, of int64) []Finding {
	took := ""
	if !r.State.Over() {
		took = "the run has taken %s"
	}
	figures := []Figure{{Rule: "duration", Value: r.Duration, Text: took}}
	if r.State == ledger.Done {
		n := r.HTTP.Requests - r.HTTP.Absent // a source that a site does not have is no failure
		read := r.Counts["articles_fetched"]
		figures = append(figures,
			Figure{Rule: "failure_rate", Value: share(failed, of), Samples: of},
			Figure{Rule: "success_rate", Value: share(r.HTTP.ByStatus["200"]+r.HTTP.ByStatus["304"], n), Samples: n},
			Figure{Rule: "error_rate", Value: share(r.HTTP.Class('4')+r.HTTP.Class('5')-r.HTTP.Absent, n), Samples: n},
			Figure{Rule: "retry_rate", Value: share(r.HTTP.Retries, n), Samples: n},
			Figure{Rule: "empty_rate", Value: share(r.Counts["articles_empty"], read), Samples: read})
	}
	return t.judge(figures)
}

// Row has the fields of a report's row for a provider, publisher or site that alerts
// need.
type Row struct {
	Provider      string   `json:"provider"`
	State         string   `json:"state"`
	Reason        string   `json:"reason"`
	Alerts        []string `json:"alerts"`
	Warnings      []string `json:"warnings"`
	TotalPages    int64    `json:"total_pages"`
	PreviousPages int64    `json:"previous_pages"`
	Requests      int64    `json:"requests"`
	// Rates are percentages, as a report shows them.
	SuccessRate   *float64 `json:"success_rate"` // nil where the job does not give it
	ErrorRate     float64  `json:"error_rate"`
	RetryRate     float64  `json:"retry_rate"`
	EmptyRate     float64  `json:"empty_rate"`
	AvgResponseMS float64  `json:"avg_response_ms"`
}

// The states of a row in which a provider was crawled to its end, and in which
// the next run continues it.
var (
	complete  = []string{"", "run", "done"}
	continued = []string{"cut", "open"}
)

// Stopped reports whether a provider was skipped, stopped or unreachable.
func (r Row) Stopped() bool {
	return !slices.Contains(complete, r.State) && !slices.Contains(continued, r.State) || strings.Contains(r.Reason, "unreachable")
}

// JudgeRow judges one provider.
func (t Thresholds) JudgeRow(r Row) []Finding {
	var out []Finding
	var figures []Figure
	success, on := t.Judge(Figure{Rule: "success_rate", Samples: math.MaxInt64})
	switch {
	case r.State == "unreachable" && on:
		success.Provider, success.Text = r.Provider, "it cannot be reached"
		out = append(out, success)
	case r.State != "unreachable" && r.SuccessRate != nil && r.Requests > 0:
		figures = append(figures, Figure{Rule: "success_rate", Value: *r.SuccessRate / 100, Samples: r.Requests})
	}
	if slices.Contains(complete, r.State) && r.PreviousPages > 0 {
		figures = append(figures, Figure{Rule: "pages_change", Value: share(r.TotalPages-r.PreviousPages, r.PreviousPages),
			Text: fmt.Sprintf("it has %d pages, %d at the last crawl: %%s", r.TotalPages, r.PreviousPages)})
	}
	figures = append(figures,
		Figure{Rule: "mean_response", Value: r.AvgResponseMS / 1000, Samples: r.Requests},
		Figure{Rule: "error_rate", Value: r.ErrorRate / 100, Samples: r.Requests},
		Figure{Rule: "empty_rate", Value: r.EmptyRate / 100, Samples: r.Requests},
		Figure{Rule: "retry_rate", Value: r.RetryRate / 100, Samples: r.Requests})
	for i := range figures {
		figures[i].Provider = r.Provider
	}
	return append(out, t.judge(figures)...)
}

func (t Thresholds) judge(figures []Figure) (out []Finding) {
	for _, f := range figures {
		if finding, judged := t.Judge(f); judged {
			out = append(out, finding)
		}
	}
	return out
}

func share(part, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}
