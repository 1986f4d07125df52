package db

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"
)

// Select yields the rows of one query, one at a time. The query sees one moment of the
// database, whatever others write meanwhile.
func Select[T any](ctx context.Context, d *DB, scan func(*sql.Rows) (T, error), query string, args ...any) iter.Seq2[T, error] {
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

// Texts returns the first column of all rows of a query.
func Texts(ctx context.Context, d *DB, query string, args ...any) (all []string, err error) {
	for text, err := range Select(ctx, d, func(r *sql.Rows) (text string, err error) { return text, r.Scan(&text) }, query, args...) {
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// OptionalTime is a stored time of which 0 means none.
func OptionalTime(micros int64) *time.Time {
	if micros == 0 {
		return nil
	}
	t := Time(micros)
	return &t
}
