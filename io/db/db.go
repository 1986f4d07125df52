// Package db is the SQL database of the jobs that keep state in one: a SQLite
// file on one machine, PostgreSQL for workers on several. A query is written
// once for both, with $1, $2 … and standard SQL. Times are BIGINT microseconds
// since 1970 UTC, booleans are INTEGER 0 or 1, JSON is TEXT.
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
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Dialect tells the databases apart where a query cannot be the same for both.
type Dialect string

// The databases that Open knows.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// DB is an open database. Its methods may be called from several goroutines.
// A write on SQLite belongs into Tx, where the writers of this process queue up
// instead of polling for the file's lock.
type DB struct {
	*sql.DB
	Dialect Dialect
	// Now is the clock that leases go by. Tests turn it.
	Now func() time.Time

	writing chan struct{} // SQLite: holds one token, the right to write

	// Allow, when set, is asked before each transaction begins, when it may wait,
	// and before it commits, when it may not. Its error keeps the transaction from
	// being made. Set it before the first one.
	Allow func(ctx context.Context, wait bool) error

	mu   sync.Mutex
	done map[string]bool // by Once
}

// Once calls do until it succeeds for the first time under a name.
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

// ExecContext runs one statement, when Allow lets it.
func (d *DB) ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error) {
	if err := d.allowed(ctx, true); err != nil {
		return nil, err
	}
	return d.DB.ExecContext(ctx, statement, args...)
}

func (d *DB) allowed(ctx context.Context, wait bool) error {
	if d.Allow == nil {
		return nil
	}
	return d.Allow(ctx, wait)
}

// busyTimeout is how long a statement waits for the lock of a SQLite file that
// another process has.
const busyTimeout = 10 * time.Second

// memories numbers the databases in memory, so that each Open has one of its own.
var memories atomic.Int64

// Open connects to sqlite:///absolute/path, sqlite://relative/path,
// sqlite:///:memory: or postgres://user@host/database, and asks the database
// once, so that a wrong address is an error now. The password of PostgreSQL may
// stand in the DSN, in PGPASSWORD or in the file of PGPASSFILE; no error shows it.
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

// OfWorker is the DSN that a worker opens. Where workers are elsewhere the
// job's has no password, for it can be seen; it gets that of the worker's own
// SEED_DB when both name the same user, host and database.
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

// Missing says whether a DSN names a SQLite file that is not there, and which:
// Open would make it.
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
		// In WAL this survives the end of a process at any moment. A power cut
		// can take back the latest commits, never spoil the file.
		"synchronous(normal)",
		// What is deleted is overwritten, not only unlinked: text has a time to be
		// kept for. See Erase for what an older program deleted.
		"secure_delete(1)",
	}}
	var file url.URL
	switch path {
	case "":
		return nil, errors.New("opening sqlite://: it has no path")
	case "/:memory:":
		file.Path = fmt.Sprintf("/seed-engine-%d", memories.Add(1))
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
		// SQLite gives its -wal and -shm the mode of the database.
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = f.Close()
			if err != nil {
				return nil, fmt.Errorf("opening sqlite://%s: creating the file: %w", rest, err)
			}
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("opening sqlite://%s: creating the file: %w", rest, err)
		}
	}
	pool, err := sql.Open("sqlite", "file://"+file.EscapedPath()+"?"+options.Encode())
	if err != nil {
		return nil, fmt.Errorf("opening sqlite://%s: %w", rest, err)
	}
	// Connections are files that stay open; a database in memory ends with the
	// last of them.
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(8)
	// SQLite does not wait for others, whatever the busy timeout, while it turns a
	// new file to WAL.
	if err := untilAlone(ctx, func() error { return pool.PingContext(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("opening sqlite://%s: %w", rest, err), pool.Close())
	}
	d := &DB{DB: pool, Dialect: SQLite, Now: time.Now, writing: make(chan struct{}, 1)}
	return d, nil
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
		return nil, fmt.Errorf("opening PostgreSQL at %s: %w", u.Host, hide(err, password))
	}
	if !u.Query().Has("default_query_exec_mode") {
		// Prepared statements keep a plan for good after five executions. Of a
		// table that was empty then, that is to read all of it each time.
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(maxPostgres)
	pool.SetMaxIdleConns(maxPostgres)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening PostgreSQL at %s: %w", u.Host, hide(err, config.Password)), pool.Close())
	}
	return &DB{DB: pool, Dialect: Postgres, Now: time.Now}, nil
}

// hidden is an error whose text lost a secret.
type hidden struct {
	error
	text string
}

func (h hidden) Error() string { return h.text }
func (h hidden) Unwrap() error { return h.error }

// hide takes the password out of an error's text, as it is and as a URL has it.
func hide(err error, password string) error {
	if password == "" {
		return err
	}
	text := err.Error()
	for _, secret := range []string{password, url.QueryEscape(password), url.PathEscape(password)} {
		text = strings.ReplaceAll(text, secret, "REDACTED")
	}
	return hidden{err, text}
}

// Micros is a time as it is stored.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time is a stored time.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
