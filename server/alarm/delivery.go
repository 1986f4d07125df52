package alarm

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
)

const (
	// maxOutbox is how many messages of one channel wait while it does not take them.
	maxOutbox = 100
	// giveUpAfter is how long a message is tried.
	giveUpAfter = 24 * time.Hour
	// maxGivenUp is how many messages that were given up are shown for each channel.
	maxGivenUp = 20
)

// outbox has the messages of one channel.
type outbox struct {
	Waiting  []notice  `json:"waiting,omitempty"` // oldest first
	Tries    int       `json:"tries,omitempty"`   // of the first, without success
	NextAt   time.Time `json:"next_at,omitzero"`
	Error    string    `json:"error,omitempty"` // of the last try, if it failed
	SentAt   time.Time `json:"sent_at,omitzero"`
	FailedAt time.Time `json:"failed_at,omitzero"`
	GivenUp  []givenUp `json:"given_up,omitempty"` // newest first
}

// givenUp is a message that was not delivered and is not tried again.
type givenUp struct {
	At    time.Time `json:"at"`
	Text  string    `json:"text"`
	Error string    `json:"error"`
}

func (o *outbox) giveUp(m notice, why string, now time.Time) {
	o.GivenUp = slices.Insert(o.GivenUp, 0, givenUp{now.UTC(), m.Text, why})
	o.GivenUp = o.GivenUp[:min(len(o.GivenUp), maxGivenUp)]
}

// announce logs an alert and queues its message. The caller holds mu.
func (a *Alarm) announce(event, word string, b Breach, now time.Time) {
	a.Log.Warn(event, "job", b.Job, "alert", b.Rule, "provider", b.Provider, "schedule", b.Schedule, "selection", b.Selection, "run_id",
		b.RunID, "text", b.Text, "silenced", b.Untold)
	if b.Untold {
		return
	}
	if told, many := a.together[word]; many && b.Rule == "provider" {
		a.together[word] = append(told, b)
		return
	}
	text := b.Sentence()
	if word == "OVER" {
		text = b.about()
	}
	a.enqueueLocked(notice{Type: strings.ReplaceAll(event, "_", "."), Data: &b, RunID: b.RunID, page: b.Page(), Text: "[" + word + "] " + text}, now)
}

// enqueueLocked queues a message for every channel. The caller holds mu.
func (a *Alarm) enqueueLocked(m notice, now time.Time) {
	a.stamp(&m, now)
	for _, c := range a.Channels {
		o := a.outbox(c.Name)
		o.Waiting, a.dirty = append(o.Waiting, m), true
		for len(o.Waiting) > maxOutbox {
			a.Log.Error("alert_given_up", "channel", c.Name, "id", o.Waiting[0].ID, "error", "too many messages wait")
			o.giveUp(o.Waiting[0], "too many messages waited", now)
			o.Waiting = o.Waiting[1:]
		}
	}
}

// stamp gives a message its id, its time and its link.
func (a *Alarm) stamp(m *notice, now time.Time) {
	m.ID, m.At = rand.Text(), now.UTC()
	if a.PublicURL != "" {
		m.URL = a.PublicURL + cmp.Or(m.page, "/alerts")
	}
}

// Enqueue queues a report for every channel.
func (a *Alarm) Enqueue(text string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enqueueLocked(notice{Type: "report", Text: text, page: "/reports"}, now)
}

// ErrNoChannel says that the server has no channel of a name.
var ErrNoChannel = errors.New("the server has no such channel")

