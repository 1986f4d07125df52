package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

const (
	// maxDates is how many dates a backfill can have.
	maxDates = 366
	// backfillPause is the time between two tries to start a run while another one is
	// active, or while another server starts it.
	backfillPause = 10 * time.Second
)

// backfill is a range of dates, for each of which one run of a schedule's job is
// started, one after another.
type backfill struct {
	ID        string    `json:"id"`
	From      string    `json:"from"` // YYYY-MM-DD
	To        string    `json:"to"`
	By        string    `json:"by"`
	At        time.Time `json:"at"`
	Cancelled bool      `json:"cancelled,omitempty"`
}

// backfillDate is the object backfills/{schedule}/{id}/{date}.json. As with a tick,
// the server that creates it has claimed the date, and it names the run. Only one run
// of an id can start, so a date has one run even if its server dies.
type backfillDate struct {
	Date      string    `json:"date"`
	RunID     string    `json:"run_id"`
	ClaimedAt time.Time `json:"claimed_at"`
	State     string    `json:"state,omitempty"` // of the run when it was over; not_started if it did not start
	Error     string    `json:"error,omitempty"`
	Token     string    `json:"token"`
}

const notStarted = "not_started"

// BackfillView is a backfill as it is shown.
type BackfillView struct {
	From   string    `json:"from"`
	To     string    `json:"to"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	State  string    `json:"state"` // working, done, cancelled or stopped
	Dates  int       `json:"dates"`
	Done   int       `json:"done"`
	Failed int       `json:"failed"`           // dates whose run was not done
	RunID  string    `json:"run_id,omitempty"` // of the date at work
	Date   string    `json:"date,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// dates are the days of the range, oldest first.
func (b *backfill) dates() []string {
	var out []string
	from, ferr := time.Parse(time.DateOnly, b.From)
	to, terr := time.Parse(time.DateOnly, b.To)
	for at := from; ferr == nil && terr == nil && !at.After(to) && len(out) <= maxDates; at = at.AddDate(0, 0, 1) {
		out = append(out, at.Format(time.DateOnly))
	}
	return out
}

// view sums up a backfill's dates.
func (b *backfill) view(known map[string]backfillDate) *BackfillView {
	if b == nil {
		return nil
	}
	dates := b.dates()
	v := &BackfillView{From: b.From, To: b.To, By: b.By, At: b.At, State: "working", Dates: len(dates)}
	for _, date := range dates {
		d := known[date]
		switch d.State {
		case "":
			if d.RunID != "" {
				v.RunID, v.Date = d.RunID, d.Date
			}
		case string(ledger.Done):
			v.Done++
		case notStarted:
			v.State, v.Date, v.Error = "stopped", d.Date, d.Error
		default:
			v.Failed++
		}
	}
	switch {
	case v.State == "stopped":
	case b.Cancelled:
		v.State = "cancelled"
	case v.Done+v.Failed == v.Dates:
		v.State = "done"
	}
	return v
}

// ViewOf sums up a backfill by the dates that this server knows.
func (s *Scheduler) ViewOf(b *backfill) *BackfillView {
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.view(s.dates[b.ID])
}

// Backfill starts a backfill of a schedule.
func (s *Scheduler) Backfill(ctx context.Context, name, from, to, who string, now time.Time) error {
	if _, err := s.Refresh(ctx, now); err != nil {
		return err
	}
	if _, err := s.Named(name); err != nil {
		return err
	}
	b := backfill{ID: ledger.NewRunID(now), From: from, To: to, By: who, At: now.UTC()}
	for _, date := range []string{from, to} {
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			return known.Refuse("from and to: write two days as YYYY-MM-DD")
		}
	}
	if from > to {
		return known.Refuse("from and to: %s is after %s", from, to)
	}
	if len(b.dates()) > maxDates {
		return known.Refuse("from and to: a backfill has at most %d dates", maxDates)
	}
	return s.edit(ctx, name, who, "schedule_backfill", now, func(p *Plan, line *known.AuditLine) error {
		line.Detail = from + " to " + to
		if j, _ := s.Jobs.Named(p.Job); j.DateField() == "" {
			return known.Conflict("the job %s has no dates, so there is nothing to backfill; run it now instead", p.Job)
		}
		if p.Wrong != "" {
			return known.Conflict("this schedule cannot run: %s", p.Wrong)
		}
		if old := p.Kept.Backfill; old != nil {
			begun, err := s.ReadDates(ctx, name, old.ID)
			if err != nil {
				return err
			}
			if old.view(begun).State == "working" {
				return known.Conflict("a backfill from %s to %s is at work; cancel it, or wait until it is done", old.From, old.To)
			}
		}
		p.Kept.Backfill = &b
		return s.sweepBackfills(ctx, name)
	})
}

// CancelBackfill starts no more runs of a backfill. The one at work continues.
func (s *Scheduler) CancelBackfill(ctx context.Context, name, who string, now time.Time) error {
	return s.edit(ctx, name, who, "schedule_backfill_cancel", now, func(p *Plan, line *known.AuditLine) error {
		if p.Kept.Backfill == nil {
			return known.Conflict("this schedule has no backfill")
		}
		line.Detail = p.Kept.Backfill.From + " to " + p.Kept.Backfill.To
		stopped := *p.Kept.Backfill
		stopped.Cancelled = true
		p.Kept.Backfill = &stopped
		return nil
	})
}

func backfillPrefix(name string) string { return "backfills/" + name + "/" }

func dateKey(name, id, date string) string { return backfillPrefix(name) + id + "/" + date + ".json" }

