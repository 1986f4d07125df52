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
	if d.Dialect == Postgres {
		statement, arrays, err := d.unnest(ctx, tx, table, columns, rows)
		if err == nil {
			_, err = tx.ExecContext(ctx, statement+end, arrays...)
		}
		return err
	}
	return eachRow(ctx, tx, table, columns, rows, end, func([]any) {})
}

// InsertNew inserts the rows that a table does not have yet, and calls added with the first
// value of each of them, which is a text.
func (d *DB) InsertNew(ctx context.Context, tx *sql.Tx, table string, columns []string, rows [][]any, added func(first string)) error {
	const end = `ON CONFLICT DO NOTHING`
	if len(rows) == 0 {
		return nil
	}
	if d.Dialect == SQLite {
		return eachRow(ctx, tx, table, columns, rows, end, func(row []any) { added(row[0].(string)) })
	}
	statement, arrays, err := d.unnest(ctx, tx, table, columns, rows)
	if err != nil {
		return err
	}
	news, err := Texts(ctx, tx, statement+end+` RETURNING `+columns[0], arrays...)
	for _, first := range news {
		added(first)
	}
	return err
}

func into(table string, columns []string) string {
	return `INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `) `
}

// unnest returns the beginning of PostgreSQL's statement, and its parameters.
func (d *DB) unnest(ctx context.Context, tx *sql.Tx, table string, columns []string, rows [][]any) (statement string, arrays []any, err error) {
	kinds, err := d.kinds(ctx, tx, table)
	if err != nil {
		return "", nil, err
	}
	sources := make([]string, len(columns))
	for c, name := range columns {
		sources[c] = "$" + strconv.Itoa(c+1) + "::" + kinds[name] + "[]"
		arrays = append(arrays, columnOf(rows, c))
	}
	return into(table, columns) + `SELECT * FROM unnest(` + strings.Join(sources, ", ") + `) `, arrays, nil
}

// eachRow runs SQLite's statement for each row, and calls wrote for those that it inserted or changed.
func eachRow(ctx context.Context, tx *sql.Tx, table string, columns []string, rows [][]any, end string, wrote func(row []any)) (err error) {
	values := make([]string, len(columns))
	for c := range columns {
		values[c] = "$" + strconv.Itoa(c+1)
	}
	statement, err := tx.PrepareContext(ctx, into(table, columns)+`VALUES (`+strings.Join(values, ", ")+`) `+end)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := statement.Close(); err == nil {
			err = cerr
		}
	}()
	within := context.WithoutCancel(ctx) // for each statement with one that can end, the driver starts a goroutine
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := Changed(statement.ExecContext(within, row...))
		if err != nil {
			return err
		}
		if n > 0 {
			wrote(row)
		}
	}
	return nil
}

// columnOf returns the values of a column.
func columnOf(rows [][]any, c int) any {
	if _, number := rows[0][c].(int64); number {
		all := make([]int64, len(rows))
		for i, row := range rows {
			all[i] = row[c].(int64)
		}
		return all
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
	return all
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
