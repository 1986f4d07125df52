package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
)

// manifests is the prefix of the keys of the sessions' manifests.
const manifests = "handoff/manifests/docs/"

// Manifest says that a session has ended, and lists what it handed over. It is written
// after everything else of the session, so nothing is added to the list later. The
// comments of the fields are a page in docs/reference.
type Manifest struct {
	// Id of the session.
	Session string `json:"session"`
	// When it ended.
	CompletedAt time.Time `json:"completed_at"`
	// Every provider is done.
	Complete  bool              `json:"complete"`
	Providers []ProviderHandOff `json:"providers"`
}

// ProviderHandOff is what a session handed over for a provider.
type ProviderHandOff struct {
	// Id of the provider.
	Provider string `json:"provider"`
	// done, open, out_of_budget, held or unreachable, or of a site that is not open: blocked, moved, closed or thin.
	State State `json:"state"`
	// Why it has this state; absent: none was needed.
	Reason string `json:"reason,omitempty"`
	// All pages were handed over, not only those that changed.
	Again bool `json:"again"`
	// What was handed over, by key.
	Objects []HandOffObject `json:"objects"`
}

// HandOffObject is one object of the hand-off.
type HandOffObject struct {
	// Key of the object in the store.
	Key string `json:"key"`
	// Its bytes.
	Size int64 `json:"size"`
}

// sessionPrefix is the prefix of the keys of what a session hands over for a provider.
func sessionPrefix(provider, session string) string { return handOffPrefix(provider) + session + "/" }

// parts returns a session's providers, sorted by id, without their objects.
func parts(ctx context.Context, d *db.DB, session string) (out []ProviderHandOff, err error) {
	rows, err := d.QueryContext(ctx, `SELECT provider, state, reason, stats FROM docs_runs WHERE session = $1 ORDER BY provider`, session)
	if err != nil {
		return nil, fmt.Errorf("reading the states of the providers of session %s: %w", session, err)
	}
	err = each(rows, func() error {
		h, text := ProviderHandOff{Objects: []HandOffObject{}}, ""
		if err := rows.Scan(&h.Provider, &h.State, &h.Reason, &text); err != nil {
			return err
		}
		var s Stats
		err := json.Unmarshal([]byte(text), &s)
		h.Again = s.Again
		out = append(out, h)
		return err
	})
	return out, err
}

// writeManifest ends a session's hand-off.
func writeManifest(ctx context.Context, s store.Store, session string, parts []ProviderHandOff, now time.Time) error {
	m := Manifest{Session: session, CompletedAt: now.UTC(), Complete: true, Providers: parts}
	for i, p := range parts {
		m.Complete = m.Complete && p.State == Done
		for o, err := range s.List(ctx, sessionPrefix(p.Provider, session)) {
			if err != nil {
				return fmt.Errorf("listing what session %s handed over: %w", session, err)
			}
			parts[i].Objects = append(parts[i].Objects, HandOffObject{o.Key, o.Size})
		}
	}
	if err := store.WriteJSON(ctx, s, manifests+session+".json", m); err != nil {
		return err
	}
	return nil
}
