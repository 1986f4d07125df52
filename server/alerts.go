package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/alarm"
	"github.com/newsfork/seed-engine/server/known"
)

// firingRow is an alert that fires, in the API.
type firingRow struct {
	alarm.Breach
	Silenced bool `json:"silenced"`
}

type alertList struct {
	Firing   []firingRow        `json:"firing"`
	Silences []alert.Silence    `json:"silences"`
	Channels []alarm.ChannelRow `json:"channels"`
}

// alerts are the alerts, the silences and the channels.
func (s *Server) alerts(ctx context.Context) (alertList, error) {
	now := s.now()
	list := alertList{Firing: []firingRow{}, Silences: []alert.Silence{}, Channels: s.alarm.Rows()}
	silences, err := alert.Silences(ctx, s.store, now)
	if err != nil {
		return list, err
	}
	list.Silences = append(list.Silences, silences...)
	for _, b := range s.alarm.Firing() {
		silenced := slices.ContainsFunc(silences, func(x alert.Silence) bool { return x.Covers(b.Job, b.Rule, b.Named(), now) })
		b.Untold = false // the silence says it
		list.Firing = append(list.Firing, firingRow{b, silenced})
	}
	return list, nil
}

// alertActions are what can be asked about alerts.
func (s *Server) alertActions() []action {
	silence := []option.Option{
		{Name: "job", Kind: option.Text, Choices: s.jobs.Started().Names(), Usage: "All jobs if it is left out."},
		{Name: "rule", Kind: option.Text, Choices: alert.Names(), Usage: "All alerts if it is left out."},
		{Name: "provider", Kind: option.Text}, {Name: "note", Kind: option.Text},
		{Name: "for", Kind: option.Text, Usage: "How long, from 1m to 720h.",
			Pattern: "(([1-9]|[1-9][0-9]|[1-6][0-9][0-9])h([1-5]?[0-9]m)?|[1-9][0-9]?m)"},
	}
	return grouped("alerts", "alerts",
		action{At: "GET /api/v1/alerts", ID: "listAlerts", About: "What fires, what is silent, and where alerts are sent",
			Out: "200 Alerts The alerts.", Do: s.listAlerts},
		action{At: "POST /api/v1/alerts/silences", ID: "silenceAlerts", About: "Keep alerts from being sent for a while",
			Out:  "200 Silence The silence.",
			Body: "SilenceRequest", In: silence, Needs: []string{"for"},
			Example: `{"job": "docs", "provider": "stripe", "for": "2h", "note": "they move their site"}`,
			Do:      s.silence, Form: "/alerts/silences", Next: "/alerts"},
		action{At: "DELETE /api/v1/alerts/silences/{id}", ID: "endSilence", About: "End a silence before its time",
			Out:   "200 Silence The silence that was ended.",
			Fails: "404 NoSilence", Do: s.endSilence, Form: "/alerts/silences/{id}/end", Next: "/alerts"},
	)
}

func (s *Server) listAlerts(c *call) (any, error) { return s.alerts(c.Context()) }

// silence silences alerts for a while.
func (s *Server) silence(c *call) (any, error) {
	get := c.in.Get
	sil := alert.Silence{Job: get("job"), Rule: get("rule"), Provider: get("provider"), Note: get("note"), By: s.who(c.Request)}
	d, err := time.ParseDuration(get("for"))
	if err != nil || d < alert.MinSilence || d > alert.MaxSilence {
		return nil, known.Refuse("for: write a time from 1m to 720h, such as 2h")
	}
	if _, ok := s.jobs.Started().Named(sil.Job); sil.Job != "" && !ok {
		return nil, known.Refuse("job: use %s", s.jobs.Started().Or())
	}
	if err := sil.CheckRule(); err != nil {
		return nil, known.Refuse("rule: %s", err)
	}
	ctx, now := context.WithoutCancel(c.Context()), s.now()
	line := known.AuditLine{At: now, Who: sil.By, Action: "alerts_silence", Target: sil.Text(), Detail: "for " + get("for")}
	if sil.Note != "" {
		line.Detail += ": " + sil.Note
	}
	if err := s.audit.Write(ctx, line); err != nil {
		return nil, err
	}
	sil, err = alert.AddSilence(ctx, s.store, sil, d, now)
	s.silencesChanged()
	return sil, err
}

// silencesChanged shows the silences as they are now.
func (s *Server) silencesChanged() {
	s.alarm.RereadSilences()
	s.board.Change()
}

// endSilence ends a silence before its time.
func (s *Server) endSilence(c *call) (any, error) {
	none := &known.AnswerError{Code: http.StatusNotFound, Message: "there is no such silence; GET /api/v1/alerts lists them"}
	id := c.PathValue("id")
	if !ledger.IsName(id) {
		return nil, none
	}
	ctx := context.WithoutCancel(c.Context())
	all, err := alert.Silences(ctx, s.store, s.now())
	i := slices.IndexFunc(all, func(x alert.Silence) bool { return x.ID == id })
	if err == nil && i < 0 {
		err = none
	}
	if err == nil {
		err = s.audit.Write(ctx, known.AuditLine{At: s.now(), Who: s.who(c.Request), Action: "alerts_silence_end", Target: all[i].Text()})
	}
	if err != nil {
		return nil, err
	}
	sil, err := alert.EndSilence(ctx, s.store, id)
	if errors.Is(err, alert.ErrNoSilence) {
		err = none
	}
	s.silencesChanged()
	return sil, err
}

// alertsPage is the data of the page of alerts.
type alertsPage struct {
	alertList
	Jobs, Rules []string
}

func (p *pages) alertViews() []view {
	return []view{{At: "GET /alerts", Template: "alerts", Section: "alerts", Title: "Alerts", Data: func(c *call) (any, error) {
		list, err := p.server.alerts(c.Context())
		c.Alerts = nil // the page has them below
		return alertsPage{list, p.server.jobs.Started().Names(), alert.Names()}, err
	}}}
}
