package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/newsfork/seed-engine/cmd/search/embed"
	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/io/store"
)

// filled says what fill did.
type filled struct {
	HandOvers, Put, Deleted int
	Vectors                 int // that were made
	Lost                    int // objects that were no longer there
}

// fill reads what the docs job handed over into the search index: each chunk with its words and, if there is an endpoint, with its vector;
// it asks for the vectors of new and changed chunks alone. whole says of which providers the whole text may be kept. A second call
// continues where a killed one stopped.
func fill(ctx context.Context, s store.Store, x index.Index, c *embed.Client, whole map[string]bool, log *slog.Logger, now func() time.Time) (done filled, err error) {
	l, err := x.Lease(ctx)
	if err != nil {
		return done, err
	}
	ctx, release := l.Keep(ctx, func(lease.Event) {})
	defer func() { err = errors.Join(err, release()) }()
	if err := x.Restrict(ctx, whole); err != nil {
		return done, err
	}
	r := reader{store: s, index: x, client: c, whole: whole, log: log, now: now, done: &done}
	err = r.all(ctx)
	if errors.Is(err, index.ErrOtherLength) {
		log.Warn("embed_model_changed", "model", x.Model)
		if err = x.Forget(ctx); err == nil {
			r.waiting, r.inputs, r.puts = nil, nil, 0
			err = r.all(ctx)
		}
	}
	return done, err
}

// atOnce is how many chunks are put into the index at a time: enough for several requests
// to the endpoint, and few enough to be kept in memory.
const atOnce = 256

// reader puts what was handed over into the index.
type reader struct {
	store  store.Store
	index  index.Index
	client *embed.Client
	whole  map[string]bool
	log    *slog.Logger
	now    func() time.Time
	done   *filled

	waiting []index.Change // of pages, in their order
	inputs  []input        // of the vectors that they lack
	puts    int            // chunks in waiting
}

// input is what a vector is made of.
type input struct {
	change int // its place in waiting
	id     string
	text   string
}

// all reads the hand-offs that were not read yet.
func (r *reader) all(ctx context.Context) error {
	all, err := handOvers(ctx, r.store)
	if err != nil {
		return err
	}
	for _, h := range all {
		if was, err := r.index.Done(ctx, h.name); err != nil || was {
			if err != nil {
				return err
			}
			continue
		}
		for _, key := range h.keys {
			lines, err := readHandOff(ctx, r.store, key)
			if errors.Is(err, store.ErrNotExist) {
				r.done.Lost++
				continue
			}
			if err == nil {
				err = r.add(ctx, lines, h.at)
			}
			if err != nil {
				return err
			}
		}
		if err := r.apply(ctx); err != nil {
			return err
		}
		if h.deletion {
			if err := removal.EraseSearch(ctx, r.index.DB); err != nil {
				return err
			}
		}
		if err := r.index.SetDone(ctx, h.name, r.now()); err != nil {
			return err
		}
		r.done.HandOvers++
		r.log.Info("handoff_indexed", "name", h.name, "chunks", r.done.Put, "deleted", r.done.Deleted, "vectors", r.done.Vectors)
	}
	return nil
}

// add adds the lines of one object, which are of one provider, to what waits.
func (r *reader) add(ctx context.Context, lines []line, at time.Time) error {
	c := index.Change{At: at, Vectors: map[string][]float32{}}
	for _, l := range lines {
		if l.Op == "delete" {
			c.Delete = append(c.Delete, l.ID)
			continue
		}
		c.Put, c.Whole = append(c.Put, l.Chunk), r.whole[l.Provider]
	}
	lack, err := r.index.Lacking(ctx, c.Put)
	if err != nil {
		return err
	}
	for _, i := range lack {
		r.inputs = append(r.inputs, input{len(r.waiting), c.Put[i].ID, c.Put[i].Input()})
	}
	r.waiting = append(r.waiting, c)
	if r.puts += len(c.Put); r.puts < atOnce {
		return nil
	}
	return r.apply(ctx)
}

// apply puts what waits into the index.
func (r *reader) apply(ctx context.Context) error {
	if len(r.inputs) > 0 {
		texts := make([]string, len(r.inputs))
		for i, in := range r.inputs {
			texts[i] = in.text
		}
		vectors, err := r.client.Vectors(ctx, texts)
		if err != nil {
			return fmt.Errorf("%w; what was indexed until here stays, start it again for the rest", err)
		}
		for i, in := range r.inputs {
			r.waiting[in.change].Vectors[in.id] = vectors[i]
		}
	}
	for _, c := range r.waiting {
		if err := r.index.Apply(ctx, c); err != nil {
			return err
		}
		r.done.Put += len(c.Put)
		r.done.Deleted += len(c.Delete)
		r.done.Vectors += len(c.Vectors)
	}
	r.waiting, r.inputs, r.puts = nil, nil, 0
	return nil
}
