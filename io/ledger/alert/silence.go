package alert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/untrusted"
)

// silencePrefix has an object {id}.json for each silence.
const silencePrefix = "alerts/silences/"

// The bounds of a silence.
const (
	MinSilence = time.Minute
	MaxSilence = 30 * 24 * time.Hour
	maxNote    = 500
)

// Silence keeps alerts from being sent for a while. They are still raised and shown.
// An empty job, rule or provider means all.
type Silence struct {
	ID       string    `json:"id"`
	Job      string    `json:"job,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Provider string    `json:"provider,omitempty"` // or publisher, site, schedule
	At       time.Time `json:"at"`
	Until    time.Time `json:"until"`
	By       string    `json:"by"`
	Note     string    `json:"note,omitempty"`
}

// Covers reports whether the silence holds back an alert at a time.
func (s Silence) Covers(job, rule, provider string, now time.Time) bool {
	matches := func(want, is string) bool { return want == "" || want == is }
	return now.Before(s.Until) && matches(s.Job, job) && matches(s.Rule, rule) && matches(s.Provider, provider)
}

// CheckRule refuses the name of an alert that there is not: the silence would hold back nothing.
func (s Silence) CheckRule() error {
	if s.Rule != "" && !slices.Contains(Names(), s.Rule) {
		return fmt.Errorf("there is no alert %q; use one of %s", s.Rule, strings.Join(Names(), ", "))
	}
	return nil
}

// Text says what is silent.
func (s Silence) Text() string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"job", s.Job}, {"alert", s.Rule}, {"provider", s.Provider}} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	if len(parts) == 0 {
		return "all alerts"
	}
	return strings.Join(parts, ", ")
}

// AddSilence stores a silence that lasts for some time from now on.
func AddSilence(ctx context.Context, s store.Store, sil Silence, lasts time.Duration, now time.Time) (Silence, error) {
	if lasts < MinSilence || lasts > MaxSilence {
		return sil, fmt.Errorf("a silence lasts from 1m to %dh, such as 2h", int(MaxSilence.Hours()))
	}
	for _, text := range []*string{&sil.Job, &sil.Rule, &sil.Provider, &sil.Note} {
		*text = untrusted.Text(*text, maxNote)
	}
	sil.ID, sil.At, sil.Until = ledger.NewRunID(now), now.UTC(), now.Add(lasts).UTC()
	return sil, store.WriteJSON(ctx, s, silencePrefix+sil.ID+".json", sil)
}

// maxSilence is how many bytes of a silence's object are read.
const maxSilence = 64 << 10

// Silences are the silences that have not ended, oldest first.
func Silences(ctx context.Context, s store.Store, now time.Time) (last []Silence, err error) {
	last, _, err = silences(ctx, s, now)
	return last, err
}

// silences reads all silences: those that last, and the keys of those that have ended.
func silences(ctx context.Context, s store.Store, now time.Time) (last []Silence, over []string, err error) {
	for o, err := range s.List(ctx, silencePrefix) {
		if err != nil {
			return nil, nil, fmt.Errorf("listing %s: %w", silencePrefix, err)
		}
		sil, err := readSilence(ctx, s, o.Key)
		switch {
		case errors.Is(err, store.ErrNotExist): // removed since the listing
		case err != nil:
			return nil, nil, err
		case now.Before(sil.Until):
			last = append(last, sil)
		default:
			over = append(over, o.Key)
		}
	}
	return last, over, nil
}

func readSilence(ctx context.Context, s store.Store, key string) (Silence, error) {
	var sil Silence
	err := store.ReadJSON(ctx, s, key, maxSilence, &sil)
	return sil, err
}

// ErrNoSilence says that there is no silence of an id.
var ErrNoSilence = errors.New("there is no such silence")

// EndSilence removes a silence. The error is ErrNoSilence if there is none.
func EndSilence(ctx context.Context, s store.Store, id string) (Silence, error) {
	key := silencePrefix + path.Base(id) + ".json"
	sil, err := readSilence(ctx, s, key)
	if errors.Is(err, store.ErrNotExist) {
		return sil, ErrNoSilence
	}
	if err != nil {
		return sil, err
	}
	return sil, store.Remove(ctx, s, key)
}

// SweepSilences removes the silences that have ended.
func SweepSilences(ctx context.Context, s store.Store, now time.Time) error {
	_, over, err := silences(ctx, s, now)
	if err != nil {
		return err
	}
	return store.Remove(ctx, s, over...)
}

// StateKey is the object in which the servers' leader keeps what fires.
const StateKey = "alerts/state.json"

// Firing is an alert that fires.
type Firing struct {
	Job      string    `json:"job"`
	Rule     string    `json:"rule"`
	Provider string    `json:"provider"`
	Schedule string    `json:"schedule"` // whose runs it is about
	Since    time.Time `json:"since"`
	RunID    string    `json:"run_id"`
	Text     string    `json:"text"`
}

// maxState is how many bytes of StateKey are read.
const maxState = 16 << 20

// ReadFiring reads what fires, as the servers' leader saved it last.
func ReadFiring(ctx context.Context, s store.Store) ([]Firing, error) {
	var state struct {
		Firing map[string]Firing `json:"firing"`
	}
	if err := store.ReadJSON(ctx, s, StateKey, maxState, &state); err != nil && !errors.Is(err, store.ErrNotExist) {
		return nil, err
	}
	var out []Firing
	for _, key := range slices.Sorted(maps.Keys(state.Firing)) {
		out = append(out, state.Firing[key])
	}
	return out, nil
}
