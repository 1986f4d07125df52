package server

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

const (
	// auditPrefix has an object for each audit line.
	auditPrefix = "audit/"
	// maxAudit is how many lines are kept; the leader removes older ones.
	maxAudit = 1000
	// auditShown is how many of the newest lines are shown.
	auditShown  = 200
	auditLayout = "20060102T150405.000000000Z"
)

// auditLine says who asked the server for what. It is written before the server does
// it, so that nothing is done without a line. A request that is refused
// for what it says has none.
type auditLine struct {
	At     time.Time `json:"at"`
	Who    string    `json:"who"`
	Action string    `json:"action"` // such as schedule_pause
	Target string    `json:"target"`
	Detail string    `json:"detail,omitempty"`
}

// audit is the list of what people did.
type audit struct {
	store store.Store

	mu   sync.Mutex
	read map[string]auditLine // by key; lines never change
}

func newAudit(s store.Store) *audit { return &audit{store: s, read: map[string]auditLine{}} }

func (a *audit) write(ctx context.Context, l auditLine) error {
	l.At = l.At.UTC()
	return store.CreateJSON(ctx, a.store, auditPrefix+l.At.Format(auditLayout)+"-"+rand.Text()[:8]+".json", l)
}

func (a *audit) keys(ctx context.Context) ([]string, error) {
	return store.Keys(ctx, a.store, auditPrefix)
}

// newest are the newest lines, newest first.
func (a *audit) newest(ctx context.Context, n int) ([]auditLine, error) {
	keys, err := a.keys(ctx)
	if err != nil {
		return nil, err
	}
	keys = keys[max(0, len(keys)-n):]
	out := make([]auditLine, 0, len(keys))
	kept := map[string]auditLine{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range slices.Backward(keys) {
		l, known := a.read[key]
		if !known {
			if err := store.ReadJSON(ctx, a.store, key, maxObject, &l); errors.Is(err, store.ErrNotExist) {
				continue // removed since the listing
			} else if err != nil {
				return nil, err
			}
		}
		kept[key] = l
		out = append(out, l)
	}
	a.read = kept
	return out, nil
}

// sweep removes the oldest lines over maxAudit.
func (a *audit) sweep(ctx context.Context) error {
	keys, err := a.keys(ctx)
	if err != nil {
		return err
	}
	return store.Remove(ctx, a.store, keys[:max(0, len(keys)-maxAudit)]...)
}
