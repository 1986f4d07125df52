package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// announce logs an alert and queues its message for the webhook. The caller holds mu.
func (a *alarm) announce(event, word string, b breach) {
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
	a.enqueueLocked(text)
}

// enqueueLocked queues a message for the webhook. The caller holds mu.
func (a *alarm) enqueueLocked(text string) {
	a.state.Outbox, a.dirty = append(a.state.Outbox, text), true
	if drop := len(a.state.Outbox) - maxOutbox; drop > 0 {
		a.log.Error("webhook_messages_dropped", "count", drop)
		a.state.Outbox = a.state.Outbox[drop:]
	}
}

// enqueue queues a message for the webhook, if there is one.
func (a *alarm) enqueue(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hook != nil {
		a.enqueueLocked(text)
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

// send sends the queued messages to the webhook, in order. After a failure it tries
// again, with growing pauses.
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
