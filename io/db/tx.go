package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The waits between the tries of untilAlone begin at firstWait and double up to
// lastWait; patience bounds them all together.
const (
	firstWait = 5 * time.Millisecond
	lastWait  = 500 * time.Millisecond
	patience  = 30 * time.Second
)

// Tx runs do in a transaction that is serialisable on both databases, and runs
// it again when it met another one: do must start from the beginning each time
// and leave nothing behind outside the database. Its error takes everything
// back. On SQLite one Tx runs at a time: inside do, use the given transaction
// only.
func (d *DB) Tx(ctx context.Context, do func(*sql.Tx) error) error {
	return untilAlone(ctx, func() error {
		for {
			if err := d.allowed(ctx, true); err != nil {
				return err
			}
			err := d.try(ctx, do)
			switch {
			case err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()):
				return errors.Join(ctx.Err(), err) // a driver may name what the end of ctx did to its connection instead
			case errors.Is(err, errNotNow) && ctx.Err() == nil:
				continue
			}
			return err
		}
	})
}

// untilAlone runs do again, after growing pauses, while its error is that it met
// another process or transaction.
func untilAlone(ctx context.Context, do func() error) error {
	start := time.Now()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := do()
		if err == nil || !Contended(err) || ctx.Err() != nil {
			return err
		}
		if time.Since(start) > patience {
			return fmt.Errorf("giving up after %v of meeting others: %w", patience, err)
		}
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// errNotNow takes a transaction back until Allow lets it be made.
var errNotNow = errors.New("the transaction is not allowed now")

func (d *DB) try(ctx context.Context, do func(*sql.Tx) error) (err error) {
	level := sql.LevelSerializable
	if d.Dialect == SQLite {
		level = sql.LevelDefault // serialisable: BEGIN IMMEDIATE lets one writer in
		select {
		case d.writing <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("waiting to write: %w", ctx.Err())
		}
		defer func() { <-d.writing }()
	}
	tx, err := d.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	// After a commit, and when ctx has ended it, this does nothing; also when do panics.
	defer func() {
		if back := tx.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) && err != nil {
			err = errors.Join(err, fmt.Errorf("rolling back: %w", back))
		}
	}()
	if err := do(tx); err != nil {
		return err
	}
	// To wait here would keep others from writing, the renewal of a lease too.
	if d.allowed(ctx, false) != nil {
		return errNotNow
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}

// Contended reports whether the same transaction can succeed at another time,
// because it met another one: PostgreSQL's serialization_failure,
// deadlock_detected and lock_not_available (its manual, appendix A), SQLite's
// SQLITE_BUSY and SQLITE_LOCKED (sqlite.org/rescode.html).
func Contended(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "55P03"
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		primary := lite.Code() & 0xff
		return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
	}
	return false
}

// Rejected reports whether the database refused the values of a statement: the
// same values are refused at any time, and others are taken. One page's values
// are that page's dead letter, never the end of a run. These are PostgreSQL's
// classes data exception, integrity constraint violation and program limit
// exceeded (its manual, appendix A), SQLite's SQLITE_CONSTRAINT, SQLITE_TOOBIG
// and SQLITE_MISMATCH (sqlite.org/rescode.html).
func Rejected(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || strings.HasPrefix(pg.Code, "54")
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		primary := lite.Code() & 0xff
		return primary == sqlite3.SQLITE_CONSTRAINT || primary == sqlite3.SQLITE_TOOBIG || primary == sqlite3.SQLITE_MISMATCH
	}
	return false
}
