package db

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

var migrationName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)

// migrateTries bounds how often Migrate looks again after another process did
// a step first.
const migrateTries = 5

// PostgreSQL's lock is asked for every lockPoll seconds, lockPolls times at most.
const (
	lockPoll  = 1
	lockPolls = 300
)

// Migrate brings the tables called name up to the newest of files: goose's
// *.sql at the root of files, each with its "-- +goose Up" only. Their versions
// are kept in goose_{name}, so that each job counts for itself. A database that
// is newer than the program is an error.
func (d *DB) Migrate(ctx context.Context, name string, files fs.FS) error {
	if !migrationName.MatchString(name) {
		return fmt.Errorf("migrating %q: not a name for tables", name)
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
	provider, err := goose.NewProvider(dialect, d.DB, files, options...)
	if err != nil {
		return fmt.Errorf("migrating %s: %w", name, err)
	}
	for try := 1; ; try++ {
		_, err = provider.Up(ctx)
		if err == nil {
			break
		}
		// SQLite has no lock to hold over several steps: a second process that
		// meets a table of the first finds at the next look that the step is done.
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
