package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
)

// keptStatements is how many prepared statements a connection to SQLite keeps.
const keptStatements = 32

// statements opens connections to SQLite that keep their prepared statements: to
// prepare a short statement costs as much as to run it. database/sql asks for a
// statement and closes it each time, because these connections have no method to run
// one directly.
type statements struct{ driver.Connector }

// Connect implements driver.Connector.
func (s statements) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{conn: c, ConnBeginTx: c.(driver.ConnBeginTx), Pinger: c.(driver.Pinger), SessionResetter: c.(driver.SessionResetter), Validator: c.(driver.Validator),
		idle: map[string]statement{}}, nil
}

// conn is used by one goroutine at a time, as database/sql promises.
type conn struct {
	conn driver.Conn
	driver.ConnBeginTx
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	idle map[string]statement
}

// Begin is there for the interface: database/sql calls BeginTx.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext returns a kept statement, or a new one. A statement at work is not among
// the kept ones, so the same query can run twice at a time.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, ok := c.idle[query]
	if ok {
		delete(c.idle, query)
		return s, nil
	}
	made, err := c.conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil || !isKept(query) {
		return made, err
	}
	return statement{made, made.(driver.StmtExecContext), made.(driver.StmtQueryContext), c, query}, nil
}

// isKept leaves out the pragmas, some of which do their work when they are prepared, and
// what changes the schema, which runs once. SQLite prepares a kept statement again by
// itself after such a change.
func isKept(query string) bool {
	for verb := range strings.FieldsSeq(query) {
		return verb == "SELECT" || verb == "INSERT" || verb == "UPDATE" || verb == "DELETE"
	}
	return false
}

// Close closes the connection and what it kept.
func (c *conn) Close() error {
	var errs []error
	for _, s := range c.idle {
		errs = append(errs, s.Stmt.Close())
	}
	clear(c.idle)
	return errors.Join(append(errs, c.conn.Close())...)
}

type statement struct {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	conn  *conn
	query string
}

// Close keeps the statement, in place of another one when there are too many.
func (s statement) Close() error {
	c := s.conn
	if _, ok := c.idle[s.query]; ok {
		return s.Stmt.Close()
	}
	var err error
	if len(c.idle) >= keptStatements {
		for query, other := range c.idle {
			delete(c.idle, query)
			err = other.Stmt.Close()
			break
		}
	}
	c.idle[s.query] = s
	return err
}
