package alarm

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

// Breach is an alert that is raised.
type Breach struct {
	Job      string `json:"job"`
	Rule     string `json:"rule"`
	Provider string `json:"provider,omitempty"`
	// Of an alert about runs: the schedule that started them, and which part of the job's work they do; see selection.
	Schedule  string    `json:"schedule,omitempty"`
	Selection string    `json:"selection,omitempty"`
	Since     time.Time `json:"since"`
	RunID     string    `json:"run_id"` // of the run that raised it
	Text      string    `json:"text"`
	Untold    bool      `json:"untold,omitempty"` // a silence kept it from being sent
}

// key identifies an alert: runs of a schedule share theirs, and so do other runs of one selection.
func (b Breach) key() string {
	key := strings.Join([]string{b.Job, b.Rule, b.Provider}, "/")
	switch {
	case b.Schedule != "":
		return key + "/schedule=" + b.Schedule
	case b.Selection != "":
		return key + "/" + b.Selection
	}
	return key
}

// Who is what the alert is about, for people.
func (b Breach) Who() string {
	switch {
	case b.Rule == "schedule" || b.Rule == "late":
		return "schedule " + b.Provider + " (" + b.Job + ")"
	case b.Provider != "":
		return b.Provider + " (" + b.Job + ")"
	case b.Schedule != "":
		return "schedule " + b.Schedule + " (" + b.Job + ")"
	}
	var parts []string
	chosen, _ := url.ParseQuery(b.Selection) // selection wrote it
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		parts = append(parts, strings.ReplaceAll(name, "-", " ")+" "+some(chosen[name], ", ", " and "))
	}
	if parts == nil {
		return b.Job
	}
	return b.Job + " for " + strings.Join(parts, ", ")
}

// maxNamed is how many names a sentence has.
const maxNamed = 10

// some joins names, of many only the first. last is between the last two.
func some(names []string, between, last string) string {
	n := len(names)
	if n > maxNamed {
		names, n = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", n-maxNamed)), maxNamed+1
	}
	if n < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n-1], between) + last + names[n-1]
}

// flagDashes and exitStatus are what only the command line says in an error.
var (
	flagDashes = regexp.MustCompile(`(^|[\s("'=])--([a-z])`)
	exitStatus = regexp.MustCompile(` \(exit status \d+\)`)
)

// Sentence says what is wrong, without a full stop at its end.
func (b Breach) Sentence() string {
	if b.Rule != "run_failed" {
		return b.about()
	}
	text := b.plain()
	for prefix, verb := range map[string]string{runs.NotBegun: " did not begin: ", interrupted: " was interrupted: "} {
		if why, ok := strings.CutPrefix(text, prefix+": "); ok {
			return b.Who() + verb + why
		}
	}
	return b.Who() + " failed: " + text
}

// interrupted begins the text of an alert about a run that was interrupted.
const interrupted = "interrupted"

// plain is the alert's text without the words of the command line, and without the name that the sentence begins with.
func (b Breach) plain() string {
	text := exitStatus.ReplaceAllString(flagDashes.ReplaceAllString(b.Text, "$1$2"), "")
	return strings.TrimSuffix(strings.TrimPrefix(text, cmp.Or(b.Provider, "\n")+": "), ".")
}

// about is a sentence of what the alert is about and its text, which may begin with "it".
func (b Breach) about() string {
	text := b.plain()
	if rest, ok := strings.CutPrefix(text, "it "); ok {
		return b.Who() + " " + rest
	}
	return b.Who() + ": " + text
}

// Page is the page that shows more about the alert.
func (b Breach) Page() string {
	switch {
	case b.RunID != "":
		return "/runs/" + b.RunID
	case b.Rule == "schedule" || b.Rule == "late":
		return "/schedules"
	case b.Rule == removalRule:
		return "/removals"
	}
	return "/alerts"
}

// Named is the name by which a silence covers the alert.
func (b Breach) Named() string { return cmp.Or(b.Provider, b.Schedule) }

// covers reports whether a run of the selection did the work that an alert is about.
func covers(selection string, b Breach) bool {
	wide, _ := url.ParseQuery(selection) // selection wrote both
	narrow, _ := url.ParseQuery(b.Selection)
	for name, chosen := range wide {
		of := narrow[name]
		if b.Provider != "" {
			of = []string{strings.ToLower(b.Provider)}
		}
		if len(of) == 0 || slices.ContainsFunc(of, func(v string) bool { return !slices.Contains(chosen, v) }) {
			return false
		}
	}
	return true
}

// finding is a rule that was checked, and whether it is broken.
type finding struct {
	Breach
	Broken bool
}

// noComplaint is the text of a finding that ends a quality alert.
const noComplaint = "nothing is wrong any more"

// judge checks a run: its end, its figures against the job's thresholds, and what its
// report says about its providers.
func judge(j known.Job, limits alert.Thresholds, r ledger.Report) []finding {
	var out []finding
	find := func(rule, provider string, broken bool, text string) {
		out = append(out, finding{Breach{Job: j.Name, Rule: rule, Provider: provider, RunID: r.RunID, Text: text}, broken})
	}
	switch r.State {
	case ledger.Failed, ledger.Interrupted:
		text := cmp.Or(r.Error, "its log may say why")
		if r.State == ledger.Interrupted {
			text = interrupted + ": " + text
		}
		find("run_failed", "", true, text)
	case ledger.Done:
		find("run_failed", "", false, "a run is done again")
	}
	if r.State.Over() {
		judgeReport(r, find)
	}
	failed, of := j.Failures(r)
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
		find("provider", p.Provider, p.Stopped(), siteText(p.Stopped(), p.State, p.Reason))
		complaints := slices.Concat(p.Alerts, p.Warnings)
		find("quality", p.Provider, len(complaints) > 0, cmp.Or(strings.Join(complaints, "; "), noComplaint))
	}
	if rows != nil {
		return
	}
	for _, st := range r.Sites {
		closed := st.State != ledger.SiteOpen
		find("provider", st.Site, closed, siteText(closed, st.State, st.Text()))
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

// siteText says what became of a provider, publisher or site.
func siteText(closed bool, state, reason string) string {
	switch {
	case !closed:
		return "it is open again"
	case state == "done": // as far as it could be reached
		return strings.TrimPrefix(reason, "it ")
	}
	return strings.TrimSuffix("it was "+state+": "+strings.TrimPrefix(reason, "it is "+state+": "), ": ")
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
