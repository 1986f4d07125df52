package docs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

const (
	deletionLists = "handoff/docs/deletions/"
	// maxHandOff is the largest object of the hand-off that is read.
	maxHandOff = 256 << 20
)

// HandOver is something that the embedding step has to do: what a session changed, or
// the deletion of a provider.
type HandOver struct {
	Name     string // the key of the manifest or of the deletion list
	At       time.Time
	Deletion bool
	Keys     []string // of the objects, in the order in which they have to be read
}

// HandOvers returns what is in the hand-off, in the order in which it has to be done. A
// chunk has the same id when it comes back after a deletion, so the order matters.
func HandOvers(ctx context.Context, s store.Store) (all []HandOver, err error) {
	for o, err := range s.List(ctx, manifests) {
		if err != nil {
			return nil, fmt.Errorf("listing the manifests of the hand-off: %w", err)
		}
		b, err := readObject(ctx, s, o.Key)
		if errors.Is(err, store.ErrNotExist) {
			continue // its retention ended since the listing
		}
		var m Manifest
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest %s: %w", o.Key, err)
		}
		h := HandOver{Name: o.Key, At: m.CompletedAt}
		for _, p := range m.Providers {
			for _, object := range p.Objects {
				h.Keys = append(h.Keys, object.Key)
			}
		}
		again := func(key string) int {
			if strings.HasSuffix(key, againSuffix+".jsonl") {
				return 1
			}
			return 0
		}
		// What is handed over again in a session is written after what changed in it.
		slices.SortFunc(h.Keys, func(a, b string) int { return cmp.Or(again(a)-again(b), cmp.Compare(a, b)) })
		all = append(all, h)
	}
	for o, err := range s.List(ctx, deletionLists) {
		if err != nil {
			return nil, fmt.Errorf("listing the deletion lists of the hand-off: %w", err)
		}
		name := strings.TrimSuffix(path.Base(o.Key), ".jsonl")
		at, err := time.Parse("20060102T150405Z", name[strings.LastIndex(name, "-")+1:])
		if err != nil {
			return nil, fmt.Errorf("%s is no deletion list: its name has no time", o.Key)
		}
		all = append(all, HandOver{Name: o.Key, At: at, Deletion: true, Keys: []string{o.Key}})
	}
	slices.SortFunc(all, func(a, b HandOver) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// HandedLine is a line of the hand-off.
type HandedLine = handOffLine

// ReadHandOff reads the lines of an object. The error matches store.ErrNotExist if there
// is none: its retention has ended, or its provider was purged.
func ReadHandOff(ctx context.Context, s store.Store, key string) (lines []HandedLine, err error) {
	b, err := readObject(ctx, s, key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return parseHandOff(key, b)
}

func parseHandOff(key string, b []byte) (lines []HandedLine, err error) {
	for text := range bytes.Lines(b) {
		var l HandedLine
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("line %d of %s: %w", len(lines)+1, key, err)
		}
		if l.ID == "" || l.Op != "upsert" && l.Op != "delete" {
			return nil, fmt.Errorf("line %d of %s has the op %q and the id %q", len(lines)+1, key, l.Op, l.ID)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func readObject(ctx context.Context, s store.Store, key string) (b []byte, err error) {
	err = store.Retry(ctx, func() error {
		r, err := s.Open(ctx, key)
		if err != nil {
			return err
		}
		b, err = io.ReadAll(io.LimitReader(r, maxHandOff+1))
		return errors.Join(err, r.Close())
	})
	if err == nil && len(b) > maxHandOff {
		err = fmt.Errorf("it is over %d MB", maxHandOff>>20)
	}
	return b, err
}
