// Package kept keeps documents that people change in a store. A change is a new version,
// with its time and author; no version is ever replaced. Of two people who change the
// same version, one succeeds. No promise: see docs/library.md.
package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// maxVersion is the maximum size of a version in bytes.
const maxVersion = 1 << 20

// Version is a document at one time.
type Version struct {
	Number int             `json:"version"` // 1 is the first
	At     time.Time       `json:"at"`
	Who    string          `json:"who"`
	Action string          `json:"action"`
	Body   json.RawMessage `json:"body"`
}

// ErrChanged means that a document has another version than the writer has read.
var ErrChanged = errors.New("it has been changed since it was read")

// Shelf has the documents below a prefix of a store: {prefix}{name}/{version}.json. It
// remembers the versions that it has read, which never change.
type Shelf struct {
	store  store.Store
	prefix string

	mu   sync.Mutex
	read map[string]Version // by key
}

// On returns the shelf at a prefix, which ends with a slash.
func On(s store.Store, prefix string) *Shelf {
	return &Shelf{store: s, prefix: prefix, read: map[string]Version{}}
}

// Newest returns the newest version of each document by name.
func (s *Shelf) Newest(ctx context.Context) (map[string]Version, error) {
	keys, err := s.keys(ctx, s.prefix)
	if err != nil {
		return nil, err
	}
	out := map[string]Version{}
	for i, key := range keys {
		name := path.Base(path.Dir(key))
		if i+1 < len(keys) && path.Dir(keys[i+1]) == path.Dir(key) {
			continue // a newer one follows
		}
		if out[name], err = s.version(ctx, key); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Bodies decodes the newest version of each document.
func Bodies[T any](newest map[string]Version) (map[string]T, error) {
	out := map[string]T{}
	for name, v := range newest {
		var body T
		if err := json.Unmarshal(v.Body, &body); err != nil {
			return nil, fmt.Errorf("reading version %d of %s in the store: %w", v.Number, name, err)
		}
		out[name] = body
	}
	return out, nil
}

// Current decodes the newest version of each document of a shelf.
func Current[T any](ctx context.Context, s *Shelf) (map[string]T, error) {
	newest, err := s.Newest(ctx)
	if err != nil {
		return nil, err
	}
	return Bodies[T](newest)
}

// History returns the newest versions of a document, newest first.
func (s *Shelf) History(ctx context.Context, name string, most int) ([]Version, error) {
	keys, err := s.keys(ctx, s.prefix+name+"/")
	if err != nil {
		return nil, err
	}
	var out []Version
	for _, key := range slices.Backward(keys[max(0, len(keys)-most):]) {
		v, err := s.version(ctx, key)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Add writes the version after the one that the writer has read; 0: there was none. It
// returns ErrChanged if that is not the newest one.
func (s *Shelf) Add(ctx context.Context, name string, after int, v Version) (Version, error) {
	if err := store.Exclusive(ctx, s.store); err != nil {
		return v, err
	}
	keys, err := s.keys(ctx, s.prefix+name+"/")
	if err != nil {
		return v, err
	}
	newest := 0
	if len(keys) > 0 {
		newest = number(keys[len(keys)-1])
	}
	if newest != after {
		return v, ErrChanged
	}
	v.Number, v.At = after+1, v.At.UTC()
	b, err := json.Marshal(v)
	if err != nil {
		return v, fmt.Errorf("encoding %s: %w", name, err)
	}
	key := fmt.Sprintf("%s%s/%08d.json", s.prefix, name, v.Number)
	err = store.Create(ctx, s.store, key, b, store.PutOptions{})
	if errors.Is(err, store.ErrExist) {
		return v, ErrChanged
	}
	return v, err
}

// keys are the keys of versions below a prefix, by name and number.
func (s *Shelf) keys(ctx context.Context, prefix string) (keys []string, err error) {
	for o, err := range s.store.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		if parts := strings.Split(strings.TrimPrefix(o.Key, s.prefix), "/"); len(parts) == 2 && number(o.Key) > 0 {
			keys = append(keys, o.Key)
		}
	}
	return keys, nil
}

// number is the version in a key, 0 for the key of something else.
func number(key string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(path.Base(key), ".json"))
	if err != nil || path.Base(key) != fmt.Sprintf("%08d.json", n) {
		return 0
	}
	return n
}

func (s *Shelf) version(ctx context.Context, key string) (Version, error) {
	s.mu.Lock()
	v, known := s.read[key]
	s.mu.Unlock()
	if known {
		return v, nil
	}
	b, err := store.ReadAll(ctx, s.store, key, maxVersion)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("reading %s: %w", key, err)
	}
	v.Number = number(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[key] = v
	return v, nil
}
