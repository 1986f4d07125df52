package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
)

// firingRow is an alert that fires, in the API.
type firingRow struct {
	breach
	Silenced bool `json:"silenced"`
}

// channelRow is the state of a channel.
type channelRow struct {
	Name     string     `json:"name"`
	Waiting  int        `json:"waiting"`
	Error    string     `json:"error,omitempty"` // of the last try, if it failed
	NextAt   *time.Time `json:"next_at,omitempty"`
	SentAt   *time.Time `json:"sent_at,omitempty"`
	FailedAt *time.Time `json:"failed_at,omitempty"`
	GivenUp  []givenUp  `json:"given_up"`
}

type alertList struct {
	Firing   []firingRow     `json:"firing"`
	Silences []alert.Silence `json:"silences"`
	Channels []channelRow    `json:"channels"`
}

// rows are the channels as they were when this server read or wrote them last.
func (a *alarm) rows() []channelRow {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []channelRow{}
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	for _, c := range a.channels {
		o := a.outbox(c.name)
		row := channelRow{c.name, len(o.Waiting), o.Error, nil, at(o.SentAt), at(o.FailedAt), slices.Clone(o.GivenUp)}
		if row.GivenUp == nil {
			row.GivenUp = []givenUp{}
		}
		if row.Waiting > 0 {
			row.NextAt = at(o.NextAt)
		}
		out = append(out, row)
	}
	return out
}

// alerts are the alerts, the silences and the channels.
func (s *Server) alerts(ctx context.Context) (alertList, error) {
	now := s.now()
	list := alertList{Firing: []firingRow{}, Silences: []alert.Silence{}, Channels: s.alarm.rows()}
	silences, err := alert.Silences(ctx, s.store, now)
	if err != nil {
		return list, err
	}
	list.Silences = append(list.Silences, silences...)
	for _, b := range s.alarm.firing() {
		silenced := slices.ContainsFunc(silences, func(x alert.Silence) bool { return x.Covers(b.Job, b.Rule, b.Named(), now) })
		b.Untold = false // the silence says it
		list.Firing = append(list.Firing, firingRow{b, silenced})
	}
	return list, nil
}

func (s *Server) listAlerts(w http.ResponseWriter, r *http.Request) {
	list, err := s.alerts(r.Context())
	s.reply(w, r, list, err)
}

// silence silences alerts for a while.
func (s *Server) silence(ctx context.Context, sil alert.Silence, lasts string) (alert.Silence, error) {
	d, err := time.ParseDuration(lasts)
	if err != nil || d < alert.MinSilence || d > alert.MaxSilence {
		return sil, refuse("for: write a time from 1m to 720h, such as 2h")
	}
	if _, ok := s.jobs.started().named(sil.Job); sil.Job != "" && !ok {
		return sil, refuse("job: use %s", s.jobs.started().or())
	}
	if err := sil.CheckRule(); err != nil {
		return sil, refuse("rule: %s", err)
	}
	ctx, now := context.WithoutCancel(ctx), s.now()
	line := auditLine{At: now, Who: sil.By, Action: "alerts_silence", Target: sil.Text(), Detail: "for " + lasts}
	if sil.Note != "" {
		line.Detail += ": " + sil.Note
	}
	if err := s.audit.write(ctx, line); err != nil {
		return sil, err
	}
	sil, err = alert.AddSilence(ctx, s.store, sil, d, now)
	s.alarm.rereadSilences()
	s.board.change()
	return sil, err
}

func (s *Server) addSilence(w http.ResponseWriter, r *http.Request) {
	var given struct {
		Job      string `json:"job"`
		Rule     string `json:"rule"`
		Provider string `json:"provider"`
		For      string `json:"for"`
		Note     string `json:"note"`
	}
	err := decodeBody(r, &given, `{"job": "docs", "provider": "stripe", "for": "2h", "note": "they move their site"}`)
	var sil alert.Silence
	if err == nil {
		sil, err = s.silence(r.Context(), alert.Silence{Job: given.Job, Rule: given.Rule, Provider: given.Provider, Note: given.Note, By: s.who(r)}, given.For)
	}
	s.reply(w, r, sil, err)
}

// endSilence ends a silence before its time.
func (s *Server) endSilence(ctx context.Context, id, who string) (alert.Silence, error) {
	none := &answerError{http.StatusNotFound, "there is no such silence; GET /api/v1/alerts lists them"}
	if !ledger.IsName(id) {
		return alert.Silence{}, none
	}
	ctx = context.WithoutCancel(ctx)
	all, err := alert.Silences(ctx, s.store, s.now())
	i := slices.IndexFunc(all, func(x alert.Silence) bool { return x.ID == id })
	if err == nil && i < 0 {
		err = none
	}
	if err == nil {
		err = s.audit.write(ctx, auditLine{At: s.now(), Who: who, Action: "alerts_silence_end", Target: all[i].Text()})
	}
	if err != nil {
		return alert.Silence{}, err
	}
	sil, err := alert.EndSilence(ctx, s.store, id)
	if errors.Is(err, alert.ErrNoSilence) {
		err = none
	}
	s.alarm.rereadSilences()
	s.board.change()
	return sil, err
}

func (s *Server) removeSilence(w http.ResponseWriter, r *http.Request) {
	sil, err := s.endSilence(r.Context(), r.PathValue("id"), s.who(r))
	s.reply(w, r, sil, err)
}

func (s *Server) alertRoutes() []route {
	return []route{
		{"GET /api/v1/alerts", s.listAlerts},
		{"POST /api/v1/alerts/silences", s.addSilence},
		{"DELETE /api/v1/alerts/silences/{id}", s.removeSilence},
	}
}

// alertsPage is the data of the page of alerts.
type alertsPage struct {
	alertList
	Jobs, Rules []string
}

func (p *pages) alerts(w http.ResponseWriter, r *http.Request) {
	list, err := p.server.alerts(r.Context())
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	v := p.view(r, "Alerts", "alerts", alertsPage{list, p.server.jobs.started().names(), alert.Names()})
	v.Alerts = nil // the page has them below
	b, err := p.render("alerts", v)
	p.send(w, r, b, err)
}

func (p *pages) addSilence(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.server.fail(w, r, formError(err))
		return
	}
	get := r.PostForm.Get
	_, err := p.server.silence(r.Context(), alert.Silence{Job: get("job"), Rule: get("rule"), Provider: get("provider"), Note: get("note"), By: p.server.who(r)}, get("for"))
	p.done(w, r, "/alerts", err)
}

func (p *pages) endSilence(w http.ResponseWriter, r *http.Request) {
	_, err := p.server.endSilence(r.Context(), r.PathValue("id"), p.server.who(r))
	p.done(w, r, "/alerts", err)
}

func (p *pages) alertRoutes() []route {
	return []route{
		{"GET /alerts", p.alerts},
		{"POST /alerts/silences", p.addSilence},
		{"POST /alerts/silences/{id}/end", p.endSilence},
	}
}
