package known

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
	// AuditShown is how many of the newest lines are shown.
	AuditShown  = 200
	auditLayout = "20060102T150405.000000000Z"
)

// AuditLine says who asked the server for what. It is written before the server does
// it, so that nothing is done without a line. A request that is refused
// for what it says has none.
type AuditLine struct {
	At     time.Time `json:"at"`
	Who    string    `json:"who"`
	Action string    `json:"action"` // such as schedule_pause
	Target string    `json:"target"`
	Detail string    `json:"detail,omitempty"`
}

// Audit is the list of what people did.
type Audit struct {
	store store.Store

	mu   sync.Mutex
	read map[string]AuditLine // by key; lines never change
}

// NewAudit returns the list in a store.
func NewAudit(s store.Store) *Audit { return &Audit{store: s, read: map[string]AuditLine{}} }

// Write adds a line.
func (a *Audit) Write(ctx context.Context, l AuditLine) error {
	l.At = l.At.UTC()
	return store.CreateJSON(ctx, a.store, auditPrefix+l.At.Format(auditLayout)+"-"+rand.Text()[:8]+".json", l)
}

// Newest are the newest lines, newest first.
func (a *Audit) Newest(ctx context.Context, n int) ([]AuditLine, error) {
	keys, err := store.Keys(ctx, a.store, auditPrefix)
	if err != nil {
		return nil, err
	}
	keys = keys[max(0, len(keys)-n):]
	out := make([]AuditLine, 0, len(keys))
	kept := map[string]AuditLine{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range slices.Backward(keys) {
		l, known := a.read[key]
		if !known {
			if err := store.ReadJSON(ctx, a.store, key, MaxObject, &l); errors.Is(err, store.ErrNotExist) {
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

// Sweep removes the oldest lines over maxAudit.
func (a *Audit) Sweep(ctx context.Context) error {
	keys, err := store.Keys(ctx, a.store, auditPrefix)
	if err != nil {
		return err
	}
	return store.Remove(ctx, a.store, keys[:max(0, len(keys)-maxAudit)]...)
}
