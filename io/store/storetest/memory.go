package storetest

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/newsfork/seed-engine/io/store"
)

// Memory is a store.Store in a map, for tests that make calls fail, and that run in
// a synctest bubble.
type Memory struct {
	mu    sync.Mutex
	M     map[string]string
	Opens int
	down  error                               // the error of every call while set
	Hook  func(op, key string, before bool)   // called before and after each call, unlocked
	Ghost func(op, key string) (answer error) // the result of a write that was made
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{M: map[string]string{}} }

func (s *Memory) around(op, key string) func() {
	if s.Hook == nil {
		return func() {}
	}
	s.Hook(op, key, true)
	return func() { s.Hook(op, key, false) }
}

func (s *Memory) List(_ context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		defer s.around("list", prefix)()
		s.mu.Lock()
		keys, down := slices.Sorted(maps.Keys(s.M)), s.down
		s.mu.Unlock()
		if down != nil {
			yield(store.Object{}, down)
			return
		}
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) && !yield(store.Object{Key: k}, nil) {
				return
			}
		}
	}
}

func (s *Memory) Head(context.Context, string) (store.Object, error) {
	return store.Object{}, errors.New("head is not used here")
}

func (s *Memory) Open(_ context.Context, key string) (io.ReadCloser, error) {
	defer s.around("open", key)()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Opens++
	if s.down != nil {
		return nil, s.down
	}
	v, ok := s.M[key]
	if !ok {
		return nil, store.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(v)), nil
}

func (s *Memory) put(op, key string, body io.Reader, absent bool) error {
	defer s.around(op, key)()
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	if _, ok := s.M[key]; ok && absent {
		return store.ErrExist
	}
	s.M[key] = string(b)
	if s.Ghost != nil {
		return s.Ghost(op, key)
	}
	return nil
}

func (s *Memory) Put(_ context.Context, key string, body io.Reader, _ store.PutOptions) error {
	return s.put("put", key, body, false)
}

func (s *Memory) PutIfAbsent(_ context.Context, key string, body io.Reader, _ store.PutOptions) error {
	return s.put("create", key, body, true)
}

func (s *Memory) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.M, key)
	return s.down
}

func (s *Memory) Close() error { return nil }

// Fail makes every call return err; nil ends that.
func (s *Memory) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Keys returns the keys of all objects, sorted.
func (s *Memory) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.M))
}
