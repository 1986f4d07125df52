package alarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
)

const summariesPrefix = "reports/"

// Summary is the report of a day or a week: the object
// reports/{kind}/{name}.json. It counts the runs that ended in that time.
type Summary struct {
	Kind string                `json:"kind"` // daily or weekly
	Name string                `json:"name"` // 2026-11-20, or 2026-W47 (ISO 8601)
	From time.Time             `json:"from"`
	To   time.Time             `json:"to"` // exclusive
	Jobs map[string]JobSummary `json:"jobs"`
}

// JobSummary sums the reports of one job's runs.
type JobSummary struct {
	Runs        ledger.Counts `json:"runs"`       // by state
	Duration    float64       `json:"duration_s"` // of all runs
	Counts      ledger.Counts `json:"counts"`
	HTTP        ledger.HTTP   `json:"http"`
	DeadLetters ledger.Counts `json:"dead_letters"` // by kind
}

// period is a day or a week that is over.
type period struct {
	kind, name string
	from, to   time.Time
}

func (p period) key() string { return summariesPrefix + p.kind + "/" + p.name + ".json" }

// How many days and weeks back reports are written after the server was down.
const (
	catchUpDays  = 7
	catchUpWeeks = 2
)

// periods are the last days and weeks before now, oldest first. A week begins on
// Monday.
func periods(now time.Time, zone *time.Location) []period {
	now = now.In(zone)
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, zone)
	var out []period
	for n := catchUpDays; n > 0; n-- {
		from := today.AddDate(0, 0, -n)
		out = append(out, period{"daily", from.Format(time.DateOnly), from, today.AddDate(0, 0, 1-n)})
	}
	monday := today.AddDate(0, 0, -(int(today.Weekday())+6)%7)
	for n := catchUpWeeks; n > 0; n-- {
		from := monday.AddDate(0, 0, -7*n)
		year, week := from.ISOWeek()
		out = append(out, period{"weekly", fmt.Sprintf("%d-W%02d", year, week), from, monday.AddDate(0, 0, -7*(n-1))})
	}
	return out
}

// Summaries are the reports of days and weeks.
type Summaries struct {
	Store store.Store
	Zone  *time.Location
	Post  func(text string, now time.Time)
	Jobs  known.Jobs

	mu    sync.Mutex
	byKey map[string]Summary
	until time.Time // no summary is due before
	read  bool
}

// All are the summaries, newest first.
func (s *Summaries) All() []Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Collect(maps.Values(s.byKey))
	slices.SortFunc(out, func(a, b Summary) int {
		return cmp.Or(b.To.Compare(a.To), strings.Compare(a.Kind, b.Kind))
	})
	return out
}

// keptSummaries is how many summaries of each kind are read from the store.
const keptSummaries = 60

// Load reads the newest summaries.
func (s *Summaries) Load(ctx context.Context) error {
	found := map[string]Summary{}
	for _, kind := range []string{"daily", "weekly"} {
		keys, err := store.Keys(ctx, s.Store, summariesPrefix+kind+"/")
		if err != nil {
			return err
		}
		keys = slices.DeleteFunc(keys, func(key string) bool { return path.Ext(key) != ".json" })
		for _, key := range keys[max(0, len(keys)-keptSummaries):] {
			var sum Summary
			if err := store.ReadJSON(ctx, s.Store, key, known.MaxObject, &sum); err != nil {
				return err
			}
			found[key] = sum
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byKey, s.read = found, true
	return nil
}

// Tick writes the summaries that are due and missing. The server that creates a
// summary posts it to the webhook.
func (s *Summaries) Tick(ctx context.Context, all []*runs.Entry, now time.Time) (changed bool, err error) {
	s.mu.Lock()
	soon, read := now.Before(s.until), s.read
	s.mu.Unlock()
	if soon {
		return false, nil
	}
	if !read {
		if err := s.Load(ctx); err != nil {
			return false, err
		}
		changed = true
	}
	for _, p := range periods(now, s.Zone) {
		s.mu.Lock()
		_, there := s.byKey[p.key()]
		s.mu.Unlock()
		if there {
			continue
		}
		sum := summarize(p, all)
		err := store.CreateJSON(ctx, s.Store, p.key(), sum)
		switch {
		case errors.Is(err, store.ErrExist):
			if err := store.ReadJSON(ctx, s.Store, p.key(), known.MaxObject, &sum); err != nil {
				return changed, err
			}
		case err != nil:
			return changed, err
		case len(sum.Jobs) > 0: // no message for a day without runs
			s.Post(sum.Text(s.Jobs), now)
		}
		s.mu.Lock()
		s.byKey[p.key()] = sum
		s.mu.Unlock()
		changed = true
	}
	local := now.In(s.Zone)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Date(local.Year(), local.Month(), local.Day()+1, 0, 1, 0, 0, s.Zone) // a run that ends at midnight is on the board by then
	return changed, nil
}

func summarize(p period, all []*runs.Entry) Summary {
	sum := Summary{Kind: p.kind, Name: p.name, From: p.from.UTC(), To: p.to.UTC(), Jobs: map[string]JobSummary{}}
	tallies := map[string]*ledger.Tally{}
	for _, e := range all {
		at := e.Run.FinishedAt
		if e.Broken || e.Active() || at.Before(p.from) || !at.Before(p.to) {
			continue
		}
		j, ok := sum.Jobs[e.Run.Job]
		if !ok {
			j.Runs = ledger.Counts{}
			tallies[e.Run.Job] = &ledger.Tally{}
		}
		j.Runs[string(e.Run.State)]++
		j.Duration += e.Report.Duration
		tallies[e.Run.Job].Add(ledger.Tally{Counts: e.Report.Counts, HTTP: e.Report.HTTP, DeadLetters: e.Report.DeadLetters})
		sum.Jobs[e.Run.Job] = j
	}
	for name, t := range tallies {
		j := sum.Jobs[name]
		j.Counts, j.HTTP, j.DeadLetters = t.Counts, t.HTTP, t.DeadLetters
		sum.Jobs[name] = j
	}
	return sum
}

// States are the numbers of runs by state, as text.
func (j JobSummary) States() string {
	var out []string
	for _, state := range slices.Sorted(maps.Keys(j.Runs)) {
		out = append(out, fmt.Sprintf("%d %s", j.Runs[state], state))
	}
	return strings.Join(out, ", ")
}

// Text is the summary as a message.
func (s Summary) Text(jobs known.Jobs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[REPORT] %s %s", s.Kind, s.Name)
	for _, name := range slices.Sorted(maps.Keys(s.Jobs)) {
		j := s.Jobs[name]
		what, _ := jobs.Named(name)
		fmt.Fprintf(&b, "\n%s: runs %s; %s %d", name, j.States(), known.Words(what.Done), j.Counts[what.Done])
		if what.Failed != "" {
			fmt.Fprintf(&b, ", %s %d", known.Words(what.Failed), j.Counts[what.Failed])
		}
		fmt.Fprintf(&b, "; %d requests, %d dead letters", j.HTTP.Requests, known.Total(j.DeadLetters))
	}
	return b.String()
}
