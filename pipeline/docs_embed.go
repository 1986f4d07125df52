package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/newsfork/seed-engine/io/embed"
	"github.com/newsfork/seed-engine/io/index"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/docs"
)

// Embedded says what Embed did.
type Embedded struct {
	HandOvers, Put, Deleted int
	Vectors                 int // that were made
	Lost                    int // objects that were no longer there
}

// Embed reads what the docs job handed over and puts it into the search index: each chunk
// with its words and, if there is an endpoint, with its vector. It asks for the vectors of
// new and changed chunks alone. whole says of which providers the whole text may be kept.
// A second call continues where a killed one stopped.
func Embed(ctx context.Context, s store.Store, x index.Index, c *embed.Client, whole map[string]bool, log *slog.Logger, now func() time.Time) (done Embedded, err error) {
	l, err := x.Lease(ctx)
	if err != nil {
		return done, err
	}
	ctx, release := l.Keep(ctx, func(lease.Event) {})
	defer func() { err = errors.Join(err, release()) }()
	if err := x.Restrict(ctx, whole); err != nil {
		return done, err
	}
	home, err := x.Prepare(ctx)
	if err != nil {
		return done, err
	}
	if home.Why != "" {
		log.Warn("pgvector_missing", "why", home.Why)
	}
	all, err := docs.HandOvers(ctx, s)
	if err != nil {
		return done, err
	}
	for _, h := range all {
		was, err := x.Done(ctx, h.Name)
		if err != nil {
			return done, err
		}
		if was {
			continue
		}
		e := embedding{x, c, whole, h.At, &done}
		for _, key := range h.Keys {
			lines, err := docs.ReadHandOff(ctx, s, key)
			if errors.Is(err, store.ErrNotExist) {
				done.Lost++
				continue
			}
			if err == nil {
				err = e.apply(ctx, lines)
			}
			if err != nil {
				return done, err
			}
		}
		if h.Deletion {
			if err := index.Erase(ctx, x.DB); err != nil {
				return done, err
			}
		}
		if err := x.SetDone(ctx, h.Name, now()); err != nil {
			return done, err
		}
		done.HandOvers++
		log.Info("handoff_indexed", "name", h.Name, "chunks", done.Put, "deleted", done.Deleted, "vectors", done.Vectors)
	}
	return done, nil
}

type embedding struct {
	index   index.Index
	client  *embed.Client
	whole   map[string]bool
	at      time.Time
	counted *Embedded
}

// apply puts the lines of one object, which are of one provider, into the index.
func (e embedding) apply(ctx context.Context, lines []docs.HandedLine) error {
	c := index.Change{At: e.at, Vectors: map[string][]float32{}}
	for _, l := range lines {
		if l.Op == "delete" {
			c.Delete = append(c.Delete, l.ID)
			continue
		}
		k := index.Chunk{ID: l.ID, Provider: l.Provider, URL: l.URL, Anchor: l.Anchor, Title: l.Title, Context: l.Context, Language: l.Language, Text: l.Text, Ordinal: l.Ordinal}
		if l.FetchedAt != nil {
			k.FetchedAt = *l.FetchedAt
		}
		c.Put, c.Whole = append(c.Put, k), e.whole[l.Provider]
	}
	lack, err := e.index.Lacking(ctx, c.Put)
	if err != nil {
		return err
	}
	var inputs []string
	for _, i := range lack {
		inputs = append(inputs, c.Put[i].Input())
	}
	if len(inputs) > 0 {
		vectors, err := e.client.Vectors(ctx, inputs)
		if err != nil {
			return fmt.Errorf("%w; what was indexed until here stays, start it again for the rest", err)
		}
		for i, v := range vectors {
			c.Vectors[c.Put[lack[i]].ID] = v
		}
	}
	if err := e.index.Apply(ctx, c); err != nil {
		return err
	}
	e.counted.Put += len(c.Put)
	e.counted.Deleted += len(c.Delete)
	e.counted.Vectors += len(c.Vectors)
	return nil
}
