package docs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs/chunk"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// providerReport is a provider's row of the run report: what changed, and the figures
// for alerts and quality warnings. Rates are percentages.
type providerReport struct {
	Provider        string    `json:"provider"`
	Name            string    `json:"name"`
	State           State     `json:"state"`
	Reason          string    `json:"reason,omitempty"`
	FinishedAt      time.Time `json:"finished_at"` // of the last work on it
	TotalPages      int64     `json:"total_pages"` // with content now
	PreviousPages   int64     `json:"previous_pages"`
	New             int64     `json:"new"`
	Updated         int64     `json:"updated"`
	Deleted         int64     `json:"deleted"`
	Unchanged       int64     `json:"unchanged"`
	Skipped         int64     `json:"skipped"`
	Failed          int64     `json:"failed"`
	Blocked         int64     `json:"blocked"`
	NotReached      int64     `json:"not_reached"` // with content, not requested in this session, so they may be gone
	Chunks          int64     `json:"chunks"`
	ChangeRate      float64   `json:"change_rate"`
	SuccessRate     float64   `json:"success_rate"`
	ErrorRate       float64   `json:"error_rate"`
	RetryRate       float64   `json:"retry_rate"`
	EmptyRate       float64   `json:"empty_rate"`
	AvgResponseMS   float64   `json:"avg_response_ms"`
	Duration        float64   `json:"duration_s"` // at work, over all runs of the session
	WaitedForBudget float64   `json:"waited_for_budget_s"`
	Requests        int64     `json:"requests"`
	// Sources says where the pages of the session came from and what that took, the best
	// source first.
	Sources  []sourceReport `json:"sources"`
	Warnings []string       `json:"warnings"` // texts about the quality of its chunks
}

// sourceReport is one source of a provider's pages, or a list of them.
type sourceReport struct {
	sourceCount
	Reason string `json:"reason,omitempty"` // why it was used, or was not
}

// crawlAlert is a threshold that was passed, in the units of the rows: rates in
// percent, response times in milliseconds, the session's duration in seconds.
type crawlAlert struct {
	Name     string  `json:"name"`
	Provider string  `json:"provider,omitempty"` // "" for the whole session
	Value    float64 `json:"value"`
	Limit    float64 `json:"limit"`
	Text     string  `json:"text"`
}

// alertOf makes an alert of a finding about a provider, or about the session if about is "".
func alertOf(about string, f alert.Finding) crawlAlert {
	in := map[alert.Unit]float64{alert.Share: 100, alert.Seconds: 1000}[f.Unit]
	text := about + ": " + f.Text
	if about == "" {
		in, text = 1, f.Text
	}
	return crawlAlert{Name: f.Rule, Provider: f.Provider, Value: in * f.Value, Limit: in * f.Limit, Text: text}
}

// crawlReport is what a session has done so far.
type crawlReport struct {
	Session   string           `json:"session"`
	StartedAt time.Time        `json:"started_at"`
	Complete  bool             `json:"complete"`
	Duration  float64          `json:"duration_s"` // at work, without waits for budgets and time between two runs
	Providers []providerReport `json:"providers"`
	Alerts    []crawlAlert     `json:"alerts"`
}

// percent is part of whole in percent, to one digit; 0 of nothing.
func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(1000*float64(part)/float64(whole)) / 10
}

// buildReport reads the figures of a session's providers, in the order of the
// policies. A provider that the session has not come to yet is left out.
func buildReport(ctx context.Context, d *db.DB, policies []policy.Policy, session string, limits alert.Thresholds) (crawlReport, error) {
	r := crawlReport{Session: session, Providers: []providerReport{}, Alerts: []crawlAlert{}}
	var started, finished int64
	var work float64
	if err := d.QueryRowContext(ctx, `SELECT started_at, finished_at FROM docs_sessions WHERE id = $1`, session).Scan(&started, &finished); err != nil {
		return r, fmt.Errorf("reading session %s: %w", session, err)
	}
	r.StartedAt, r.Complete = db.Time(started), finished > 0
	for _, p := range policies {
		row, stats, err := buildRow(ctx, d, p, session)
		if err != nil {
			return r, err
		}
		if row == nil {
			continue
		}
		r.Providers = append(r.Providers, *row)
		r.Alerts = append(r.Alerts, row.alerts(stats, limits)...)
	}
	// MaxHosts hosts are crawled at the same time. Wall-clock time would include the night
	// between a kill and the next run.
	for _, p := range r.Providers {
		r.Duration = max(r.Duration, p.Duration)
		work += p.Duration
	}
	r.Duration = math.Round(1000*max(r.Duration, work/MaxHosts)) / 1000
	r.Alerts = append(r.Alerts, sessionAlerts(r, limits)...)
	return r, nil
}

