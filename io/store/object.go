package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// ReadAll reads a whole object of at most limit bytes, with retries. The error
// matches ErrNotExist when there is none.
func ReadAll(ctx context.Context, s Store, key string, limit int64) ([]byte, error) {
	var b []byte
	err := Retry(ctx, func() error {
		r, err := s.Open(ctx, key)
		if err != nil {
			return err
		}
		b, err = io.ReadAll(io.LimitReader(r, limit+1))
		return errors.Join(err, r.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("reading %s: over %d bytes, %w; move it away", key, limit, errForeign)
	}
	return b, nil
}

var errForeign = errors.New("so it was not written by this program")

// Write puts an object, with retries.
func Write(ctx context.Context, s Store, key string, body []byte, o PutOptions) error {
	if err := Retry(ctx, func() error { return s.Put(ctx, key, bytes.NewReader(body), o) }); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}

// Create puts an object where there is none, with retries; else the error
// matches ErrExist. An object of the same bytes counts as created: a try whose
// answer was lost may have written it. So bytes that two writers must not both
// write have to tell the writers apart.
func Create(ctx context.Context, s Store, key string, body []byte, o PutOptions) error {
	err := Retry(ctx, func() error { return s.PutIfAbsent(ctx, key, bytes.NewReader(body), o) })
	if errors.Is(err, ErrExist) {
		there, readErr := ReadAll(ctx, s, key, int64(len(body)))
		switch {
		case readErr == nil && bytes.Equal(there, body):
			return nil
		case readErr != nil && !errors.Is(readErr, errForeign) && !errors.Is(readErr, ErrNotExist):
			err = readErr // whose it is cannot be told
		}
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", key, err)
	}
	return nil
}

// Remove deletes an object, with retries. None there is no error.
func Remove(ctx context.Context, s Store, key string) error {
	if err := Retry(ctx, func() error { return s.Delete(ctx, key) }); err != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}
