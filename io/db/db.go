// Package db is the SQL database of the jobs that keep state in one: a SQLite
// file on one machine, PostgreSQL for workers on several. A query is written
// once for both, with $1, $2 … and standard SQL. On PostgreSQL a time is a timestamptz, NULL
// for none; a boolean is a boolean and JSON is jsonb. On SQLite, and for the program on both,
// a time is an int64 of microseconds since 1970 UTC, 0 for none; a boolean is 0 or 1 and JSON
// is text. No promise: see docs/library.md.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"modernc.org/sqlite"

	"github.com/newsfork/seed-engine/io/fault"
)

// Dialect is the kind of database, for queries that cannot be the same on both.
type Dialect string

// The databases that Open knows.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// DB is an open database. Its methods may be called from several goroutines.
// Write to SQLite inside Tx: there the writers of this process form a queue
// instead of polling for the file's lock.
type DB struct {
	*sql.DB
	Dialect Dialect
	// Now is the clock of leases. Tests replace it.
	Now func() time.Time

	writing chan struct{} // SQLite: full while a goroutine of this process writes
	path    string        // of SQLite's file, "" in memory and for PostgreSQL
	file    os.FileInfo   // what path named when it was opened

	// Allow, when set, is called before each transaction begins, with wait true (it
	// may block), and before it commits, with wait false (it must not). Its error
	// prevents the transaction. Set it before the first transaction.
	Allow func(ctx context.Context, wait bool) error

	// Shortages is told when a call has to wait for our side: see fault.Watch.
	Shortages fault.Watch
	answers   fault.Answers

	mu      sync.Mutex
	done    map[string]bool              // by Once
	columns map[string]map[string]string // by kinds
}

// Once calls do, unless an earlier call with the same name has succeeded.
func (d *DB) Once(name string, do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done[name] {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	if d.done == nil {
		d.done = map[string]bool{}
	}
	d.done[name] = true
	return nil
}

// QueryContext runs a query again as Tx does. What writes belongs into Tx, and an error
// that comes after the first rows is the caller's.
func (d *DB) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	err = d.retry(ctx, func() (err error) {
		rows, err = d.DB.QueryContext(ctx, query, args...)
		return err
	})
	return rows, err
}

// QueryRowContext is QueryContext for one row.
func (d *DB) QueryRowContext(ctx context.Context, query string, args ...any) (row *sql.Row) {
	_ = d.retry(ctx, func() error { // the row keeps the error
		row = d.DB.QueryRowContext(ctx, query, args...)
		return row.Err()
	})
	return row
}

