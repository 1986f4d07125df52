package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/store"
)

// manifests is where the store has the manifest of each session.
const manifests = "handoff/manifests/docs/"

// Manifest says that a session has ended and what it handed over. It is written
// after everything else of the session: once it is there, nothing is added to
// what it lists.
type Manifest struct {
	Session     string       `json:"session"`
	CompletedAt time.Time    `json:"completed_at"`
	Complete    bool         `json:"complete"` // every provider is done
	Providers   []HandedOver `json:"providers"`
}

// HandedOver is what a session handed over of a provider.
type HandedOver struct {
	Provider string         `json:"provider"`
	State    State          `json:"state"`
	Reason   string         `json:"reason,omitempty"`
	Again    bool           `json:"again"`   // all pages, not only those that changed
	Objects  []HandedObject `json:"objects"` // by key
}

// HandedObject is one object of the hand-off.
type HandedObject struct {
	Key  string `json:"key"`
	Size int64  `json:"size"`
}

// sessionPrefix is where the store has what a session hands over of a provider.
func sessionPrefix(provider, session string) string { return handOffPrefix(provider) + session + "/" }

// parts are a session's providers, by id, without their objects.
func parts(ctx context.Context, d *db.DB, session string) (out []HandedOver, err error) {
	rows, err := d.QueryContext(ctx, `SELECT provider, state, reason, stats FROM runs WHERE session = $1 ORDER BY provider`, session)
	if err != nil {
		return nil, fmt.Errorf("reading how the providers of session %s stand: %w", session, err)
	}
	err = each(rows, func() error {
		h, text := HandedOver{Objects: []HandedObject{}}, ""
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
func writeManifest(ctx context.Context, s store.Store, session string, parts []HandedOver, now time.Time) error {
	m := Manifest{Session: session, CompletedAt: now.UTC(), Complete: true, Providers: parts}
	for i, p := range parts {
		m.Complete = m.Complete && p.State == Done
		for o, err := range s.List(ctx, sessionPrefix(p.Provider, session)) {
			if err != nil {
				return fmt.Errorf("listing what session %s handed over: %w", session, err)
			}
			parts[i].Objects = append(parts[i].Objects, HandedObject{o.Key, o.Size})
		}
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the manifest of session %s: %w", session, err)
	}
	if err := store.Retry(ctx, func() error {
		return s.Put(ctx, manifests+session+".json", bytes.NewReader(append(b, '\n')), store.PutOptions{ContentType: "application/json"})
	}); err != nil {
		return fmt.Errorf("writing the manifest of session %s: %w", session, err)
	}
	return nil
}
