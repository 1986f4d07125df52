package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/newsfork/seed-engine/io/fault"
)

// retry waits firstWait before its first retry and then twice as long each time, at
// most maxWait. It gives up after retryTime; Open, which may have a wrong address,
// after openTime.
const (
	firstWait = 5 * time.Millisecond
	maxWait   = 500 * time.Millisecond
	retryTime = fault.MaxWait
	openTime  = 3 * time.Second
)

// Tx runs do in a transaction that is serialisable on both databases, and runs
// it again after a conflict with another transaction, after the connection to
// PostgreSQL was lost, and while our side lacks something: do must start from the beginning each time and have no effect
// outside the database. What was committed is not run again. An error of do
// rolls everything back. On SQLite one Tx runs at a time: inside do, use only the
// transaction that it is called with.
func (d *DB) Tx(ctx context.Context, do func(*sql.Tx) error) error {
	return d.retry(ctx, func() error {
		for {
			if err := d.allowed(ctx, true); err != nil {
				return err
			}
			err := d.try(ctx, do)
			switch {
			case err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()):
				return errors.Join(ctx.Err(), err) // a driver may report only its broken connection
			case errors.Is(err, errNotAllowedNow) && ctx.Err() == nil:
				continue
			}
			return err
		}
	})
}

func (d *DB) retry(ctx context.Context, do func() error) error {
	return retry(ctx, retryTime, d, do)
}

// retry runs do, and again after growing waits while its error is Contended or ours. Only
// Open has nobody to watch: what a person must mend is its error at once. A renewal of a
// lease has less time than most, so an outage counts from the first call that met it.
func retry(ctx context.Context, most time.Duration, watched *DB, do func() error) error {
	start := time.Now()
	waits := false
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := do()
		lack := ours(err)
		if watched != nil && ctx.Err() == nil && (err == nil || lack != nil) {
			watched.answers.Note(lack != nil)
		}
		if err == nil || ctx.Err() != nil || fault.Stops(err) || !Contended(err) && (lack == nil || lack.Lasts && watched == nil) {
			return err
		}
		switch {
		case lack != nil && watched != nil && (time.Since(start) > most || watched.answers.Outage() > most):
			return watched.Shortages.GiveUp(lack)
		case time.Since(start) > most:
			return fmt.Errorf("giving up after %v of conflicts with other users of the database or of no connection to it; try again later: %w", most, err)
		case lack != nil && watched != nil && !waits:
			waits = true
			watched.Shortages.Wait(lack)
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return err
		}
	}
}

// ours returns what our side lacks, so that the same call may succeed later.
func ours(err error) *fault.Shortage {
	_, lack := fault.Of(fault.Database, err)
	return lack
}

// errNotAllowedNow makes Tx roll back, wait for Allow and try again.
var errNotAllowedNow = errors.New("the transaction is not allowed now")

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
	// Deferred, so that it runs when do panics too. After a commit, and after the
	// end of ctx, it does nothing.
	defer func() {
		if back := tx.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) && err != nil {
			err = errors.Join(err, fmt.Errorf("rolling back: %w", back))
		}
	}()
	if err := do(tx); err != nil {
		return err
	}
	if err := d.checkFences(ctx, tx); err != nil {
		return err
	}
	var id sql.NullInt64
	if d.Dialect == Postgres {
		if err := tx.QueryRowContext(ctx, `SELECT txid_current_if_assigned()`).Scan(&id); err != nil {
			return fmt.Errorf("asking for the transaction's id: %w", err)
		}
	}
	// Waiting here would block all other writers, also the renewal of a lease.
	if d.allowed(ctx, false) != nil {
		return errNotAllowedNow
	}
	if err := tx.Commit(); ours(err) != nil {
		return d.outcome(ctx, id, fmt.Errorf("committing: %w", err))
	} else if err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}

// outcome asks PostgreSQL whether it made a commit that it gave no answer to, and
// returns the lost connection as the error of one that it did not make. A transaction
// without an id wrote nothing. One whose id is in the future for a server that crashed
// (invalid_parameter_value) was not logged, so it was not committed.
func (d *DB) outcome(ctx context.Context, id sql.NullInt64, cause error) error {
	if !id.Valid {
		return cause
	}
	var status sql.NullString
	if err := d.retry(ctx, func() error {
		err := d.QueryRowContext(ctx, `SELECT txid_status($1)`, id.Int64).Scan(&status)
		if err == nil && status.String == "in progress" { // the server has not noticed yet
			return cause
		}
		return err
	}); err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "22023" {
			return cause
		}
		return err
	}
	switch status.String {
	case "committed":
		return nil
	case "aborted":
		return cause
	}
	// Only the text of the cause: a lost connection would be the reason to run the transaction again.
	return fmt.Errorf("PostgreSQL does not know whether transaction %d was committed: look at what it wrote: %s", id.Int64, cause.Error())
}

// Contended reports whether a transaction failed because of another one, so that
// the same transaction can succeed later: PostgreSQL's serialization_failure,
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
	return errors.Is(err, errStillRead)
}

// Rejected reports whether the database refused the values of a statement: it
// always refuses these values, and accepts others. So rejected values of one page
// become a dead letter of that page and do not end the run.
func Rejected(err error) bool {
	whose, _ := fault.Of(fault.Database, err)
	return whose == fault.Theirs
}
