package engine

import (
	"context"
	"time"

	"github.com/newsfork/seed-engine/transforms/news/raw"
)

const (
	// unknownInterval is the time until a publisher is due that says nothing about when it publishes.
	unknownInterval = time.Hour
	// few and many are how many of the newest articles tell how often a publisher publishes:
	// few at times of much news, many on the whole.
	few, many = 5, 20
)

// due returns an *errStop if the publisher is not due, and records that it is asked if it
// is. The provider's lease makes both one step over all processes.
func (v *visit) due(ctx context.Context) error {
	asked, due, err := raw.Asked(ctx, v.DB, v.p.ID())
	if err != nil {
		return err
	}
	now := v.now()
	if v.OnlyDue && !asked.IsZero() {
		// The limits of the publisher's file may have changed since.
		if due = asked.Add(v.policy.Often.Clamp(due.Sub(asked))); now.Before(due) {
			return &errStop{NotDue, "not due before " + due.UTC().Format(time.RFC3339) + ", by how often it publishes", "not_due"}
		}
	}
	v.asked = now
	return raw.Ask(ctx, v.DB, v.p.ID(), now, now.Add(v.policy.Often.Clamp(unknownInterval)))
}

// scheduled records when the publisher is due again, by what its sources named.
func (v *visit) scheduled(ctx context.Context, found []candidate) error {
	interval := v.policy.Often.Clamp(interval(found, v.now()))
	if v.result.Missed > 0 || v.result.Left > 0 {
		interval = v.policy.Often.Clamp(0)
	}
	v.result.DueAt = v.asked.Add(interval)
	return raw.Ask(ctx, v.DB, v.p.ID(), v.asked, v.result.DueAt)
}

// interval is half of the mean time between two of the newest articles, which are sorted.
func interval(found []candidate, now time.Time) time.Duration {
	var times []time.Time
	for _, c := range found {
		if at := c.when(); !at.IsZero() && !at.After(now) && len(times) < many {
			times = append(times, at)
		}
	}
	if len(times) < 2 {
		return unknownInterval
	}
	mean := now.Sub(times[len(times)-1]) / time.Duration(len(times))
	if len(times) > few {
		mean = min(mean, now.Sub(times[few-1])/few)
	}
	return mean / 2
}
