package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// The keys of the docs job's hand-off; docs/reference/hand-off.md has its fields.
const (
	manifests     = "handoff/manifests/docs/"
	deletionLists = "handoff/docs/deletions/"
	again         = "-again.jsonl" // ends the key of a page that is handed over again
	// maxHandOff is the largest object of the hand-off that is read, in bytes.
	maxHandOff = 256 << 20
)

// handOver is something to do: what a session changed, or the deletion of a provider.
type handOver struct {
	name     string // the key of the manifest or of the deletion list
	at       time.Time
	deletion bool
	keys     []string // of the objects, in the order in which they have to be read
}

// handOvers returns what is in the hand-off, in the order in which it has to be done. A
// chunk has the same id when it comes back after a deletion, so the order matters.
func handOvers(ctx context.Context, s store.Store) (all []handOver, err error) {
	for o, err := range s.List(ctx, manifests) {
		if err != nil {
			return nil, fmt.Errorf("listing the manifests of the hand-off: %w", err)
		}
		b, err := store.ReadAll(ctx, s, o.Key, maxHandOff)
		if errors.Is(err, store.ErrNotExist) {
			continue // its retention ended since the listing
		}
		var m struct {
			CompletedAt time.Time `json:"completed_at"`
			Providers   []struct{ Objects []struct{ Key string } }
		}
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest %s: %w", o.Key, err)
		}
		h := handOver{name: o.Key, at: m.CompletedAt}
		for _, p := range m.Providers {
			for _, object := range p.Objects {
				h.keys = append(h.keys, object.Key)
			}
		}
		later := func(key string) int {
			if strings.HasSuffix(key, again) {
				return 1
			}
			return 0
		}
		// What is handed over again in a session is written after what changed in it.
		slices.SortFunc(h.keys, func(a, b string) int { return cmp.Or(later(a)-later(b), cmp.Compare(a, b)) })
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
		all = append(all, handOver{name: o.Key, at: at, deletion: true, keys: []string{o.Key}})
	}
	slices.SortFunc(all, func(a, b handOver) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	return all, nil
}

// line is a line of the hand-off.
type line struct {
	Op string // upsert or delete
	index.Chunk
}

// readHandOff reads the lines of an object. The error matches store.ErrNotExist if there
// is none: its retention has ended, or its provider was purged.
func readHandOff(ctx context.Context, s store.Store, key string) (lines []line, err error) {
	b, err := store.ReadAll(ctx, s, key, maxHandOff)
	if err != nil {
		return nil, err
	}
	for text := range bytes.Lines(b) {
		var l line
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

// wholeAllowed returns the providers whose policy says tos: allowed: of those in dir or, if it is empty, of the shipped ones, with the
// changes that people keep in the store.
func wholeAllowed(ctx context.Context, s store.Store, dir string) (map[string]bool, error) {
	var files fs.FS = policies.Files
	if dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, usage.Errorf("--policies=%s is no directory; name the one with the YAML files", dir)
		}
		files = os.DirFS(dir)
	}
	loaded, err := policy.Load(files, time.Now())
	if err != nil {
		return nil, usage.Errorf("--policies: %w", err)
	}
	providers := policy.Kind(nil)
	changes, err := kept.Current[policyfile.Change](ctx, kept.On(s, providers.Kept()))
	if err != nil {
		return nil, fmt.Errorf("reading the providers in the store: %w", err)
	}
	allowed := map[string]bool{}
	for _, p := range providers.Join(loaded, changes, dir != "", time.Now()) {
		allowed[p.ID] = p.Value.Terms == policy.Allowed
	}
	return allowed, nil
}
