package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// failures are the kinds of errors below HTTP, as in package web.
var failures = []string{"dns", "connect", "tls", "timeout", "reset", "blocked", "redirect", "too_large"}

// Timings say how long one domain took, in seconds.
type Timings struct {
	Domains       int64   `json:"domains"` // how many were measured
	Mean          float64 `json:"mean_s"`
	P50           float64 `json:"p50_s"`
	P95           float64 `json:"p95_s"`
	Max           float64 `json:"max_s"`
	DomainsPerSec float64 `json:"domains_per_s"` // over the whole run
}

// LaneReport is a lane's progress in the report.
type LaneReport struct {
	Lane      int       `json:"lane"`
	Hosts     int64     `json:"hosts"`
	HostsDone int64     `json:"hosts_done"`
	Finished  bool      `json:"finished"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Report is the run report: the object runs/{run_id}/report.json, and what
// --report writes.
type Report struct {
	RunID       string         `json:"run_id"`
	Job         string         `json:"job"`
	Runner      string         `json:"runner"`
	State       State          `json:"state"`
	StartedAt   time.Time      `json:"started_at"`
	FinishedAt  *time.Time     `json:"finished_at"`     // null while the run is active
	Duration    float64        `json:"duration_s"`      // so far, while the run is active; to the last sign of life of one that was killed
	Error       string         `json:"error,omitempty"` // why it failed or was interrupted
	Options     map[string]any `json:"options"`
	Counts      Counts         `json:"counts"`
	HTTP        HTTP           `json:"http"`
	Store       Counts         `json:"store"`                // calls by kind
	StoreBytes  Traffic        `json:"store_bytes,omitzero"` // of objects
	Timings     Timings        `json:"timings"`
	DeadLetters Counts         `json:"dead_letters"`         // by kind
	Alerts      []string       `json:"alerts"`               // texts for a person
	Complaints  []Complaint    `json:"complaints,omitempty"` // what of Alerts is about one source
	Sites       []SiteState    `json:"sites,omitempty"`      // the sites that the run judged, without their histories
	Lanes       []LaneReport   `json:"lanes"`
	Providers   any            `json:"providers,omitempty"` // the job's own rows, one for each provider
	Cost        *Cost          `json:"cost,omitempty"`
	Workers     []WorkerLines  `json:"workers,omitempty"` // only where a run is shown, not in its object
}

// BuildReport makes the report of a job's run from the sum of its lanes' tallies. The
// duration of a run that is not over ends at now, that of one that was killed with the last sign of its lanes.
func BuildReport(j Job, r Run, t Tally, now time.Time, lanes ...LaneProgress) Report {
	var sum Tally // a copy, so that the report shares nothing
	sum.Add(t)
	rep := Report{
		RunID: r.RunID, Job: r.Job, Runner: r.Runner, State: r.State, Error: r.Error,
		StartedAt: r.StartedAt.UTC().Truncate(time.Millisecond),
		Options:   maps.Clone(r.Options),
		Counts:    sum.Counts, HTTP: sum.HTTP, Store: sum.Store, StoreBytes: sum.StoreBytes, DeadLetters: sum.DeadLetters,
		Alerts: []string{}, Lanes: []LaneReport{},
	}
	end := now
	if !r.FinishedAt.IsZero() {
		end = r.FinishedAt
		at := end.UTC().Truncate(time.Millisecond)
		rep.FinishedAt = &at
	}
	if last := lastSign(lanes); (r.State == Interrupted || r.State == Silent) && last.After(r.StartedAt) && last.Before(end) {
		end = last
	}
	seconds := max(0, end.Sub(r.StartedAt).Seconds())
	rep.Duration = round(seconds)
	if rep.Options == nil {
		rep.Options = map[string]any{}
	}
	for _, c := range []*Counts{&rep.Counts, &rep.HTTP.ByStatus, &rep.HTTP.Failures, &rep.Store, &rep.DeadLetters} {
		if *c == nil {
			*c = Counts{}
		}
	}
	for _, k := range j.Counts {
		rep.Counts[k] += 0
	}
	for _, k := range failures {
		rep.HTTP.Failures[k] += 0
	}
	for _, w := range sum.Warnings {
		rep.Complain(j.Source, j.inWords(w))
	}
	rep.Timings = Timings{
		Domains: t.Timings.Count,
		Mean:    round(t.Timings.mean()), P50: round(t.Timings.quantile(0.50)), P95: round(t.Timings.quantile(0.95)),
		Max: round(t.Timings.Max),
	}
	if seconds > 0 {
		rep.Timings.DomainsPerSec = round(float64(t.Timings.Count) / seconds)
	}
	for _, p := range lanes {
		rep.Lanes = append(rep.Lanes, LaneReport{p.Lane, p.Hosts, p.HostsDone, p.Finished, p.UpdatedAt.UTC().Truncate(time.Millisecond)})
	}
	return rep
}

// round rounds to milliseconds.
func round(s float64) float64 { return math.Round(s*1000) / 1000 }

func (r Report) check() error {
	if r.RunID == "" {
		return errors.New("it has no run_id")
	}
	return nil
}

// WriteReport keeps the report of a run in the store.
func WriteReport(ctx context.Context, s store.Store, r Report) error {
	return writeOf(ctx, s, r.RunID, "report.json", r)
}

// ReadReport reads the report of a run; the error matches store.ErrNotExist
// when it has none yet.
func ReadReport(ctx context.Context, s store.Store, runID string) (Report, error) {
	return loadOf[Report](ctx, s, runID, "report.json")
}

// Rows decodes a report's rows, which have the job's own type, to the type T with the
// fields that the caller needs. It returns nil if the report has no such rows.
func Rows[T any](r Report) []T {
	b, err := json.Marshal(r.Providers)
	if err != nil {
		return nil
	}
	var rows []T
	if json.Unmarshal(b, &rows) != nil {
		return nil
	}
	return rows
}

// WriteTable writes the report for a terminal, with the named counts first.
func (r *Report) WriteTable(w io.Writer, named []string) error {
	t := table{w: w}
	t.print(fmt.Sprintf("Run %s: %s\n  %s on %s, started %s, took %s\n", r.RunID, r.State,
		r.Job, r.Runner, r.StartedAt.UTC().Format(time.RFC3339), formatSeconds(r.Duration)))
	if r.Error != "" {
		t.print("  " + r.Error + "\n")
	}
	if n := r.Counts[LeftByLimit]; n > 0 {
		t.print(fmt.Sprintf("  limited: --limit=%v left at least %s for the next run\n", r.Options["limit"], FormatCount(n)))
	}
	if sample, ok := r.Options["sample"]; ok {
		t.print(fmt.Sprintf("  sample: %v of the domains\n", sample))
	}

	t.section("Counts")
	for _, k := range named {
		t.number(k, r.Counts[k])
	}
	t.counts(r.Counts, named...)

	t.section("Requests")
	t.number("requests", r.HTTP.Requests)
	t.number("retries", r.HTTP.Retries)
	if r.HTTP.Absent > 0 {
		t.number("looked for, not there", r.HTTP.Absent)
	}
	t.row("received", FormatBytes(r.HTTP.Bytes))
	for _, k := range sortedKeys(r.HTTP.ByStatus) {
		t.number("status "+k, r.HTTP.ByStatus[k])
	}
	for _, k := range failures {
		if n := r.HTTP.Failures[k]; n != 0 {
			t.number("failed: "+k, n)
			for _, u := range r.HTTP.Examples[k] {
				t.print("      " + u + "\n")
			}
		}
	}
	if r.Timings.Domains > 0 { // only the seed job times domains
		t.section("Time a domain")
		t.row("mean", formatSeconds(r.Timings.Mean))
		t.row("p50", formatSeconds(r.Timings.P50))
		t.row("p95", formatSeconds(r.Timings.P95))
		t.row("domains per second", fmt.Sprintf("%.1f", r.Timings.DomainsPerSec))
	}

	if len(r.DeadLetters) > 0 {
		t.section("Dead letters")
		t.counts(r.DeadLetters)
	}
	if len(r.Store) > 0 {
		t.section("Store calls")
		t.counts(r.Store)
	}
	if r.Cost != nil {
		t.cost(*r.Cost)
	}
	if len(r.Alerts) > 0 {
		t.print("\nAlerts\n")
		for _, a := range r.Alerts {
			t.print("  " + a + "\n")
		}
	}
	if t.err != nil {
		return fmt.Errorf("writing the report: %w", t.err)
	}
	return nil
}

// table writes two columns, equally wide in every section, and remembers the first
// error.
type table struct {
	w   io.Writer
	err error
}

func (t *table) print(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

func (t *table) section(title string) { t.print("\n" + title + "\n") }

func (t *table) row(label, value string) { t.print(fmt.Sprintf("  %-22s %14s\n", label, value)) }

func (t *table) number(label string, n int64) { t.row(label, FormatCount(n)) }

// counts writes the counts by name, without the excluded ones.
func (t *table) counts(c Counts, exclude ...string) {
	for _, k := range sortedKeys(c) {
		if slices.Contains(exclude, k) {
			continue
		}
		t.number(k, c[k])
		if m, ok := meanings[k]; ok {
			t.print("      " + m + "\n")
		}
	}
}

// meanings explain counts that seem not to add up.
var meanings = map[string]string{
	"hosts_visited":     "each host once, even if several domains (authority, country) have it",
	"hosts_unreachable": "did not answer; they are among the collected domains",
	"metadata_written":  "one for each partition that has the domain",
	OutsideHours:        "got no request: the politeness file has other hours for them, and the same command continues then",
}

func sortedKeys(c Counts) []string { return slices.Sorted(maps.Keys(c)) }

// FormatCount writes 1234567 as 1,234,567.
func FormatCount(n int64) string {
	s := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// FormatBytes writes bytes in a suitable unit.
func FormatBytes(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	f, unit := float64(n), "B"
	for _, u := range units {
		if f < 1024 {
			break
		}
		f, unit = f/1024, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// formatSeconds writes a duration given in seconds.
func formatSeconds(s float64) string {
	d := time.Duration(s * float64(time.Second)).Round(time.Millisecond)
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	return d.String()
}