// buildRow returns nil if the provider has no part in the session.
func buildRow(ctx context.Context, d *db.DB, p policy.Policy, session string) (*providerReport, stats, error) {
	row := providerReport{Provider: p.ProviderID, Name: p.Label(), Warnings: []string{}}
	var s stats
	fail := func(err error) (*providerReport, stats, error) {
		return nil, s, fmt.Errorf("reading the figures of %s: %w", p.ProviderID, err)
	}
	var at int64
	var text string
	err := d.QueryRowContext(ctx, `SELECT state, reason, active_at, stats FROM docs_runs WHERE session = $1 AND provider = $2`,
		session, p.ProviderID).Scan(&row.State, &row.Reason, &at, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, s, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &s)
	}
	if err != nil {
		return fail(err)
	}
	row.FinishedAt = db.Time(at)
	if old := p.TermsOld(row.FinishedAt); old != "" {
		row.Warnings = append(row.Warnings, p.Label()+": "+old)
	}
	if err := d.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN session <> $1 OR `+d.Never("requested_at")+` THEN 1 ELSE 0 END), 0) FROM docs_pages WHERE provider = $2 AND content_hash <> ''`,
		session, p.ProviderID).Scan(&row.TotalPages, &row.NotReached); err != nil {
		return fail(err)
	}
	row.New, row.Updated, row.Deleted, row.Unchanged = s.New, s.Updated, s.Deleted, s.Unchanged
	row.Skipped, row.Failed, row.Blocked, row.Requests = s.Skipped, s.Failed, s.Blocked, s.Requests
	row.PreviousPages = row.TotalPages - s.New + s.Deleted
	row.ChangeRate = percent(s.New+s.Updated+s.Deleted, row.TotalPages)
	row.SuccessRate, row.ErrorRate, row.RetryRate = percent(s.Succeeded, s.Requests), percent(s.Errors, s.Requests), percent(s.Retries, s.Requests)
	row.EmptyRate = percent(s.Empty, s.Read)
	if s.Answered > 0 {
		row.AvgResponseMS = math.Round(float64(s.Elapsed)/float64(s.Answered)) / 1000
	}
	if row.Sources, err = sourcesOfReport(ctx, d, p, s); err != nil {
		return fail(err)
	}
	row.Duration, row.WaitedForBudget = seconds(s.Active-s.Waited), seconds(s.Waited)
	quality, err := qualityOf(ctx, d, p.ProviderID)
	if err != nil {
		return fail(err)
	}
	row.Chunks = int64(quality.Chunks)
	for _, f := range quality.Outside() {
		row.Warnings = append(row.Warnings, fmt.Sprintf("%s: %s is %.4g, normal is %g to %g: %s (content: %q)", p.Label(), f.Name, f.Value, f.Low, f.High, f.WhatToDo, p.CustomSelectors.Content))
	}
	return &row, s, nil
}

// sourcesOfReport returns what was used and what was not there, in the order in which
// sources are tried.
func sourcesOfReport(ctx context.Context, d *db.DB, p policy.Policy, s stats) ([]sourceReport, error) {
	reasons := map[string][]string{}
	for r, err := range db.Select(ctx, d, func(r *sql.Rows) (of [2]string, err error) {
		var address, state, reason string
		err = r.Scan(&of[0], &address, &state, &reason)
		of[1] = fmt.Sprintf("%s: %s (%s)", address, state, reason)
		return of, err
	}, `SELECT source, address, state, reason FROM docs_sources WHERE provider = $1 ORDER BY 1, 2`, p.ProviderID) {
		if err != nil {
			return nil, err
		}
		reasons[r[0]] = append(reasons[r[0]], r[1])
	}
	out := []sourceReport{}
	order := []string{listContext7, listLLMs, listSitemap, listCatalog}
	for _, source := range p.Order() {
		order = append(order, string(source))
	}
	for _, source := range order {
		r := sourceReport{sourceCount{Source: source}, strings.Join(reasons[source], "; ")}
		for _, c := range s.Sources {
			if c.Source == source {
				r.sourceCount = c
			}
		}
		if r.Pages > 0 || r.Requests > 0 || r.Reason != "" {
			out = append(out, r)
		}
	}
	return out, nil
}

func seconds(micros int64) float64 {
	return math.Round(float64(max(0, micros))/1000) / 1000
}

// qualityOf computes the quality of all chunks that a provider has now.
func qualityOf(ctx context.Context, d *db.DB, provider string) (q chunk.Quality, err error) {
	var last string
	var of []chunk.Chunk
	var key string
	for c, err := range db.Select(ctx, d, func(r *sql.Rows) (c chunk.Chunk, err error) {
		return c, r.Scan(&key, &c.ID, &c.Ordinal, &c.Tokens, &c.Hash, &c.Text)
	}, `SELECT key, id, ordinal, tokens, hash, preview FROM docs_chunks WHERE provider = $1 ORDER BY key, ordinal`, provider) {
		if err != nil {
			return q, err
		}
		if key != last && len(of) > 0 {
			q.Add(of)
			of = nil
		}
		last, of = key, append(of, c)
	}
	if len(of) > 0 {
		q.Add(of)
	}
	return q, nil
}

// alerts returns alerts for the thresholds that the provider exceeds.
func (r providerReport) alerts(s stats, limits alert.Thresholds) (out []crawlAlert) {
	row := alert.Row{Provider: r.Provider, State: string(r.State), Reason: r.Reason, TotalPages: r.TotalPages, PreviousPages: r.PreviousPages, Requests: s.Requests,
		SuccessRate: &r.SuccessRate, ErrorRate: r.ErrorRate, RetryRate: r.RetryRate, EmptyRate: r.EmptyRate, AvgResponseMS: r.AvgResponseMS}
	for _, f := range limits.JudgeRow(row) {
		if f.Raised && !r.State.notOpen() { // the run's report has one alert for such a site
			out = append(out, alertOf(r.Name, f))
		}
	}
	return out
}

// sessionAlerts returns the alerts about the whole session: how long it took, without
// waiting for budgets.
func sessionAlerts(r crawlReport, limits alert.Thresholds) (out []crawlAlert) {
	if f, _ := limits.Judge(alert.Figure{Rule: "duration", Value: r.Duration, Text: "the session took %s"}); f.Raised {
		out = append(out, alertOf("", f))
	}
	return out
}

// Text returns the provider's block of the text report.
func (r providerReport) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] [CRAWL_REPORT] Provider: %s\n", r.FinishedAt.UTC().Format(time.DateTime), r.Name)
	fmt.Fprintf(&b, "  - Total Pages: %d\n", r.TotalPages)
	fmt.Fprintf(&b, "  - New: %d, Updated: %d, Deleted: %d\n", r.New, r.Updated, r.Deleted)
	fmt.Fprintf(&b, "  - Change Rate: %.1f%%\n", r.ChangeRate)
	fmt.Fprintf(&b, "  - Success Rate: %.1f%%\n", r.SuccessRate)
	fmt.Fprintf(&b, "  - Avg Response Time: %.0fms\n", r.AvgResponseMS)
	fmt.Fprintf(&b, "  - Duration: %s\n", brief(time.Duration(r.Duration*float64(time.Second))))
	return b.String()
}

// brief writes 272 s as 4m 32s.
func brief(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh %dm %ds", s/3600, s%3600/60, s%60)
}

// WriteText writes the block of each provider, its warnings, and the alerts.
func (r crawlReport) WriteText(w io.Writer) error {
	for _, p := range r.Providers {
		text := p.Text()
		if p.State != Done || p.Reason != "" {
			text += fmt.Sprintf("  - State: %s (%s)\n", p.State, p.Reason)
		}
		var used []string
		for _, s := range p.Sources {
			if s.Pages+s.Requests > 0 {
				used = append(used, fmt.Sprintf("%s %d pages, %d requests", s.Source, s.Pages, s.Requests))
			}
		}
		if len(used) > 1 {
			text += "  - Sources: " + strings.Join(used, "; ") + "\n"
		}
		for _, warning := range p.Warnings {
			text += "  - Warning: " + warning + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return fmt.Errorf("writing the crawl report: %w", err)
		}
	}
	return nil
}

// reportKey is the key of a run's report by provider.
func reportKey(runID string) string { return "runs/" + runID + "/providers.json" }

// ReadReport reads the report by provider that a run wrote next to its own; the error matches store.ErrNotExist
// if the run did not reach its end.
func ReadReport(ctx context.Context, s store.Store, runID string) (r crawlReport, err error) {
	if err = store.ReadJSON(ctx, s, reportKey(runID), maxManifest, &r); err != nil {
		return crawlReport{}, fmt.Errorf("reading the report by provider: %w", err)
	}
	return r, nil
}
