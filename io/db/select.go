package db

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"
)

// Querier is a database, or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Select yields the rows of one query, one at a time. The query sees one moment of the
// database, whatever others write meanwhile.
func Select[T any](ctx context.Context, d Querier, scan func(*sql.Rows) (T, error), query string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		found, err := d.QueryContext(ctx, query, args...)
		if err != nil {
			yield(none, err)
			return
		}
		for found.Next() {
			row, err := scan(found)
			if !yield(row, err) || err != nil {
				_ = found.Close() // only read
				return
			}
		}
		if err := errors.Join(found.Err(), found.Close()); err != nil {
			yield(none, err)
		}
	}
}

// All returns the rows of a query.
func All[T any](ctx context.Context, d Querier, scan func(*sql.Rows) (T, error), query string, args ...any) (all []T, err error) {
	for row, err := range Select(ctx, d, scan, query, args...) {
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, nil
}

// Texts returns the first column of all rows of a query.
func Texts(ctx context.Context, d Querier, query string, args ...any) (all []string, err error) {
	return All(ctx, d, func(r *sql.Rows) (text string, err error) { return text, r.Scan(&text) }, query, args...)
}

// OptionalTime is a stored time of which 0 means none.
func OptionalTime(micros int64) *time.Time {
	if micros == 0 {
		return nil
	}
	t := Time(micros)
	return &t
}
