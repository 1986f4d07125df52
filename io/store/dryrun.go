package store

import (
	"context"
	"io"
)

// DryRun returns s without its writes and deletions: they succeed and do nothing. So what
// changes a store can say what it would do.
func DryRun(s Store) Store { return dryRun{s} }

type dryRun struct{ Store }

func (dryRun) Put(_ context.Context, _ string, body io.Reader, _ PutOptions) error {
	_, err := io.Copy(io.Discard, body)
	return err
}

func (d dryRun) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return d.Put(ctx, key, body, o)
}

func (dryRun) Delete(context.Context, string) error { return nil }
