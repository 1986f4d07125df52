package store

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
)

// Guarded returns s with writes that need permission. allow is called when a write
// begins, with wait true: it may block. It is called again just before the step
// that cannot be undone (sending over a new connection, renaming the file), with
// wait false: it must not block. Its error prevents the write.
func Guarded(s Store, allow func(ctx context.Context, wait bool) error) Store {
	return &guarded{s, allow}
}

type guarded struct {
	Store
	allow func(ctx context.Context, wait bool) error
}

// errNotAllowedNow is Retryable: the next attempt waits for permission.
var errNotAllowedNow = errors.New("the write is not allowed now")

type allowKey struct{}

// checkAllowed checks the permission of a write for the second time.
func checkAllowed(ctx context.Context) error {
	if allow, ok := ctx.Value(allowKey{}).(func(context.Context, bool) error); ok && allow(ctx, false) != nil {
		return errNotAllowedNow
	}
	return nil
}

func (s *guarded) do(ctx context.Context, write func(context.Context) error) error {
	if err := s.allow(ctx, true); err != nil {
		return err
	}
	within := context.WithValue(ctx, allowKey{}, s.allow)
	refused := false
	within = httptrace.WithClientTrace(within, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if s.allow(ctx, false) != nil { // the process may have been suspended since it began to connect
			refused = true
			_ = info.Conn.Close() // so nothing is sent
		}
	}})
	err := write(within)
	if err != nil && refused {
		return errors.Join(errNotAllowedNow, err)
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