// Test sends a message to one channel at once. It waits for no other message, and is not tried again.
func (a *Alarm) Test(ctx context.Context, channel string, now time.Time) error {
	i := slices.IndexFunc(a.Channels, func(c Channel) bool { return c.Name == channel })
	if i < 0 {
		return ErrNoChannel
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	m := notice{Type: "test", Text: "[TEST] This channel works: somebody tried it on the page of alerts"}
	a.stamp(&m, now)
	return a.Channels[i].Send(ctx, m, now)
}

// outbox is a channel's outbox. The caller holds mu.
func (a *Alarm) outbox(name string) *outbox {
	if a.State.Channels == nil {
		a.State.Channels = map[string]*outbox{}
	}
	if a.State.Channels[name] == nil {
		a.State.Channels[name] = &outbox{}
	}
	return a.State.Channels[name]
}

func (a *Alarm) save(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.dirty {
		return nil
	}
	if err := store.WriteJSON(ctx, a.Store, alert.StateKey, a.State); err != nil {
		return err
	}
	a.dirty = false
	return nil
}

// send sends the messages that wait, all channels at once and each channel's in
// order.
func (a *Alarm) send(ctx context.Context, now time.Time) (changed bool, err error) {
	within, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	errs, sent := make([]error, len(a.Channels)), make([]bool, len(a.Channels))
	var all sync.WaitGroup
	for i, c := range a.Channels {
		a.mu.Lock()
		o := a.outbox(c.Name)
		due := len(o.Waiting) > 0 && !now.Before(o.NextAt)
		a.mu.Unlock()
		if due {
			sent[i] = true
			all.Go(func() { errs[i] = a.sendTo(ctx, within, c, now) })
		}
	}
	all.Wait()
	return slices.Contains(sent, true), errors.Join(errs...)
}

// sendTo sends what waits for one channel until a message is not taken. The state is
// saved after each message, so that a restart neither loses nor repeats one; ctx is
// for that, within for sending.
func (a *Alarm) sendTo(ctx, within context.Context, c Channel, now time.Time) error {
	a.mu.Lock()
	o := a.outbox(c.Name)
	waiting := slices.Clone(o.Waiting)
	a.mu.Unlock()
	for _, m := range waiting {
		if within.Err() != nil {
			return nil // the next tick sends the rest
		}
		err := c.Send(within, m, now)
		if ctx.Err() != nil && err != nil {
			return nil // the server ends; the next one sends it
		}
		var refused *refusedError
		a.mu.Lock()
		a.dirty = true
		switch {
		case err == nil:
			o.Tries, o.Error, o.NextAt, o.SentAt, o.Waiting = 0, "", time.Time{}, now.UTC(), o.Waiting[1:]
			a.Count(c.Name, "sent")
		case errors.As(err, &refused), now.Sub(m.At) >= giveUpAfter:
			o.Tries, o.Error, o.NextAt, o.FailedAt, o.Waiting = 0, ledger.ErrorText(err), time.Time{}, now.UTC(), o.Waiting[1:]
			o.giveUp(m, o.Error, now)
			a.Count(c.Name, "given_up")
			a.Log.Error("alert_given_up", "channel", c.Name, "id", m.ID, "error", o.Error)
		default:
			o.Tries, o.Error, o.FailedAt = o.Tries+1, ledger.ErrorText(err), now.UTC()
			o.NextAt = now.Add(min(5*time.Minute, time.Second<<min(o.Tries, 9))).UTC()
			a.Count(c.Name, "failed")
			a.Log.Warn("webhook_failed", "channel", c.Name, "try", o.Tries, "again_at", o.NextAt, "error", o.Error)
		}
		tried := o.Tries > 0
		a.mu.Unlock()
		if err := a.save(ctx); err != nil || tried {
			return err
		}
	}
	return nil
}

// ChannelRow is the state of a channel.
type ChannelRow struct {
	Name     string     `json:"name"`
	Waiting  int        `json:"waiting"`
	Error    string     `json:"error,omitempty"` // of the last try, if it failed
	NextAt   *time.Time `json:"next_at,omitempty"`
	SentAt   *time.Time `json:"sent_at,omitempty"`
	FailedAt *time.Time `json:"failed_at,omitempty"`
	GivenUp  []givenUp  `json:"given_up"`
}

// Rows are the channels as they were when this server read or wrote them last.
func (a *Alarm) Rows() []ChannelRow {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []ChannelRow{}
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	for _, c := range a.Channels {
		o := a.outbox(c.Name)
		row := ChannelRow{c.Name, len(o.Waiting), o.Error, nil, at(o.SentAt), at(o.FailedAt), slices.Clone(o.GivenUp)}
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
