package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
)

const (
	// keptPrefix has an object {name}.json for each schedule that people changed.
	keptPrefix = "schedule-settings/"
	// KeptInterval is how often a server reads what was changed through other servers.
	KeptInterval = 10 * time.Second
	// maxKept is how many schedules can be added to those of the file.
	maxKept = 100
	// editTTL is how long a change may keep others waiting when its server dies.
	editTTL = 10 * time.Second
	// upcoming is how many of the next times are shown.
	upcoming = 5
)

// KeptSchedule is what people changed of a schedule, by the page or the API.
type KeptSchedule struct {
	// Definition replaces that of the file. It counts until the file's is changed: of two
	// changes of one schedule the later one wins.
	Definition *Schedule `json:"definition,omitempty"`
	// Base is the file's definition at the time of that change, "" if the file had none.
	Base   string    `json:"base,omitempty"`
	Paused bool      `json:"paused,omitempty"`
	From   time.Time `json:"from,omitzero"` // earlier ticks do not count as missed
}

// Plan is a schedule with what people changed of it.
type Plan struct {
	Schedule
	Kept KeptSchedule
	file *Schedule // the file's definition, nil if it has none
	// Wrong is why the schedule cannot run: the kept definition does not fit this version of
	// the program.
	Wrong string
}

// Source says where the definition comes from: file, page, or page_over_file.
func (p *Plan) Source() string {
	switch {
	case p.Kept.Definition == nil:
		return "file"
	case p.file == nil:
		return "page"
	}
	return "page_over_file"
}

// text is a definition in a form that can be compared.
func (s *Schedule) text() (string, error) {
	if s == nil {
		return "", nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding schedule %s: %w", s.Name, err)
	}
	return string(b), nil
}

// planOf joins the file's definition, nil if there is none, with what was kept. There
// is no plan if neither has a definition.
func (s *Scheduler) planOf(name string, kept KeptSchedule) (Plan, bool) {
	p := Plan{Kept: kept}
	if i := slices.IndexFunc(s.File, func(f Schedule) bool { return f.Name == name }); i >= 0 {
		p.file = &s.File[i]
	}
	base, err := p.file.text()
	if err != nil || p.Kept.Base != base {
		p.Kept.Definition = nil // the file was changed later
	}
	switch {
	case p.Kept.Definition != nil:
		p.Schedule = *p.Kept.Definition
		if err := p.Check(s.Jobs); err != nil {
			p.Wrong = ledger.ErrorText(err)
		}
	case p.file != nil:
		p.Schedule = *p.file
	default:
		return p, false
	}
	return p, true
}

// Named returns the plan of a schedule as this server knows it.
func (s *Scheduler) Named(name string) (Plan, error) {
	for _, p := range s.All() {
		if p.Name == name {
			return p, nil
		}
	}
	return Plan{}, ErrNoSchedule
}

// All are the schedules: those of the file in its order, then the others by name.
func (s *Scheduler) All() []Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Plans)
}

