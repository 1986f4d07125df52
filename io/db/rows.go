package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// InsertRows inserts rows into a table; end is the rest of the statement, such as ON
// CONFLICT. Each row has a value for each column; a column's values are all int64, or
// all string or *string. No rows are no error.
//
// SQLite runs one prepared statement for each row, which costs a third of long
// statements: it searches the names of all parameters for each one. PostgreSQL gets one
// statement with an array for each column, so that there is one round trip and one plan.
func (d *DB) InsertRows(ctx context.Context, tx *sql.Tx, table string, columns []string, rows [][]any, end string) error {
	if len(rows) == 0 {
		return nil
	}
	into := `INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `) `
	sources := make([]string, len(columns))
	if d.Dialect == Postgres {
		arrays := make([]any, len(columns))
		for c := range columns {
			var kind string
			arrays[c], kind = columnOf(rows, c)
			sources[c] = "$" + strconv.Itoa(c+1) + "::" + kind
		}
		_, err := tx.ExecContext(ctx, into+`SELECT * FROM unnest(`+strings.Join(sources, ", ")+`) `+end, arrays...)
		return err
	}
	for c := range columns {
		sources[c] = "$" + strconv.Itoa(c+1)
	}
	statement, err := tx.PrepareContext(ctx, into+`VALUES (`+strings.Join(sources, ", ")+`) `+end)
	if err != nil {
		return err
	}
	within := context.WithoutCancel(ctx) // for each statement with one that can end, the driver starts a goroutine
	for _, row := range rows {
		if err = ctx.Err(); err != nil {
			break
		}
		if _, err = statement.ExecContext(within, row...); err != nil {
			break
		}
	}
	if cerr := statement.Close(); err == nil {
		err = cerr
	}
	return err
}

// columnOf returns the values of a column, and the type of their array in PostgreSQL.
func columnOf(rows [][]any, c int) (array any, kind string) {
	if _, number := rows[0][c].(int64); number {
		all := make([]int64, len(rows))
		for i, row := range rows {
			all[i] = row[c].(int64)
		}
		return all, "bigint[]"
	}
	all := make([]*string, len(rows))
	for i, row := range rows {
		switch v := row[c].(type) {
		case string:
			all[i] = &v
		case *string:
			all[i] = v
		}
	}
	return all, "text[]"
}

// AnyOf returns the end of a condition such as "url "+AnyOf(2): that a column of texts
// has one of the texts in parameter number n, which List makes. So a statement is the
// same for any number of texts.
func (d *DB) AnyOf(n int) string {
	if d.Dialect == Postgres {
		return fmt.Sprintf("= ANY($%d::text[])", n)
	}
	return fmt.Sprintf("IN (SELECT value FROM json_each($%d))", n)
}

// List returns texts as one parameter of a statement with AnyOf.
func (d *DB) List(texts []string) any {
	if d.Dialect == Postgres {
		return texts
	}
	if texts == nil {
		return "[]"
	}
	b, _ := json.Marshal(texts) // texts always encode
	return string(b)
}
