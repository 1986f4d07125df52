package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
)

// breach is an alert that is raised.
type breach struct {
	Job      string    `json:"job"`
	Rule     string    `json:"rule"`
	Provider string    `json:"provider,omitempty"`
	Since    time.Time `json:"since"`
	RunID    string    `json:"run_id"` // of the run that raised it
	Text     string    `json:"text"`
	Untold   bool      `json:"untold,omitempty"` // a silence kept it from being sent
}

func (b breach) key() string { return strings.Join([]string{b.Job, b.Rule, b.Provider}, "/") }

// finding is a rule that was checked, and whether it is broken.
type finding struct {
	breach
	broken bool
}

// noComplaint is the text of a finding that ends a quality alert.
const noComplaint = "nothing is wrong any more"

// judge checks a run: its end, its figures against the job's thresholds, and what its
// report says about its providers.
func judge(j job, limits alert.Thresholds, r ledger.Report) []finding {
	var out []finding
	find := func(rule, provider string, broken bool, text string) {
		out = append(out, finding{breach{Job: j.Name, Rule: rule, Provider: provider, RunID: r.RunID, Text: text}, broken})
	}
	switch r.State {
	case ledger.Failed, ledger.Interrupted:
		text := cmp.Or(r.Error, "it gave no reason; see its log")
		if r.State == ledger.Interrupted {
			text = "interrupted: " + text
		}
		find("run_failed", "", true, text)
	case ledger.Done:
		find("run_failed", "", false, "a run is done")
	}
	if r.State.Over() {
		judgeReport(r, find)
	}
	failed, of := j.failures(r)
	figures := limits.JudgeRun(r, failed, of)
	if r.State == ledger.Done {
		for _, row := range ledger.Rows[alert.Row](r) {
			if !row.Stopped() { // judgeReport has a finding for it
				figures = append(figures, limits.JudgeRow(row)...)
			}
		}
	}
	for _, f := range figures {
		find(f.Rule, f.Provider, f.Raised, f.Text)
	}
	return out
}

// judgeReport finds what a run's report says about its providers or sites.
func judgeReport(r ledger.Report, find func(rule, provider string, broken bool, text string)) {
	rows := ledger.Rows[alert.Row](r)
	for _, p := range rows {
		find("provider", p.Provider, p.Stopped(), strings.TrimSuffix(fmt.Sprintf("it was %s: %s", cmp.Or(p.State, "crawled"), p.Reason), ": "))
		find(alert.Terms, p.Provider, p.TermsChanged != "", cmp.Or(p.TermsChanged, "somebody has read its terms of service"))
		complaints := slices.Concat(p.Alerts, p.Warnings)
		find("quality", p.Provider, len(complaints) > 0, cmp.Or(strings.Join(complaints, "; "), noComplaint))
	}
	if rows != nil {
		return
	}
	if len(r.Complaints) == 0 {
		for _, text := range r.Alerts {
			find("quality", "", true, text)
		}
	}
	for _, source := range sources(r.Complaints) {
		var texts []string
		for _, c := range r.Complaints {
			if c.Source == source {
				texts = append(texts, c.Text)
			}
		}
		find("quality", source, true, strings.Join(texts, "; "))
	}
}

// sources are the sources of complaints, each once.
func sources(all []ledger.Complaint) []string {
	var out []string
	for _, c := range all {
		if !slices.Contains(out, c.Source) {
			out = append(out, c.Source)
		}
	}
	return out
}
