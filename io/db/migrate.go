package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

var migrationName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)

// migrateTries bounds the attempts of Migrate when another process makes the same
// steps.
const migrateTries = 5

// Migrate tries to get PostgreSQL's lock every lockPoll seconds, at most lockPolls
// times.
const (
	lockPoll  = 1
	lockPolls = 300
)

// Migrate applies the migrations in files that the tables called name do not have
// yet: goose's *.sql at the root of files, each with a "-- +goose Up" part only, and
// those for one kind of database in the folder that has its name (sqlite, postgres).
// The table goose_{name} has their version, so each job has its own. A database
// that is newer than the program is an error.
func (d *DB) Migrate(ctx context.Context, name string, files fs.FS) error {
	if !migrationName.MatchString(name) {
		return fmt.Errorf("migrating %q: it is not a valid name for tables (want %s)", name, migrationName)
	}
	dialect := goose.DialectSQLite3
	options := []goose.ProviderOption{goose.WithTableName("goose_" + name), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger())}
	if d.Dialect == Postgres {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPoll, lockPolls))
		if err != nil {
			return fmt.Errorf("migrating %s: %w", name, err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	// The provider is not closed: that would close the database, which is the caller's.
	provider, err := goose.NewProvider(dialect, d.DB, ofDialect{files, string(d.Dialect)}, options...)
	if err != nil {
		return fmt.Errorf("migrating %s: %w", name, err)
	}
	for try := 1; ; try++ {
		if d.Dialect == SQLite {
			err = d.stepsOnce(ctx, provider, "goose_"+name)
		}
		if err == nil {
			err = retry(ctx, retryTime, nil, func() error { // each step and its version are one transaction
				_, err := provider.Up(ctx)
				return err
			})
		}
		if err == nil {
			break
		}
		// SQLite has no lock for several steps together: a second process fails at a
		// step that the first has just made, and at its next attempt finds it done.
		if d.Dialect != SQLite || try == migrateTries || ctx.Err() != nil {
			return fmt.Errorf("migrating %s: %w", name, err)
		}
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("migrating %s: %w", name, err)
	}
	if current > target {
		return fmt.Errorf("migrating %s: the database is at version %d, this program knows %d: use the newer program", name, current, target)
	}
	return nil
}

// Files returns the folder migrations of a package's embedded files, for Migrate.
func Files(embedded embed.FS) fs.FS {
	files, _ := fs.Sub(embedded, "migrations") // the name is valid
	return files
}

// stepsOnce lets the table of versions have each version once. A step and its version are
// one transaction, so a process that makes a step which another has made since it read the
// versions fails, and changes nothing, also where the step itself can be made twice: one
// that copies a table, drops it and renames the copy would remove the columns that later
// steps have added.
func (d *DB) stepsOnce(ctx context.Context, provider *goose.Provider, table string) error {
	if _, err := provider.GetDBVersion(ctx); err != nil { // it makes the table
		return err
	}
	var there int
	if err := d.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = $1`, table+"_once").Scan(&there); err != nil || there > 0 {
		return err // a database that is up to date is not written to
	}
	return d.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE id NOT IN (SELECT min(id) FROM `+table+` GROUP BY version_id)`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `CREATE UNIQUE INDEX IF NOT EXISTS `+table+`_once ON `+table+` (version_id)`)
		return err
	})
}

// ofDialect has the files at the root of FS and those in one folder, as one folder.
type ofDialect struct {
	fs.FS
	folder string
}

// Open implements fs.FS.
func (o ofDialect) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(path.Join(o.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return o.FS.Open(name)
	}
	return f, err
}

// Glob implements fs.GlobFS.
func (o ofDialect) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(o.FS, pattern)
	if err != nil {
		return nil, err
	}
	own, err := fs.Glob(o.FS, path.Join(o.folder, pattern))
	for _, name := range own {
		names = append(names, path.Base(name))
	}
	slices.Sort(names) // goose takes the last one for the newest
	return names, err
}

// HasTable reports whether the database has a table or view.
func (d *DB) HasTable(ctx context.Context, name string) (bool, error) {
	query := `SELECT COUNT(*) FROM sqlite_master WHERE type IN ('table', 'view') AND name = $1`
	if d.Dialect == Postgres {
		query = `SELECT COUNT(*) WHERE to_regclass($1) IS NOT NULL`
	}
	var n int
	if err := d.QueryRowContext(ctx, query, name).Scan(&n); err != nil {
		return false, fmt.Errorf("looking for the table %s: %w", name, err)
	}
	return n > 0, nil
}
