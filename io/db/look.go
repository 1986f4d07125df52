package db

import (
	"fmt"
	"strings"
)

// Look narrows a query to what a person looks at. The zero value narrows nothing.
type Look struct {
	Equal   []Match  // all of them hold
	Text    string   // one of Columns has it, whatever the case
	Columns []string // of Text
	After   []Match  // only rows after these values, in the order of the query
	Until   []Match  // only rows before these values, or with them, in the same order
	Limit   int      // 0: none
}

// Match is a column and a value, a string or an int64.
type Match struct {
	Column string
	Value  any
}

// SQL returns conditions that each begin with AND, the limit, and args with those of both.
func (l Look) SQL(args ...any) (and, limit string, all []any) {
	param := func(v any) string {
		args = append(args, v)
		if _, ok := v.(int64); ok {
			return fmt.Sprintf("$%d", len(args)) // a number or a time
		}
		return fmt.Sprintf("CAST($%d AS TEXT)", len(args))
	}
	var b strings.Builder
	for _, m := range l.Equal {
		fmt.Fprintf(&b, " AND %s = %s", m.Column, param(m.Value))
	}
	if l.Text != "" {
		p := param("%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(l.Text) + "%")
		var any []string
		for _, c := range l.Columns {
			any = append(any, fmt.Sprintf(`LOWER(CAST(%s AS TEXT)) LIKE LOWER(%s) ESCAPE '\'`, c, p))
		}
		fmt.Fprintf(&b, " AND (%s)", strings.Join(any, " OR "))
	}
	compare := func(to []Match, how string) {
		var columns, values []string
		for _, m := range to {
			columns, values = append(columns, m.Column), append(values, param(m.Value))
		}
		if len(to) > 0 {
			fmt.Fprintf(&b, " AND (%s) %s (%s)", strings.Join(columns, ", "), how, strings.Join(values, ", "))
		}
	}
	compare(l.After, ">")
	compare(l.Until, "<=")
	if l.Limit > 0 {
		limit = fmt.Sprintf(" LIMIT %d", l.Limit)
	}
	return b.String(), limit, args
}
