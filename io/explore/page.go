package explore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/db"
)

// PerPage is how many rows of a database a page of a list has.
const PerPage = 50

const (
	// perStep is how many rows one query looks for a text in: no index finds a part of a
	// text. After longLook no further query begins.
	perStep  = 20_000
	longLook = time.Second
)

// Rows reads the first page of rows after a place: look gets the place's columns filled in,
// and one row more than a page has. place says the values of these columns of a row. from is
// the table with them. A search for a text that takes long ends before the page is full, and
// says so: the next page continues it.
func Rows[T any](ctx context.Context, d *db.DB, from string, q Query, look db.Look, order []db.Match, read func(db.Look) iter.Seq2[T, error], place func(T) []string, item func(T) Item) (list List, err error) {
	if q[After] != "" {
		var values []string
		if err := json.Unmarshal([]byte(q[After]), &values); err != nil || len(values) != len(order) {
			return list, Unknown("after: take next of the page before")
		}
		if look.After, err = matches(order, values); err != nil {
			return list, Unknown("after: take next of the page before")
		}
	}
	var last T
	began := d.Now()
	for {
		var step []string
		if look.Text != "" {
			if step, err = stepEnd(ctx, d, from, look, order); err != nil {
				return List{}, fmt.Errorf("finding the end of a step of the search: %w", err)
			}
		}
		look.Until = nil
		if step != nil {
			if look.Until, err = matches(order, step); err != nil {
				return List{}, err
			}
		}
		look.Limit = PerPage + 1 - len(list.Items)
		for row, err := range read(look) {
			if err != nil {
				return List{}, err
			}
			if len(list.Items) == PerPage {
				b, err := json.Marshal(place(last))
				list.Next = string(b)
				return list, err
			}
			list.Items, last = append(list.Items, item(row)), row
		}
		if step == nil {
			return list, nil
		}
		if d.Now().Sub(began) >= longLook {
			b, err := json.Marshal(step)
			list.Next, list.Note = string(b), "This is only what a second's search has found; the next page continues it."
			return list, err
		}
		look.After = look.Until
	}
}

// stepEnd returns the place perStep rows after look's; nil if there are fewer.
func stepEnd(ctx context.Context, d *db.DB, from string, look db.Look, order []db.Match) (values []string, err error) {
	and, _, args := db.Look{Equal: look.Equal, After: look.After}.SQL()
	values = make([]string, len(order))
	var texts, columns []string
	var into []any
	for i, m := range order {
		texts, columns, into = append(texts, fmt.Sprintf("%s AS v%d", m.Column, i)), append(columns, m.Column), append(into, &values[i])
	}
	err = d.QueryRowContext(ctx, fmt.Sprintf(`SELECT %s FROM %s WHERE 1 = 1%s ORDER BY %s LIMIT 1 OFFSET %d`, strings.Join(texts, ", "), from, and, strings.Join(columns, ", "), perStep-1), args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return values, err
}

// matches are the conditions that the columns of an order have these values.
func matches(order []db.Match, values []string) (all []db.Match, err error) {
	for i, m := range order {
		m.Value = values[i]
		if _, ok := order[i].Value.(int64); ok {
			if m.Value, err = strconv.ParseInt(values[i], 10, 64); err != nil {
				return nil, err
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// One returns the only row that read yields, ErrNone for none.
func One[T any](read iter.Seq2[T, error]) (T, error) {
	for row, err := range read {
		return row, err
	}
	var none T
	return none, ErrNone
}

// Chosen is a condition that a column has a value, none for "".
func Chosen(column, value string) []db.Match {
	if value == "" {
		return nil
	}
	return []db.Match{{Column: column, Value: value}}
}
