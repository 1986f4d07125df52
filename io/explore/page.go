package explore

import (
	"encoding/json"
	"iter"
	"strconv"

	"github.com/newsfork/seed-engine/io/db"
)

// PerPage is how many rows of a database a page of a list has.
const PerPage = 50

// Rows reads the first page of rows after a place: look gets the place's columns filled in,
// and one row more than a page has. place says the values of these columns of a row.
func Rows[T any](q Query, look db.Look, order []db.Match, read func(db.Look) iter.Seq2[T, error], place func(T) []string, item func(T) Item) (list List, err error) {
	if q[After] != "" {
		var values []string
		if err := json.Unmarshal([]byte(q[After]), &values); err != nil || len(values) != len(order) {
			return list, Unknown("after: take next of the page before")
		}
		for i, m := range order {
			m.Value = values[i]
			if _, ok := order[i].Value.(int64); ok {
				if m.Value, err = strconv.ParseInt(values[i], 10, 64); err != nil {
					return list, Unknown("after: take next of the page before")
				}
			}
			look.After = append(look.After, m)
		}
	}
	look.Limit = PerPage + 1
	var last T
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
	return list, nil
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
