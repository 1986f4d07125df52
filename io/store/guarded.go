package store

import (
	"context"
	"io"
)

// Guarded is s whose writes ask allow first, which may wait; its error keeps the
// write from being made.
func Guarded(s Store, allow func(context.Context) error) Store { return &guarded{s, allow} }

type guarded struct {
	Store
	allow func(context.Context) error
}

func (s *guarded) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	if err := s.allow(ctx); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, body, o)
}

func (s *guarded) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	if err := s.allow(ctx); err != nil {
		return err
	}
	return s.Store.PutIfAbsent(ctx, key, body, o)
}

func (s *guarded) Delete(ctx context.Context, key string) error {
	if err := s.allow(ctx); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}
