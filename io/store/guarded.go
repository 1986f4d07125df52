package store

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
)

// Guarded is s whose writes ask allow first: when they begin, when it may wait,
// and before what cannot be taken back, when it may not: when a connection has
// been made, or a file is moved into its place. Its error keeps the write from
// being made.
func Guarded(s Store, allow func(ctx context.Context, wait bool) error) Store {
	return &guarded{s, allow}
}

type guarded struct {
	Store
	allow func(ctx context.Context, wait bool) error
}

// errNotNow is Retryable: the next try waits.
var errNotNow = errors.New("the write is not allowed now")

type lastLookKey struct{}

// lastLook asks once more whether a write is allowed.
func lastLook(ctx context.Context) error {
	if allow, ok := ctx.Value(lastLookKey{}).(func(context.Context, bool) error); ok && allow(ctx, false) != nil {
		return errNotNow
	}
	return nil
}

func (s *guarded) do(ctx context.Context, write func(context.Context) error) error {
	if err := s.allow(ctx, true); err != nil {
		return err
	}
	within := context.WithValue(ctx, lastLookKey{}, s.allow)
	refused := false
	within = httptrace.WithClientTrace(within, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if s.allow(ctx, false) != nil { // the process may have been suspended since it began to connect
			refused = true
			_ = info.Conn.Close() // so nothing is sent
		}
	}})
	err := write(within)
	if err != nil && refused {
		return errors.Join(errNotNow, err)
	}
	return err
}

func (s *guarded) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return s.do(ctx, func(ctx context.Context) error { return s.Store.Put(ctx, key, body, o) })
}

func (s *guarded) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return s.do(ctx, func(ctx context.Context) error { return s.Store.PutIfAbsent(ctx, key, body, o) })
}

func (s *guarded) Delete(ctx context.Context, key string) error {
	return s.do(ctx, func(ctx context.Context) error { return s.Store.Delete(ctx, key) })
}