// ReadDates reads the dates of a backfill that were begun, by date.
func (s *Scheduler) ReadDates(ctx context.Context, name, id string) (map[string]backfillDate, error) {
	s.mu.Lock()
	out := map[string]backfillDate{}
	maps.Copy(out, s.dates[id])
	s.mu.Unlock()
	keys, err := store.Keys(ctx, s.Store, backfillPrefix(name)+id+"/")
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		date := strings.TrimSuffix(path.Base(key), ".json")
		if out[date].State != "" {
			continue
		}
		var d backfillDate
		if err := store.ReadJSON(ctx, s.Store, key, known.MaxObject, &d); err != nil {
			return nil, err
		}
		out[date] = d
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dates[id] = out
	return maps.Clone(out), nil
}

// TickBackfills continues the backfills. Only the leader calls it.
func (s *Scheduler) TickBackfills(ctx context.Context, all []*runs.Entry, now time.Time) (changed bool, err error) {
	for _, p := range s.All() {
		b := p.Kept.Backfill
		if b == nil || now.Before(s.retryAt[b.ID]) || p.Wrong != "" {
			continue
		}
		did, berr := s.continueBackfill(ctx, p, all, now)
		changed = changed || did
		if berr != nil {
			err = errors.Join(err, fmt.Errorf("backfill of %s: %w", p.Name, berr))
		}
	}
	return changed, err
}

// continueBackfill records the end of the run at work and starts the next one.
func (s *Scheduler) continueBackfill(ctx context.Context, p Plan, all []*runs.Entry, now time.Time) (changed bool, err error) {
	b := p.Kept.Backfill
	s.mu.Lock()
	known := maps.Clone(s.dates[b.ID])
	s.mu.Unlock()
	if known == nil {
		if known, err = s.ReadDates(ctx, p.Name, b.ID); err != nil {
			return false, err
		}
	}
	busy := slices.ContainsFunc(all, func(e *runs.Entry) bool { return e.Run.Job == p.Job && e.Active() })
	for _, date := range b.dates() {
		d, begun := known[date]
		switch {
		case d.State == notStarted:
			return changed, nil
		case d.State != "":
			continue
		case begun:
			i := slices.IndexFunc(all, func(e *runs.Entry) bool { return e.Run.RunID == d.RunID })
			if i < 0 {
				return changed, s.startDate(ctx, p, d, now)
			}
			if all[i].Active() || all[i].Broken {
				return changed, nil
			}
			d.State, d.Error, changed = string(all[i].Run.State), all[i].Error(), true
			if err := s.putDate(ctx, p.Name, b.ID, d); err != nil {
				return changed, err
			}
			continue
		case b.Cancelled || busy:
			return changed, nil
		}
		if ok, err := s.unchanged(ctx, p); err != nil || !ok {
			s.reread()
			return changed, err
		}
		d = backfillDate{Date: date, RunID: ledger.NewRunID(now), ClaimedAt: now.UTC(), Token: rand.Text()}
		err := store.CreateJSON(ctx, s.Store, dateKey(p.Name, b.ID, date), d)
		if errors.Is(err, store.ErrExist) { // by the leader before
			_, err = s.ReadDates(ctx, p.Name, b.ID)
			return changed, err
		}
		if err != nil {
			return changed, err
		}
		s.rememberDate(b.ID, d)
		return true, s.startDate(ctx, p, d, now)
	}
	s.retryAt[b.ID] = now.Add(time.Minute) // all dates are done
	return changed, nil
}

// startDate starts the run of a claimed date, unless it has started.
func (s *Scheduler) startDate(ctx context.Context, p Plan, d backfillDate, now time.Time) error {
	s.retryAt[p.Kept.Backfill.ID] = now.Add(backfillPause)
	j, _ := s.Jobs.Named(p.Job)
	values := maps.Clone(p.values)
	values[j.DateField()] = d.Date
	flags, err := j.FlagsOf(values)
	if err == nil {
		err = s.Start(ctx, ledger.Run{RunID: d.RunID, Job: p.Job, StartedAt: now}, flags, "backfill of "+p.Name)
	}
	var active *runs.ActiveError
	switch {
	case err == nil:
		s.retryAt[p.Kept.Backfill.ID] = now // the board shows the run
		return nil
	case errors.Is(err, runs.ErrAlreadyStarted), errors.As(err, &active):
		return nil // looked at again later
	case ctx.Err() != nil:
		return err
	}
	s.Log.Error("backfill_stopped", "schedule", p.Name, "date", d.Date, "error", ledger.Redact(err.Error()))
	d.State, d.Error = notStarted, ledger.ErrorText(err)
	return s.putDate(ctx, p.Name, p.Kept.Backfill.ID, d)
}

func (s *Scheduler) putDate(ctx context.Context, name, id string, d backfillDate) error {
	if err := store.WriteJSON(ctx, s.Store, dateKey(name, id, d.Date), d); err != nil {
		return err
	}
	s.rememberDate(id, d)
	return nil
}

func (s *Scheduler) rememberDate(id string, d backfillDate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dates[id] == nil {
		s.dates[id] = map[string]backfillDate{}
	}
	s.dates[id][d.Date] = d
}

// sweepBackfills removes the dates of a schedule's backfills.
func (s *Scheduler) sweepBackfills(ctx context.Context, name string) error {
	old, err := store.Keys(ctx, s.Store, backfillPrefix(name))
	if err != nil {
		return err
	}
	return store.Remove(ctx, s.Store, old...)
}
