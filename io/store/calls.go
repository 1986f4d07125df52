package store

import (
	"context"
	"io"
	"iter"
	"sync/atomic"

	"github.com/newsfork/seed-engine/io/fault"
)

// Calls counts calls to a store by kind, for the run report, and is told what they wait
// for. The zero value is ready; it must not be copied.
type Calls struct {
	Shortages fault.Watch

	ended                  atomic.Bool
	reads, writes, deletes fault.Answers

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

// EndWaits makes Retry wait no longer for what our side lacks: the run ends because of it.
func (c *Calls) EndWaits() { c.ended.Store(true) }

// Bytes returns how many bytes of objects were read and written so far, also by calls
// that failed later.
func (c *Calls) Bytes() (read, written int64) { return c.read.Load(), c.written.Load() }

// answered returns the error of a call, marked as that of a patient store if our side
// lacks something.
func (c *Calls) answered(kind *fault.Answers, err error) error {
	failed := ours(err) != nil
	kind.Note(failed)
	if !failed {
		return err
	}
	return &patient{err, c, kind}
}

// callsKey is the key of the Calls in the context of a List, which makes its own retries.
type callsKey struct{}

func ofList(ctx context.Context, err error) error {
	if c, ok := ctx.Value(callsKey{}).(*Calls); ok {
		return c.answered(&c.reads, err)
	}
	return err
}

// Counted returns s for a run: it counts its calls in c, also those that fail, and Retry
// is patient with them.
func Counted(s Store, c *Calls) Store { return &counted{s, c} }

type counted struct {
	Store
	calls *Calls
}

func (s *counted) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		s.calls.list.Add(1)
		n := 0
		for o, err := range s.Store.List(context.WithValue(ctx, callsKey{}, s.calls), prefix) {
			if n++; n > pageSize {
				n = 1
				s.calls.list.Add(1)
			}
			if !yield(o, s.calls.answered(&s.calls.reads, err)) {
				return
			}
		}
	}
}

func (s *counted) Head(ctx context.Context, key string) (Object, error) {
	s.calls.head.Add(1)
	o, err := s.Store.Head(ctx, key)
	return o, s.calls.answered(&s.calls.reads, err)
}

func (s *counted) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	s.calls.open.Add(1)
	body, err := s.Store.Open(ctx, key)
	if err = s.calls.answered(&s.calls.reads, err); err != nil {
		return nil, err
	}
	return countedBody{countedReader{body, &s.calls.read}, body, s.calls}, nil
}

func (s *counted) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	s.calls.put.Add(1)
	return s.calls.answered(&s.calls.writes, s.Store.Put(ctx, key, countedReader{body, &s.calls.written}, o))
}

func (s *counted) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	s.calls.putIfAbsent.Add(1)
	return s.calls.answered(&s.calls.writes, s.Store.PutIfAbsent(ctx, key, countedReader{body, &s.calls.written}, o))
}

func (s *counted) Delete(ctx context.Context, key string) error {
	s.calls.delete.Add(1)
	return s.calls.answered(&s.calls.deletes, s.Store.Delete(ctx, key))
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
	calls *Calls
}

// Read implements io.Reader.
func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.countedReader.Read(p)
	if err != nil && err != io.EOF {
		err = b.calls.answered(&b.calls.reads, err)
	}
	return n, err
}
