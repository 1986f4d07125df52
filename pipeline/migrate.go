package pipeline

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/migrate"
)

// Migrate is the graph that copies the legacy layout to the new one.
func Migrate(s beam.Scope, cfg migrate.Config) {
	lane.Total(s, cfg.Lane, migrate.Copy(s, cfg, migrate.List(s, cfg)))
}

func migrateJob() job {
	return job{name: migrate.Job, flags: append([]string{"dry-run", "delete-verified"}, partitioned...), counts: "files_listed", unit: "files", run: runMigrate}
}

// migrateConfig is what the workers are told of the options.
func migrateConfig(o Options, l lane.Config) migrate.Config {
	l.Web.Offline = true
	return migrate.Config{Lane: l, Country: o.Country, Category: o.Category, Date: o.Date, DeleteVerified: o.DeleteVerified}
}

// runMigrate prints what would be copied, and copies it with --dry-run=false.
func runMigrate(ctx context.Context, o Options, stdout, stderr io.Writer) error {
	s, err := openStore(ctx, &o, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // every write has been confirmed by its own call
	cfg := migrateConfig(o, lane.Config{})
	if o.filtered() && !o.beamDryRun() {
		found := false
		for _, err := range migrate.Files(ctx, s, cfg, func(string) {}) {
			if err != nil {
				return err
			}
			found = true
			break
		}
		if !found {
			return o.noMatch()
		}
	}
	if o.DryRun {
		return previewMigration(ctx, s, cfg, stdout)
	}
	return runJob(ctx, s, o, migrate.Job, filterHash(o), stdout, stderr, func(scope beam.Scope, l lane.Config, _ string) {
		Migrate(scope, migrateConfig(o, l))
	})
}

// previewMigration prints what would be copied, and what stands in its way.
func previewMigration(ctx context.Context, s store.Store, cfg migrate.Config, stdout io.Writer) error {
	var there, conflicts, misnamed int
	var unwritten error
	say := func(format string, args ...any) {
		if _, err := fmt.Fprintf(stdout, format+"\n", args...); err != nil {
			unwritten = err
		}
	}
	ignored := func(key string) {
		misnamed++
		say("%s: not copied: it %s", key, migrate.Misnamed)
	}
	n := 0
	for r, err := range migrate.Files(ctx, s, cfg, ignored) {
		if err != nil {
			return err
		}
		place, err := migrate.Look(ctx, s, r)
		if err != nil {
			return err
		}
		switch place {
		case migrate.Same:
			there++
			say("%s -> %s: is there already", r.Key, r.NewKey())
		case migrate.Conflict:
			conflicts++
			say("%s -> %s: not copied: %v", r.Key, r.NewKey(), migrate.ErrDiffers)
		default:
			n++
			say("%s -> %s", r.Key, r.NewKey())
		}
	}
	if there+conflicts+misnamed > 0 {
		say("%d are there already, %d conflict with another file, %d are misnamed", there, conflicts, misnamed)
	}
	say("would copy %d files; --dry-run=false does it", n)
	return unwritten
}
