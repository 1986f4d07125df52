package store

import (
	"context"
	"errors"
	"os"
)

type exister interface {
	exists(ctx context.Context, key string) (bool, error)
}

// Exists reports whether there is an object. In a directory it costs half of Head, which
// reads the object's metadata by a second system call; elsewhere it is Head.
func Exists(ctx context.Context, s Store, key string) (bool, error) {
	switch s := s.(type) {
	case *counted:
		s.calls.head.Add(1)
		there, err := Exists(ctx, s.Store, key)
		return there, s.calls.answered(&s.calls.reads, err)
	case *guarded:
		return Exists(ctx, s.Store, key)
	case exister:
		return s.exists(ctx, key)
	}
	_, err := s.Head(ctx, key)
	if errors.Is(err, ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (d *dir) exists(ctx context.Context, key string) (bool, error) {
	path, err := d.path(key)
	if err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	info, err := os.Stat(path)
	if err != nil {
		err = d.absentError(fileError("describing", key, err))
		if errors.Is(err, ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	return info.Mode().IsRegular(), nil
}
