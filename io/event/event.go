// Package event sends rows that a job stored or changed to others, as events of CloudEvents 1.0. What runs left in the store
// and the database is the outbox: a position says up to when its rows are sent, and moves only after the other side has
// them. So no kill loses one; after a kill some come again, with the same id. No promise: see docs/library.md.
package event

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/store"
)

const (
	// overlap is how much earlier than it is visible a row can say that it is stored, by the difference of clocks.
	overlap = 2 * time.Minute
	// maxKnown is how many ids of sent events the position has; those before them are sent again within overlap.
	maxKnown = 100_000
	// maxPosition is the size of the largest position that is read, in bytes.
	maxPosition = 8 << 20
	// maxText is how many bytes of a text an event has.
	maxText = 2048
	// parallel is how many sends are under way at the same time.
	parallel = 8
)

// position is up to where a job's rows are sent.
type position struct {
	Since time.Time `json:"since"`          // all rows that were stored before this time are sent
	Known []string  `json:"sent,omitempty"` // ids of rows that were stored since then and are sent
}

// key is the object with a job's position.
func key(job string) string { return "events/" + job + ".json" }

// Begin makes a job's position, unless it has one: rows that are stored from now on will be sent, and some of the last minutes.
func Begin(ctx context.Context, s store.Store, job string, now time.Time) error {
	err := store.CreateJSON(ctx, s, key(job), position{Since: now.Add(-overlap).UTC()})
	if err != nil && !errors.Is(err, store.ErrExist) {
		return fmt.Errorf("beginning to send events: %w", err)
	}
	return nil
}

// Send sends the rows of src that were stored since the last Send or Begin, and returns how many are new. now is a time
// before the call. One process may do it for a job at a time.
func Send(ctx context.Context, what rows.What, src rows.Source, out queue.Out, now time.Time) (sent int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sending events of the %s job (the next run sends them again): %w", what.Job, err)
		}
	}()
	var at position
	if err := store.ReadJSON(ctx, src.Store, key(what.Job), maxPosition, &at); err != nil {
		return 0, err
	}
	known := map[string]bool{}
	for _, id := range at.Known {
		known[id] = true
	}
	next := position{Since: now.Add(-overlap).UTC()}
	if next.Since.Before(at.Since) {
		next.Since = at.Since
	}
	sends, within := errgroup.WithContext(ctx)
	sends.SetLimit(parallel)
	var wait []queue.Event
	size := 0
	flush := func() {
		part := wait
		sends.Go(func() error { return send(within, out, part) })
		sent, wait, size = sent+len(part), nil, 0
	}
	src.Filter = rows.Filter{Stored: at.Since}
	for r, err := range what.Records(within, src) {
		if err != nil {
			return 0, errors.Join(sends.Wait(), err)
		}
		e, err := of(what, r)
		if err != nil {
			return 0, errors.Join(sends.Wait(), err)
		}
		if next.Known = append(next.Known, e.ID); len(next.Known) > 2*maxKnown {
			next.Known = append([]string(nil), next.Known[maxKnown:]...)
		}
		if known[e.ID] {
			continue
		}
		if len(wait) == queue.MaxEvents || size+len(e.JSON) > queue.MaxBytes {
			flush()
		}
		wait, size = append(wait, e), size+len(e.JSON)
	}
	if len(wait) > 0 {
		flush()
	}
	if err := sends.Wait(); err != nil {
		return 0, err
	}
	next.Known = next.Known[max(0, len(next.Known)-maxKnown):]
	return sent, store.WriteJSON(ctx, src.Store, key(what.Job), next)
}

// send sends events, and again after a pause if that may help.
func send(ctx context.Context, out queue.Out, events []queue.Event) (err error) {
	for _, pause := range pauses {
		if err = out.Send(ctx, events); err == nil || errors.Is(err, queue.ErrRefused) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
	return out.Send(ctx, events)
}

// pauses are those between the tries of a send.
var pauses = []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}

// cloudEvent is the JSON format of CloudEvents 1.0 (https://cloudevents.io).
type cloudEvent struct {
	Version string         `json:"specversion"`
	ID      string         `json:"id"`
	Source  string         `json:"source"`
	Type    string         `json:"type"`
	Subject string         `json:"subject"`
	Time    time.Time      `json:"time"`
	Content string         `json:"datacontenttype"`
	Data    explore.Record `json:"data"`
}

// of is the event of a row. Its data are the columns of its id and of the kind's list.
func of(k rows.What, r explore.Record) (queue.Event, error) {
	e := cloudEvent{Version: "1.0", Source: "/seed-engine/" + k.Job, Type: k.Event.Type, Content: "application/json"}
	columns := k.Event.ID
	if k.Event.Back != "" && r.Column("state").Value == "back" {
		columns = append(slices.Clip(columns), k.Event.Back)
	}
	for _, name := range columns {
		e.Data = append(e.Data, r.Column(name))
		if at, ok := e.Data[len(e.Data)-1].Value.(time.Time); ok && at.After(e.Time) {
			e.Time = at.UTC()
		}
	}
	id, err := json.Marshal(e.Data)
	if err != nil {
		return queue.Event{}, err
	}
	sum := sha256.Sum256(append(id, e.Type...))
	e.ID = hex.EncodeToString(sum[:16])
	e.Subject, _ = r.Column(k.Event.Subject).Value.(string)
	for _, name := range k.Listed() {
		if !slices.ContainsFunc(e.Data, func(c explore.Cell) bool { return c.Name == name }) {
			e.Data = append(e.Data, r.Column(name))
		}
	}
	for i, c := range e.Data {
		if text, ok := c.Value.(string); ok {
			e.Data[i].Value = short(text)
		}
	}
	e.Subject = short(e.Subject)
	body, err := json.Marshal(e)
	return queue.Event{ID: e.ID, JSON: body}, err
}

// short is the beginning of a text.
func short(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxText)], "") }
