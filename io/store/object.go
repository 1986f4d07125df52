package store

import (
	"bytes"
	"context"
	"encoding/json"
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
		return nil, fmt.Errorf("reading %s: it is over %d bytes, %w; move it out of the store", key, limit, errTooLarge)
	}
	return b, nil
}

var errTooLarge = errors.New("so it was not written by this program")

// Write writes an object, with retries.
func Write(ctx context.Context, s Store, key string, body []byte, o PutOptions) error {
	if err := Retry(ctx, func() error { return s.Put(ctx, key, bytes.NewReader(body), o) }); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}

// Create writes an object whose key does not exist, with retries; if it exists,
// the error matches ErrExist. An existing object with the same bytes counts as
// created: an earlier attempt may have written it although its response did not
// arrive. So where only one of two writers may succeed, their bytes must differ.
func Create(ctx context.Context, s Store, key string, body []byte, o PutOptions) error {
	err := Retry(ctx, func() error { return s.PutIfAbsent(ctx, key, bytes.NewReader(body), o) })
	if errors.Is(err, ErrExist) {
		there, readErr := ReadAll(ctx, s, key, int64(len(body)))
		switch {
		case readErr == nil && bytes.Equal(there, body):
			return nil
		case readErr != nil && !errors.Is(readErr, errTooLarge) && !errors.Is(readErr, ErrNotExist):
			err = readErr // who wrote it is unknown
		}
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", key, err)
	}
	return nil
}

// Remove deletes objects, with retries. An absent one is no error.
func Remove(ctx context.Context, s Store, keys ...string) error {
	for _, key := range keys {
		if err := Retry(ctx, func() error { return s.Delete(ctx, key) }); err != nil {
			return fmt.Errorf("deleting %s: %w", key, err)
		}
	}
	return nil
}

// Keys returns the keys that begin with prefix, in their order.
func Keys(ctx context.Context, s Store, prefix string) (keys []string, err error) {
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		keys = append(keys, o.Key)
	}
	return keys, nil
}

// Has is Exists, with retries.
func Has(ctx context.Context, s Store, key string) (there bool, err error) {
	err = Retry(ctx, func() (err error) { there, err = Exists(ctx, s, key); return err })
	return there, err
}

// ReadJSON reads a JSON object of at most limit bytes into v, with retries.
func ReadJSON(ctx context.Context, s Store, key string, limit int64, v any) error {
	b, err := ReadAll(ctx, s, key, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	return nil
}

// WriteJSON writes v as an indented JSON object, by Write.
func WriteJSON(ctx context.Context, s Store, key string, v any) error {
	return putJSON(ctx, s, key, v, Write)
}

// CreateJSON writes v as an indented JSON object, by Create.
func CreateJSON(ctx context.Context, s Store, key string, v any) error {
	return putJSON(ctx, s, key, v, Create)
}

func putJSON(ctx context.Context, s Store, key string, v any, put func(context.Context, Store, string, []byte, PutOptions) error) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", key, err)
	}
	return put(ctx, s, key, append(b, '\n'), PutOptions{ContentType: "application/json"})
}
