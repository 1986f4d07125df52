package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// scheduleRow is a schedule in the API.
type scheduleRow struct {
	Name     string         `json:"name"`
	Job      string         `json:"job"`
	Cron     string         `json:"cron"`
	TimeZone string         `json:"timezone"`
	Options  map[string]any `json:"options"`
	Source   string         `json:"source"`
	Paused   bool           `json:"paused"`
	Error    string         `json:"error,omitempty"` // why it cannot run
	Next     []time.Time    `json:"next"`
	Last     *lastTick      `json:"last"`
	Backfill *backfillView  `json:"backfill"`
}

// lastTick is a schedule's last tick in the API.
type lastTick struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
	RunID   string    `json:"run_id,omitempty"`
	Missed  int       `json:"missed,omitempty"`
	Error   string    `json:"error,omitempty"`
}

func (v scheduleView) row() scheduleRow {
	r := scheduleRow{Name: v.Name, Job: v.Job, Cron: v.Cron, TimeZone: cmp.Or(v.TimeZone, "UTC"), Options: v.Options, Source: v.Source(), Paused: v.kept.Paused,
		Error: v.Wrong, Next: []time.Time{}, Backfill: v.Backfill}
	if r.Options == nil {
		r.Options = map[string]any{}
	}
	for _, at := range v.Times {
		r.Next = append(r.Next, at.UTC())
	}
	if t := v.Last; !t.At.IsZero() {
		r.Last = &lastTick{t.At, cmp.Or(string(t.RunState), t.Outcome), t.RunID, t.Missed, t.Error}
	}
	return r
}

type scheduleList struct {
	Schedules []scheduleRow `json:"schedules"`
}

// scheduleViews are the schedules, with what was changed through other servers.
func (s *Server) scheduleViews(ctx context.Context) ([]scheduleView, error) {
	now := s.now()
	if _, err := s.scheduler.refresh(ctx, now); err != nil {
		return nil, err
	}
	for _, p := range s.scheduler.all() {
		if b := p.kept.Backfill; b != nil && s.scheduler.viewOf(b).State == "working" {
			if _, err := s.scheduler.readDates(ctx, p.Name, b.ID); err != nil {
				return nil, err
			}
		}
	}
	views := s.scheduler.views(now)
	for i := range views {
		last := &views[i].Last
		if last.Outcome != "started" {
			continue
		}
		e, err := s.board.find(ctx, last.RunID, now)
		switch {
		case errors.Is(err, store.ErrNotExist): // it was removed because of its age
		case err != nil:
			return nil, err
		case !e.Active() && !e.Broken:
			last.RunState, last.Error = e.Run.State, e.Error()
		}
	}
	return views, nil
}

func (s *Server) listSchedules(w http.ResponseWriter, r *http.Request) {
	views, err := s.scheduleViews(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := scheduleList{[]scheduleRow{}}
	for _, v := range views {
		list.Schedules = append(list.Schedules, v.row())
	}
	s.answer(w, r, http.StatusOK, list)
}

// answerSchedule answers a change with the schedule as it is now.
func (s *Server) answerSchedule(w http.ResponseWriter, r *http.Request, name string, err error) {
	var views []scheduleView
	if err == nil {
		views, err = s.scheduleViews(r.Context())
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	for _, v := range views {
		if v.Name == name {
			s.answer(w, r, http.StatusOK, v.row())
			return
		}
	}
	s.answer(w, r, http.StatusOK, status{"removed"})
}

// changeSchedule is a request without a body that changes a schedule.
func (s *Server) changeSchedule(change func(ctx context.Context, name, who string, now time.Time) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		s.answerSchedule(w, r, name, change(r.Context(), name, s.who(r), s.now()))
	}
}

func (s *Server) pauseSchedule(yes bool) func(ctx context.Context, name, who string, now time.Time) error {
	return func(ctx context.Context, name, who string, now time.Time) error {
		return s.scheduler.pause(ctx, name, who, yes, now)
	}
}

// decodeBody reads a request's JSON body into v, without unknown fields.
func decodeBody(r *http.Request, v any, example string) error {
	body, err := jsonBody(r)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	err = json.Unmarshal(body, &fields)
	for _, text := range fields { // encoding/json takes null for any value
		if string(text) == "null" {
			fields = nil
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err != nil || fields == nil || d.Decode(v) != nil {
		return refuse("the body is not what is needed here; write %s", example)
	}
	return nil
}

func (s *Server) defineSchedule(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	var given struct {
		Job      string          `json:"job"`
		Cron     string          `json:"cron"`
		TimeZone string          `json:"timezone"`
		Options  json.RawMessage `json:"options"`
	}
	err := decodeBody(r, &given, `{"job": "seed", "cron": "15 3 * * *", "timezone": "Asia/Seoul", "options": {}}`)
	def := Schedule{Name: name, Job: given.Job, Cron: given.Cron, TimeZone: given.TimeZone}
	if j, ok := s.jobs.started().named(given.Job); err == nil && ok && given.Options != nil {
		if _, err = j.flags(given.Options); err == nil { // their types are those of a request that starts a run
			err = json.Unmarshal(given.Options, &def.Options)
		}
	}
	if err == nil {
		err = s.scheduler.define(r.Context(), def, s.who(r), s.now())
	}
	s.answerSchedule(w, r, name, err)
}

func (s *Server) backfillSchedule(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	var given struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	err := decodeBody(r, &given, `{"from": "2026-01-01", "to": "2026-01-31"}`)
	if err == nil {
		err = s.scheduler.backfill(r.Context(), name, given.From, given.To, s.who(r), s.now())
	}
	s.answerSchedule(w, r, name, err)
}

// runSchedule starts a schedule's run now, whether it is paused or not.
func (s *Server) runSchedule(ctx context.Context, name string) (string, error) {
	if _, err := s.scheduler.refresh(ctx, s.now()); err != nil {
		return "", err
	}
	p, err := s.scheduler.named(name)
	if err != nil {
		return "", err
	}
	if p.Wrong != "" {
		return "", conflict("this schedule cannot run: %s", p.Wrong)
	}
	return s.startNow(context.WithoutCancel(ctx), p.Job, p.flags, "schedule "+name+", now")
}

func (s *Server) startSchedule(w http.ResponseWriter, r *http.Request) {
	id, err := s.runSchedule(r.Context(), r.PathValue("name"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Location", "/api/v1/runs/"+id)
	s.answer(w, r, http.StatusAccepted, startResponse{id})
}

func (s *Server) scheduleRoutes() []route {
	const one = "/api/v1/schedules/{name}"
	return []route{
		{"GET /api/v1/schedules", s.listSchedules},
		{"PUT " + one, s.defineSchedule},
		{"DELETE " + one, s.changeSchedule(s.scheduler.remove)},
		{"POST " + one + "/pause", s.changeSchedule(s.pauseSchedule(true))},
		{"POST " + one + "/resume", s.changeSchedule(s.pauseSchedule(false))},
		{"POST " + one + "/run", s.startSchedule},
		{"POST " + one + "/backfill", s.backfillSchedule},
		{"DELETE " + one + "/backfill", s.changeSchedule(s.scheduler.cancelBackfill)},
		{"GET /api/v1/audit", s.listAudit},
	}
}
