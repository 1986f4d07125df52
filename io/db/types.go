package db

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// typed opens connections to PostgreSQL whose values are those of SQLite: a timestamptz is
// microseconds since 1970 in an int64, 0 for NULL; a boolean is an int64, 0 or 1; a jsonb is
// the text that encoding/json makes of it.
type typed struct{ driver.Connector }

func newTyped(config pgx.ConnConfig) typed {
	return typed{stdlib.GetConnector(config, stdlib.OptionAfterConnect(func(_ context.Context, c *pgx.Conn) error {
		m := c.TypeMap()
		for name, t := range map[string]pgtype.Type{
			"timestamptz": {OID: pgtype.TimestamptzOID, Codec: microsCodec{&pgtype.TimestamptzCodec{}}},
			"bool":        {OID: pgtype.BoolOID, Codec: flagCodec{pgtype.BoolCodec{}}},
		} {
			t.Name = name
			m.RegisterType(&t)
		}
		return nil
	}))}
}

// Connect implements driver.Connector.
func (t typed) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := t.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return typedConn{c.(*stdlib.Conn)}, nil
}

type typedConn struct{ *stdlib.Conn }

// QueryContext implements driver.QueryerContext.
func (c typedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return typedRows{rows}, nil
}

type typedRows struct{ driver.Rows }

// Next implements driver.Rows.
func (r typedRows) Next(dest []driver.Value) error {
	if err := r.Rows.Next(dest); err != nil {
		return err
	}
	for i, v := range dest {
		var err error
		switch r.Rows.(driver.RowsColumnTypeDatabaseTypeName).ColumnTypeDatabaseTypeName(i) {
		case "TIMESTAMPTZ":
			dest[i] = int64(0)
			if at, ok := v.(time.Time); ok {
				dest[i] = at.UnixMicro()
			}
		case "BOOL":
			if yes, ok := v.(bool); ok {
				dest[i] = map[bool]int64{true: 1}[yes]
			}
		case "JSONB":
			if b, ok := v.([]byte); ok {
				dest[i], err = text(b)
			}
		}
		if err != nil {
			return fmt.Errorf("reading the JSON of column %d: %w", i+1, err)
		}
	}
	return nil
}

// plan encodes a number by another value's plan; nil is NULL.
type plan struct {
	pgtype.EncodePlan
	of func(n int64) any
}

// Encode implements pgtype.EncodePlan.
func (p plan) Encode(value any, buf []byte) ([]byte, error) {
	n, _ := number(value)
	if v := p.of(n); v != nil {
		return p.EncodePlan.Encode(v, buf)
	}
	return nil, nil
}

func number(value any) (n int64, ok bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	return 0, false
}

type microsCodec struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c microsCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := number(value); !ok {
		return c.Codec.PlanEncode(m, oid, format, value)
	}
	return plan{c.Codec.PlanEncode(m, oid, format, pgtype.Timestamptz{}), func(n int64) any {
		if n == 0 {
			return nil
		}
		return pgtype.Timestamptz{Time: Time(n), Valid: true}
	}}
}

type flagCodec struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c flagCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := number(value); !ok {
		return c.Codec.PlanEncode(m, oid, format, value)
	}
	return plan{c.Codec.PlanEncode(m, oid, format, false), func(n int64) any { return n != 0 }}
}

// text returns JSON as encoding/json writes it.
func text(b []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// Day is the day of a time in a column or an expression, since 1970 in UTC.
func (d *DB) Day(of string) string {
	if d.Dialect == Postgres {
		return "CAST(FLOOR(EXTRACT(EPOCH FROM " + of + ") / 86400) AS BIGINT)"
	}
	return "(" + of + ") / 86400000000"
}

// Never returns the condition that a column has no time.
func (d *DB) Never(column string) string {
	if d.Dialect == Postgres {
		return column + " IS NULL"
	}
	return column + " = 0"
}

// JSON returns an expression of text as JSON.
func (d *DB) JSON(expression string) string {
	if d.Dialect == Postgres {
		return "CAST(" + expression + " AS JSONB)"
	}
	return expression
}

// kinds returns the types of a table's columns in PostgreSQL.
func (d *DB) kinds(ctx context.Context, tx *sql.Tx, table string) (kinds map[string]string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if kinds = d.columns[table]; kinds != nil {
		return kinds, nil
	}
	kinds = map[string]string{}
	for column, err := range Select(ctx, tx, func(r *sql.Rows) (c [2]string, err error) { err = r.Scan(&c[0], &c[1]); return c, err },
		`SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0`, table) {
		if err != nil {
			return nil, fmt.Errorf("reading the types of %s: %w", table, err)
		}
		kinds[column[0]] = column[1]
	}
	if d.columns == nil {
		d.columns = map[string]map[string]string{}
	}
	d.columns[table] = kinds
	return kinds, nil
}
