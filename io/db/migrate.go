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
// yet: goose's *.sql at the root of files, each with a "-- +goose Up" part only.
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
	provider, err := goose.NewProvider(dialect, d.DB, files, options...)
	if err != nil {
		return fmt.Errorf("migrating %s: %w", name, err)
	}
	for try := 1; ; try++ {
		_, err = provider.Up(ctx)
		if err == nil {
			break
		}
		// SQLite has no lock for several steps together: a second process fails at a
		// table that the first has just created, and at its next attempt finds that
		// step done.
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
