package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// tell logs an alert and puts its message up for the webhook; the caller holds mu.
func (a *alarm) tell(event, word string, b breach) {
	a.log.Warn(event, "job", b.Job, "alert", b.Rule, "provider", b.Provider, "run_id", b.RunID, "text", b.Text)
	if a.hook == nil {
		return
	}
	who := b.Job
	if b.Provider != "" {
		who += " / " + b.Provider
	}
	text := fmt.Sprintf("[%s] %s, %s: %s", word, who, words(b.Rule), strings.TrimSuffix(b.Text, "."))
	if b.RunID != "" {
		text += ". Run " + b.RunID
	}
	a.post(text)
}

// post puts a message up for the webhook; the caller holds mu.
func (a *alarm) post(text string) {
	a.state.Outbox, a.dirty = append(a.state.Outbox, text), true
	if drop := len(a.state.Outbox) - maxOutbox; drop > 0 {
		a.log.Error("webhook_messages_dropped", "count", drop)
		a.state.Outbox = a.state.Outbox[drop:]
	}
}

// say is post for others.
func (a *alarm) say(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hook != nil {
		a.post(text)
	}
}

func (a *alarm) save(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.dirty {
		return nil
	}
	if err := putJSON(ctx, a.store.Put, alertsKey, a.state); err != nil {
		return err
	}
	a.dirty = false
	return nil
}

// send gives the webhook what waits for it, in order. One that does not answer
// is tried again, after growing pauses.
func (a *alarm) send(ctx context.Context, now time.Time) error {
	a.mu.Lock()
	waiting := slices.Clone(a.state.Outbox)
	soon := now.Before(a.nextAt)
	a.mu.Unlock()
	if a.hook == nil || soon {
		return nil
	}
	for _, text := range waiting {
		err := a.hook.send(ctx, text)
		a.mu.Lock()
		if err != nil {
			a.tries++
			a.nextAt = now.Add(min(5*time.Minute, time.Second<<min(a.tries, 9)))
			a.log.Warn("webhook_failed", "try", a.tries, "again_at", a.nextAt.UTC(), "error", err)
			a.mu.Unlock()
			return nil
		}
		a.tries, a.state.Outbox, a.dirty = 0, a.state.Outbox[1:], true
		a.mu.Unlock()
		if err := a.save(ctx); err != nil {
			return err
		}
	}
	return nil
}
