package pipeline

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/migrate"
)

// Migrate is the graph that copies the legacy layout to the new one.
func Migrate(s beam.Scope, cfg migrate.Config) {
	lane.Total(s, cfg.Lane, migrate.Copy(s, cfg, migrate.List(s, cfg)))
}

// migrateOptions are the migration's own flags.
type migrateOptions struct{ DryRun, DeleteVerified bool }

var legacyFile = &input{Name: "legacy file", List: "a dry run without filters shows what there is", Read: hive.ParseLegacy}

func migrateJob() Job {
	o := &migrateOptions{}
	return Job{Job: ledger.Job{Name: migrate.Job, Title: "Migrate", Counts: migrate.Counts(),
		Stages: []ledger.Stage{
			{Name: "listed", Unit: "files", Counts: []string{"files_listed"}, Apart: []string{"files_bad"}},
			{Name: "copied", Unit: "files", Counts: []string{"files_copied"}},
			{Name: "verified", Unit: "files", Counts: []string{"files_verified"}, Apart: []string{"dead_letters"}},
			{Name: "deleted", Unit: "files", Counts: []string{"files_deleted"}},
		}, Purpose: ledger.Purpose{Kept: "files_verified", Refused: "copy_failed"}},
		Input: legacyFile,
		Options: func(s *option.Set) {
			s.Take(partitioned...)
			s.Yes(&o.DryRun, "dry-run", true, "migrate: only print what would be copied; --dry-run=false copies").Is(option.OneRun).Previews("--dry-run").In(option.What)
			s.Yes(&o.DeleteVerified, "delete-verified", false, "migrate: remove an old file after its copy is verified").Is(option.OneRun).In(option.What)
		},
		Accept: o.accept, Instead: o.instead,
		Config:    func(c RunOptions, l lane.Config, _ string) any { return o.config(c, l) },
		Build:     func(s beam.Scope, config any) { Migrate(s, config.(migrate.Config)) },
		LiveCount: "files_listed", Unit: "files",
	}
}

func (o *migrateOptions) config(c RunOptions, l lane.Config) migrate.Config {
	l.Web.Offline = true
	return migrate.Config{Lane: l, Country: c.Country, Category: c.Category, Date: c.Date, DeleteVerified: o.DeleteVerified}
}

// accept refuses filters that let no file through.
func (o *migrateOptions) accept(ctx context.Context, s store.Store, c *RunOptions) error {
	if !c.Filtered() {
		return nil
	}
	for _, err := range migrate.Files(ctx, s, o.config(*c, lane.Config{}), func(string) {}) {
		return err
	}
	return legacyFile.noMatch(c)
}

func (o *migrateOptions) instead() *Action {
	if !o.DryRun {
		return nil
	}
	return &Action{Preview: true, Do: o.preview}
}

// preview prints what would be copied, and what prevents a copy.
func (o *migrateOptions) preview(ctx context.Context, c RunOptions, s store.Store, stdout io.Writer) error {
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
	for r, err := range migrate.Files(ctx, s, o.config(c, lane.Config{}), ignored) {
		if err != nil {
			return err
		}
		place, err := migrate.Inspect(ctx, s, r)
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