// Refresh reads what was kept, if it is time.
func (s *Scheduler) Refresh(ctx context.Context, now time.Time) (changed bool, err error) {
	s.mu.Lock()
	due := !now.Before(s.keptAt)
	before := s.keptText
	s.mu.Unlock()
	if !due {
		return false, nil
	}
	keys, err := store.Keys(ctx, s.Store, keptPrefix)
	if err != nil {
		return false, err
	}
	kept := map[string]KeptSchedule{}
	for _, key := range keys {
		name := strings.TrimSuffix(path.Base(key), ".json")
		k, err := s.readKept(ctx, name)
		if err != nil {
			return false, err
		}
		kept[name] = k
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return false, fmt.Errorf("encoding schedules: %w", err)
	}
	var plans []Plan
	for _, f := range s.File {
		p, _ := s.planOf(f.Name, kept[f.Name])
		plans = append(plans, p)
		delete(kept, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if p, ok := s.planOf(name, kept[name]); ok {
			plans = append(plans, p)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Plans, s.keptText, s.keptAt, s.loaded = plans, string(text), now.Add(KeptInterval), true
	return before != s.keptText, nil
}

// reread makes the next refresh read what was kept.
func (s *Scheduler) reread() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keptAt = time.Time{}
}

// KeptKey is the key of what was changed of a schedule.
func KeptKey(name string) string { return keptPrefix + name + ".json" }

// readKept reads what was kept of a schedule, which may be nothing.
func (s *Scheduler) readKept(ctx context.Context, name string) (KeptSchedule, error) {
	var k KeptSchedule
	err := store.ReadJSON(ctx, s.Store, KeptKey(name), known.MaxObject, &k)
	if errors.Is(err, store.ErrNotExist) {
		return k, nil
	}
	return k, err
}

// unchanged reports whether what was kept of a schedule is what this server knows.
func (s *Scheduler) unchanged(ctx context.Context, p Plan) (bool, error) {
	kept, err := s.readKept(ctx, p.Name)
	if err != nil {
		return false, err
	}
	fresh, ok := s.planOf(p.Name, kept)
	now, err := json.Marshal(fresh.Kept)
	known, kerr := json.Marshal(p.Kept)
	return ok && string(now) == string(known), errors.Join(err, kerr)
}

// ErrInFile refuses to remove a schedule of the configuration file.
var ErrInFile = known.Conflict("this schedule is in the server's --config file; remove it there, or pause it here")

// ErrNoSchedule refuses a name that no schedule has.
var ErrNoSchedule = &known.AnswerError{Code: http.StatusNotFound, Message: "there is no such schedule; GET /api/v1/schedules lists them"}

// edit changes what is kept of a schedule: change gets its newest state, and the line for the audit. An empty state is removed. Only a
// definition is for a schedule that does not exist yet. Two servers never edit one schedule at a time.
func (s *Scheduler) edit(ctx context.Context, name, who, action string, now time.Time, change func(p *Plan, line *known.AuditLine) error) (err error) {
	if !namePattern.MatchString(name) {
		return ErrNoSchedule
	}
	ctx = context.WithoutCancel(ctx)
	l, err := lease.Acquire(ctx, lease.InStore(s.Store), "schedule/"+name, lease.CurrentHolder(), editTTL)
	var inUse *lease.InUseError
	if errors.As(err, &inUse) {
		return known.Conflict("somebody else changes this schedule at this moment; try again in a few seconds")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Release(ctx)) }()
	kept, err := s.readKept(ctx, name)
	if err != nil {
		return err
	}
	p, exists := s.planOf(name, kept)
	line := known.AuditLine{At: now, Who: who, Action: action, Target: name}
	if !exists {
		if action != "schedule_edit" {
			return ErrNoSchedule
		}
		line.Action = "schedule_add"
	}
	if err := change(&p, &line); err != nil {
		return err
	}
	if err := s.Audit.Write(ctx, line); err != nil {
		return err
	}
	if p.Kept == (KeptSchedule{}) {
		err = store.Remove(ctx, s.Store, KeptKey(name))
	} else {
		err = store.WriteJSON(ctx, s.Store, KeptKey(name), p.Kept)
	}
	if err != nil {
		return err
	}
	s.Log.Info("schedule_changed", "schedule", name, "action", line.Action, "by", line.Who, "detail", line.Detail)
	s.reread()
	_, err = s.Refresh(ctx, now)
	return err
}

// Pause stops the ticks of a schedule.
func (s *Scheduler) Pause(ctx context.Context, name, who string, now time.Time) error {
	return s.edit(ctx, name, who, "schedule_pause", now, func(p *Plan, _ *known.AuditLine) error {
		p.Kept.Paused = true
		return nil
	})
}

// Resume lets the ticks of a schedule come again.
func (s *Scheduler) Resume(ctx context.Context, name, who string, now time.Time) error {
	return s.edit(ctx, name, who, "schedule_resume", now, func(p *Plan, _ *known.AuditLine) error {
		if p.Kept.Paused {
			p.Kept.Paused, p.Kept.From = false, now.UTC()
		}
		return nil
	})
}

// Define adds a schedule or replaces its definition.
func (s *Scheduler) Define(ctx context.Context, def Schedule, who string, now time.Time) error {
	if err := def.Check(s.Jobs); err != nil {
		return known.Refuse("%s", err)
	}
	if err := s.Check(ctx, def.Job, def.Flags); err != nil {
		return err
	}
	return s.edit(ctx, def.Name, who, "schedule_edit", now, func(p *Plan, line *known.AuditLine) (err error) {
		line.Detail = p.differences(def)
		if line.Action == "schedule_add" {
			line.Detail = def.summary()
			if n := len(s.All()); n >= len(s.File)+maxKept {
				return known.Conflict("there are %d schedules already; remove some", n)
			}
		}
		p.Kept.Definition, p.Kept.From = &def, now.UTC()
		p.Kept.Base, err = p.file.text()
		return err
	})
}

// Remove removes a schedule that was added, or the change of one of the file.
func (s *Scheduler) Remove(ctx context.Context, name, who string, now time.Time) error {
	return s.edit(ctx, name, who, "schedule_remove", now, func(p *Plan, line *known.AuditLine) error {
		switch {
		case p.file == nil:
			p.Kept = KeptSchedule{}
			return nil
		case p.Kept.Definition == nil:
			return ErrInFile
		}
		line.Action, line.Detail = "schedule_revert", p.differences(*p.file)
		p.Kept.Definition, p.Kept.Base, p.Kept.From = nil, "", now.UTC()
		return nil
	})
}

// summary is a definition as text.
func (s *Schedule) summary() string {
	return fmt.Sprintf("job %s; cron %s; timezone %s; options %s", s.Job, s.Cron, cmp.Or(s.TimeZone, "UTC"), optionsText(s.Options))
}

// differences says what changes from one definition to another.
func (s *Schedule) differences(to Schedule) string {
	var out []string
	for _, f := range [][3]string{{"job", s.Job, to.Job}, {"cron", s.Cron, to.Cron},
		{"timezone", cmp.Or(s.TimeZone, "UTC"), cmp.Or(to.TimeZone, "UTC")}, {"options", optionsText(s.Options), optionsText(to.Options)}} {
		if f[1] != f[2] {
			out = append(out, f[0]+": "+f[1]+" → "+f[2])
		}
	}
	return cmp.Or(strings.Join(out, "; "), "nothing changed")
}

// optionsText writes options as in a YAML file, one line.
func optionsText(options map[string]any) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		text, err := known.Scalar(options[name])
		if err != nil {
			text = "?"
		}
		out = append(out, name+": "+text)
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// Paused reports whether the schedule has no ticks at this time.
func (p *Plan) Paused() bool { return p.Kept.Paused }

// FileText is the file's definition, where another one counts.
func (p *Plan) FileText() string {
	if p.Source() != "page_over_file" {
		return ""
	}
	return p.file.summary()
}

// OptionLines are the options as lines of YAML.
func (s *Schedule) OptionLines() string {
	return strings.ReplaceAll(strings.Trim(optionsText(s.Options), "{}"), ", ", "\n")
}
