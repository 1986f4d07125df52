package store

import (
	"context"
	"io"
	"iter"
	"sync/atomic"
)

// Calls counts calls to a store by kind, for the run report. The zero value is
// ready; it must not be copied.
type Calls struct {
	list, head, open, put, putIfAbsent, delete atomic.Int64
	read, written                              atomic.Int64
}

// Snapshot returns the counts so far: list (in pages of 1000 objects), head, open,
// put, put_if_absent, delete. Every kind is present, also with 0.
func (c *Calls) Snapshot() map[string]int64 {
	return map[string]int64{
		"list":          c.list.Load(),
		"head":          c.head.Load(),
		"open":          c.open.Load(),
		"put":           c.put.Load(),
		"put_if_absent": c.putIfAbsent.Load(),
		"delete":        c.delete.Load(),
	}
}

// Bytes returns how many bytes of objects were read and written so far, also by calls
// that failed later.
func (c *Calls) Bytes() (read, written int64) { return c.read.Load(), c.written.Load() }

// Counted returns s and counts its calls in c, also those that fail.
func Counted(s Store, c *Calls) Store { return &counted{s, c} }

type counted struct {
	Store
	calls *Calls
}

func (s *counted) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		s.calls.list.Add(1)
		n := 0
		for o, err := range s.Store.List(ctx, prefix) {
			if n++; n > pageSize {
				n = 1
				s.calls.list.Add(1)
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

func (s *counted) Head(ctx context.Context, key string) (Object, error) {
	s.calls.head.Add(1)
	return s.Store.Head(ctx, key)
}

func (s *counted) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	s.calls.open.Add(1)
	body, err := s.Store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	return countedBody{countedReader{body, &s.calls.read}, body}, nil
}

func (s *counted) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	s.calls.put.Add(1)
	return s.Store.Put(ctx, key, countedReader{body, &s.calls.written}, o)
}

func (s *counted) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	s.calls.putIfAbsent.Add(1)
	return s.Store.PutIfAbsent(ctx, key, countedReader{body, &s.calls.written}, o)
}

func (s *counted) Delete(ctx context.Context, key string) error {
	s.calls.delete.Add(1)
	return s.Store.Delete(ctx, key)
}

// countedReader adds the bytes that are read from it to n.
type countedReader struct {
	io.Reader
	n *atomic.Int64
}

// Read implements io.Reader.
func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}

type countedBody struct {
	countedReader
	io.Closer
}
