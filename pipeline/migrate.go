package pipeline

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

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
		for _, err := range migrate.Files(ctx, s, cfg) {
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
		n := 0
		for r, err := range migrate.Files(ctx, s, cfg) {
			if err != nil {
				return err
			}
			n++
			if _, err := fmt.Fprintf(stdout, "%s -> %s\n", r.Key, r.NewKey()); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(stdout, "would copy %d files; --dry-run=false does it\n", n)
		return err
	}
	return runJob(ctx, s, o, migrate.Job, filterHash(o), stdout, stderr, func(scope beam.Scope, l lane.Config, _ string) {
		Migrate(scope, migrateConfig(o, l))
	})
}