// Changed returns how many rows a statement changed, given what ExecContext returns.
func Changed(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Write runs one statement as ExecContext does. doing says for its error what it does, such as "ending the session".
func (d *DB) Write(ctx context.Context, doing, statement string, args ...any) error {
	if _, err := d.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// Do runs f in a transaction as Tx does. doing says for its error what f does, such as "ending the session".
func (d *DB) Do(ctx context.Context, doing string, f func(*sql.Tx) error) error {
	if err := d.Tx(ctx, f); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// ExecContext runs one statement, when Allow permits it, on PostgreSQL in a transaction:
// so it is made once when a connection is lost.
func (d *DB) ExecContext(ctx context.Context, statement string, args ...any) (result sql.Result, err error) {
	if d.Dialect == SQLite && !d.isFenced(ctx) {
		err = d.retry(ctx, func() (err error) {
			if err = d.allowed(ctx, true); err == nil {
				result, err = d.DB.ExecContext(ctx, statement, args...)
			}
			return err
		})
		return result, err
	}
	err = d.Tx(ctx, func(tx *sql.Tx) (err error) {
		result, err = tx.ExecContext(ctx, statement, args...)
		return err
	})
	return result, err
}

// allowed returns the error that prevents a write. SQLite itself continues to write
// to a file that was deleted, and those rows end with the process.
func (d *DB) allowed(ctx context.Context, wait bool) error {
	if d.path != "" {
		now, err := os.Stat(d.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, d.file) {
			return d.Shortages.GiveUp(&fault.Shortage{Lacks: fmt.Sprintf("the database %s was deleted or replaced while it was open: restore it and run the command again", d.path)})
		}
		if err != nil {
			return fmt.Errorf("looking for the database: %w", err)
		}
	}
	if d.Allow == nil {
		return nil
	}
	return d.Allow(ctx, wait)
}

// busyTimeout is how long a statement waits while another process has the lock of
// a SQLite file.
const busyTimeout = 10 * time.Second

// memoryDatabases numbers the databases in memory, so that each Open gets its own.
var memoryDatabases atomic.Int64

// Open connects to sqlite:///absolute/path, sqlite://relative/path,
// sqlite:///:memory: or postgres://user@host/database, and pings the database, so
// that a wrong address is an error now. The password of PostgreSQL may be in the
// DSN, in PGPASSWORD or in the file of PGPASSFILE; no error shows it.
func Open(ctx context.Context, dsn string) (*DB, error) {
	scheme, rest, _ := strings.Cut(dsn, "://")
	switch scheme {
	case "sqlite":
		return openSQLite(ctx, rest)
	case "postgres", "postgresql":
		return openPostgres(ctx, dsn)
	}
	return nil, errors.New("opening the database: want sqlite:///path or postgres://user@host/database")
}

// OfWorker is the DSN that a worker opens. Where workers are elsewhere, the job's
// DSN has no password, because anyone who sees the graph sees it; the worker adds
// the password of its own SEED_DB when both have the same user, host and database.
func OfWorker(job string, elsewhere bool) string {
	own, err := url.Parse(os.Getenv("SEED_DB"))
	if err != nil || !elsewhere {
		return job
	}
	u, err := url.Parse(job)
	if err != nil || u.Scheme == "sqlite" || u.Host != own.Host || u.Path != own.Path || u.User.Username() != own.User.Username() {
		return job
	}
	u.User = own.User
	return u.String()
}

// Missing reports whether a DSN names a SQLite file that does not exist, and which
// file: Open would create it.
func Missing(dsn string) (file string, missing bool) {
	rest, lite := strings.CutPrefix(dsn, "sqlite://")
	file, err := url.PathUnescape(rest)
	if !lite || err != nil {
		return "", false
	}
	_, err = os.Stat(file)
	return file, errors.Is(err, fs.ErrNotExist)
}

func openSQLite(ctx context.Context, rest string) (*DB, error) {
	if strings.ContainsAny(rest, "?#") {
		return nil, fmt.Errorf("opening sqlite://%s: it takes no options; write ? as %%3F and # as %%23 in a path", rest)
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return nil, fmt.Errorf("opening sqlite://%s: %w; write %% as %%25", rest, err)
	}
	options := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"foreign_keys(1)",
		// In WAL mode a commit survives the end of the process at any moment. A power
		// cut can undo the latest commits, but never damages the file.
		"synchronous(normal)",
		// Deleted rows are overwritten, not only unlinked: stored text must be gone
		// when its retention ends. See Erase for rows that an older program deleted.
		"secure_delete(1)",
	}}
	d := &DB{Dialect: SQLite, Now: time.Now, writing: make(chan struct{}, 1)}
	var file url.URL
	switch path {
	case "":
		return nil, errors.New("opening sqlite://: it has no path")
	case "/:memory:":
		file.Path = fmt.Sprintf("/seed-engine-%d", memoryDatabases.Add(1))
		options.Set("vfs", "memdb") // shared by the connections of this process
	default:
		if path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("opening sqlite://%s: %w", rest, err)
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("opening sqlite://%s: its folder: %w; create it first", rest, err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("opening sqlite://%s: %s is not a folder", rest, filepath.Dir(path))
		}
		file.Path = path
		options.Add("_pragma", "journal_mode(wal)")
		if d.file, err = createSQLite(path); err != nil {
			return nil, fmt.Errorf("opening sqlite://%s: creating the file: %w", rest, err)
		}
		d.path = path
	}
	connector, err := sqlite.NewConnector("file://" + file.EscapedPath() + "?" + options.Encode())
	if err != nil {
		return nil, fmt.Errorf("opening sqlite://%s: %w", rest, err)
	}
	pool := sql.OpenDB(statements{connector})
	// Idle connections stay open: a database in memory ends with its last one.
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(8)
	// While SQLite switches a new file to WAL it does not wait for other processes,
	// whatever the busy timeout is.
	if err := retry(ctx, openTime, nil, func() error { return pool.PingContext(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("opening sqlite://%s: %w", rest, err), pool.Close())
	}
	d.DB = pool
	return d, nil
}

// createSQLite creates an empty file, unless it exists, and returns its identity.
// SQLite gives its -wal and -shm the mode of the database.
func createSQLite(path string) (os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.Stat(path)
}

// maxPostgres bounds the connections of one process: PostgreSQL gives 100 to
// all of its clients together.
const maxPostgres = 8

func openPostgres(ctx context.Context, dsn string) (*DB, error) {
	// The parsers' own errors quote the DSN.
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("opening PostgreSQL: the DSN is not a URL like postgres://user@host:5432/database; write reserved characters of a password as %XX")
	}
	password, _ := u.User.Password()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("opening PostgreSQL at %s: %w", u.Host, redact(err, password))
	}
	if !u.Query().Has("default_query_exec_mode") {
		// PostgreSQL fixes the plan of a prepared statement after five executions. If
		// the table was empty until then, the plan reads the whole table each time.
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	config.OnNotice = noteKept
	pool := sql.OpenDB(newTyped(*config))
	pool.SetMaxOpenConns(maxPostgres)
	pool.SetMaxIdleConns(maxPostgres)
	if err := retry(ctx, openTime, nil, func() error { return pool.PingContext(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("opening PostgreSQL at %s: %w", u.Host, redact(err, config.Password)), pool.Close())
	}
	return &DB{DB: pool, Dialect: Postgres, Now: time.Now}, nil
}

// redactedError is an error with a secret removed from its text.
type redactedError struct {
	error
	text string
}

func (h redactedError) Error() string { return h.text }
func (h redactedError) Unwrap() error { return h.error }

// redact removes the password from an error's text, plain and as a URL escapes it.
func redact(err error, password string) error {
	if password == "" {
		return err
	}
	text := err.Error()
	for _, secret := range []string{password, url.QueryEscape(password), url.PathEscape(password)} {
		text = strings.ReplaceAll(text, secret, "REDACTED")
	}
	return redactedError{err, text}
}

// Micros is a time as it is stored.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time is a stored time.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
