package store

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/store/hive"
)

// Roots are the prefixes below which a bucket has raw files and results, where they are other ones than hive.Datasets and
// hive.Processing: with a slash at the end, "/" for the bucket itself, "" for the usual one.
type Roots struct{ Raw, Results string }

// NewRoots returns the roots with these prefixes. Its errors say how to write them.
func NewRoots(raw, results string) (r Roots, err error) {
	if r.Raw, err = root(raw, hive.Datasets); err != nil {
		return r, fmt.Errorf("raw files: %w", err)
	}
	if r.Results, err = root(results, hive.Processing); err != nil {
		return r, fmt.Errorf("results: %w", err)
	}
	if r.Key(hive.Datasets) == r.Key(hive.Processing) || r.Results == "/" {
		return r, fmt.Errorf("results: %q has other objects too: use a prefix of their own, such as results/", results)
	}
	return r, nil
}

func root(prefix, usual string) (string, error) {
	switch prefix = strings.TrimSuffix(prefix, "/") + "/"; prefix {
	case usual:
		return "", nil
	case "/":
		return prefix, nil
	}
	if err := checkKey(strings.TrimSuffix(prefix, "/")); err != nil {
		return "", fmt.Errorf("write a prefix such as %s: %w", usual, err)
	}
	return prefix, nil
}

// of returns the usual root of a key or prefix, and the bucket's own.
func (r Roots) of(key string) (usual, own string, ok bool) {
	switch {
	case strings.HasPrefix(key, hive.Datasets):
		usual, own = hive.Datasets, r.Raw
	case strings.HasPrefix(key, hive.Processing):
		usual, own = hive.Processing, r.Results
	}
	return usual, strings.TrimPrefix(own, "/"), own != ""
}

// Key returns the bucket's own key of what the program calls key.
func (r Roots) Key(key string) string {
	if usual, own, ok := r.of(key); ok {
		return own + strings.TrimPrefix(key, usual)
	}
	return key
}

// Usual returns what the program calls the bucket's own key of a raw file: the inverse of Key.
func (r Roots) Usual(key string) string {
	if _, own, ok := r.of(hive.Datasets); ok && key != "" && strings.HasPrefix(key, own) {
		return hive.Datasets + strings.TrimPrefix(key, own)
	}
	return key
}

// Placed returns s with raw files and results under the usual roots, wherever the bucket has them. A listing whose prefix is not
// below a usual root yields the bucket's own keys.
func Placed(s Store, r Roots) Store {
	if r == (Roots{}) {
		return s
	}
	return &placed{s, r}
}

type placed struct {
	Store
	roots Roots
}

func (s *placed) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	usual, own, ok := s.roots.of(prefix)
	if !ok {
		return s.Store.List(ctx, prefix)
	}
	return func(yield func(Object, error) bool) {
		for o, err := range s.Store.List(ctx, s.roots.Key(prefix)) {
			o.Key = usual + strings.TrimPrefix(o.Key, own)
			if !yield(o, err) {
				return
			}
		}
	}
}

func (s *placed) Head(ctx context.Context, key string) (Object, error) {
	o, err := s.Store.Head(ctx, s.roots.Key(key))
	if err == nil {
		o.Key = key
	}
	return o, err
}

func (s *placed) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	return s.Store.Open(ctx, s.roots.Key(key))
}

func (s *placed) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return s.Store.Put(ctx, s.roots.Key(key), body, o)
}

func (s *placed) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return s.Store.PutIfAbsent(ctx, s.roots.Key(key), body, o)
}

func (s *placed) Delete(ctx context.Context, key string) error {
	return s.Store.Delete(ctx, s.roots.Key(key))
}

func (s *placed) putAll(ctx context.Context, items []Item) []error {
	items = slices.Clone(items)
	for i := range items {
		items[i].Key = s.roots.Key(items[i].Key)
	}
	return putAll(ctx, s.Store, items)
}

func (s *placed) exists(ctx context.Context, key string) (bool, error) {
	return Exists(ctx, s.Store, s.roots.Key(key))
}
