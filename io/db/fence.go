package db

import (
	"context"
	"database/sql"
)

type fenceKey struct{}

// fence is a check that transactions of a context are committed under; outer are
// those of the contexts around it.
type fence struct {
	db    *DB
	check func(context.Context, *sql.Tx) error
	outer *fence
}

// WithFence gives a context under which each write on d calls check as the last
// thing in its own transaction: an error of check takes the transaction back.
// What check reads and locks cannot change before the commit.
func (d *DB) WithFence(ctx context.Context, check func(context.Context, *sql.Tx) error) context.Context {
	outer, _ := ctx.Value(fenceKey{}).(*fence)
	return context.WithValue(ctx, fenceKey{}, &fence{d, check, outer})
}

// WithoutFences gives a context whose writes no fence of ctx checks.
func WithoutFences(ctx context.Context) context.Context {
	return context.WithValue(ctx, fenceKey{}, (*fence)(nil))
}

func (d *DB) isFenced(ctx context.Context) bool {
	for f, _ := ctx.Value(fenceKey{}).(*fence); f != nil; f = f.outer {
		if f.db == d {
			return true
		}
	}
	return false
}

func (d *DB) checkFences(ctx context.Context, tx *sql.Tx) error {
	for f, _ := ctx.Value(fenceKey{}).(*fence); f != nil; f = f.outer {
		if f.db != d {
			continue
		}
		if err := f.check(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
