package ledger

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/newsfork/seed-engine/io/store"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	p := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(p, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s (run with -update if it should):\n%s", p, got)
	}
}

// memory is a store.Store in a map, so that these tests need no driver and
// their time can be synctest's.
type memory struct {
	mu    sync.Mutex
	m     map[string]string
	opens int
	down  error                               // what every call answers while set
	hook  func(op, key string, before bool)   // called around each call, unlocked
	ghost func(op, key string) (answer error) // what is answered though the call was done
}

func newMemory() *memory { return &memory{m: map[string]string{}} }

func (s *memory) around(op, key string) func() {
	if s.hook == nil {
		return func() {}
	}
	s.hook(op, key, true)
	return func() { s.hook(op, key, false) }
}

func (s *memory) List(_ context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		defer s.around("list", prefix)()
		s.mu.Lock()
		keys, down := slices.Sorted(maps.Keys(s.m)), s.down
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

func (s *memory) Head(context.Context, string) (store.Object, error) {
	return store.Object{}, errors.New("head is not used here")
}

func (s *memory) Open(_ context.Context, key string) (io.ReadCloser, error) {
	defer s.around("open", key)()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	if s.down != nil {
		return nil, s.down
	}
	v, ok := s.m[key]
	if !ok {
		return nil, store.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(v)), nil
}

func (s *memory) put(op, key string, body io.Reader, absent bool) error {
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
	if _, ok := s.m[key]; ok && absent {
		return store.ErrExist
	}
	s.m[key] = string(b)
	if s.ghost != nil {
		return s.ghost(op, key)
	}
	return nil
}

func (s *memory) Put(_ context.Context, key string, body io.Reader, _ store.PutOptions) error {
	return s.put("put", key, body, false)
}

func (s *memory) PutIfAbsent(_ context.Context, key string, body io.Reader, _ store.PutOptions) error {
	return s.put("create", key, body, true)
}

func (s *memory) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, key)
	return s.down
}

func (s *memory) Close() error { return nil }

func (s *memory) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

func (s *memory) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.m))
}
