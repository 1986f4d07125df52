// Package migrate copies raw files of the legacy layout
// (research/datasets/country=sg/category=news/2026-01-28_0001.json) to the keys
// that the seed job reads. No promise: see docs/library.md.
package migrate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
)

func init() {
	beam.RegisterDoFn(reflect.TypeFor[listFn]())
	beam.RegisterDoFn(reflect.TypeFor[copyFn]())
	register.Emitter1[string]()
}

// Job is the name of this job in the ledger.
const Job = "migrate"

// Counts names the counts that the job's report always has, in the order of display.
func Counts() []string {
	return []string{"files_listed", "files_copied", "files_verified", "files_deleted", "files_bad", "dead_letters"}
}

// Config has the job's options; its DoFns take it to the workers.
type Config struct {
	Lane                    lane.Config
	Country, Category, Date string
	DeleteVerified          bool // remove an old file once its copy is verified
}

// doFn is embedded in the job's DoFns.
type doFn struct {
	lane.DoFn
	Config Config
}

// Setup is called by Beam.
func (d *doFn) Setup(ctx context.Context) error { return d.Open(ctx, d.Config.Lane) }

// Files yields the legacy raw files that pass the filters. It calls ignored with
// keys that look like those of raw files with a mistake in them, such as an invalid
// date (hive.NearMiss).
func Files(ctx context.Context, s store.Store, cfg Config, ignored func(key string)) iter.Seq2[hive.Raw, error] {
	return func(yield func(hive.Raw, error) bool) {
		for o, err := range s.List(ctx, hive.Prefix("research/datasets/", cfg.Country, cfg.Category, "")) {
			if err != nil {
				yield(hive.Raw{}, fmt.Errorf("listing the legacy layout: %w", err))
				return
			}
			r, ok := hive.ParseLegacy(o.Key)
			if !ok && hive.NearMiss(o.Key) {
				ignored(o.Key)
			}
			if !ok || (cfg.Country != "" && r.Partition.Country != cfg.Country) || (cfg.Category != "" && r.Partition.Category != cfg.Category) || (cfg.Date != "" && r.Partition.Date != cfg.Date) {
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// List lists the legacy raw files. Out: their keys.
func List(s beam.Scope, cfg Config) beam.PCollection {
	s = s.Scope("migrate.List")
	return beam.ParDo(s, &listFn{doFn{Config: cfg}}, beam.Impulse(s))
}

type listFn struct{ doFn }

func (fn *listFn) ProcessElement(ctx context.Context, _ []byte, emit func(string)) error {
	ignored := func(key string) {
		fn.Worker.Log.Warn("file_ignored", "file_path", key, "reason", Misnamed)
	}
	for r, err := range Files(ctx, fn.Worker.Store, fn.Config, ignored) {
		if err != nil {
			return err
		}
		emit(r.Key)
	}
	return nil
}

// Copy copies each file to its new key and verifies the copy.
// In: keys of legacy files. Out: tallies.
func Copy(s beam.Scope, cfg Config, keys beam.PCollection) beam.PCollection {
	s = s.Scope("migrate.Copy")
	none := beam.Create(s, ledger.Tally{}) // so that the run has a total also when there is nothing to copy
	return beam.Flatten(s, none, beam.ParDo(s, &copyFn{doFn{Config: cfg}}, beam.Reshuffle(s, keys)))
}

type copyFn struct{ doFn }

func (fn *copyFn) ProcessElement(ctx context.Context, key string, emit func(ledger.Tally)) error {
	if !fn.Worker.Proceed(ctx) {
		return nil
	}
	var t ledger.Tally
	t.Count("files_listed", 1)
	dead := ledger.DeadLetter{Job: Job, RunID: fn.Config.Lane.RunID, Stage: "copy", Kind: "copy_failed", Input: ledger.Input{File: key}}
	done, err := CopyFile(ctx, fn.Worker.Store, key, fn.Config.DeleteVerified)
	switch {
	case err != nil:
		fn.Worker.Log.Error("migration_failed", "file_path", key, "error", ledger.Redact(err.Error()))
		dead.Error, dead.Retryable = err.Error(), store.Retryable(err)
		if err := fn.Worker.DeadLetter(ctx, dead); err != nil {
			return err
		}
		t.Count("files_bad", 1)
	default:
		if err := fn.Worker.Resolve(ctx, dead); err != nil {
			return err
		}
		fn.Worker.Log.Info("file_migrated", "file_path", key, "copied", done.Copied, "deleted", done.Deleted)
		t.Count("files_verified", 1)
		if done.Copied {
			t.Count("files_copied", 1)
		}
		if done.Deleted {
			t.Count("files_deleted", 1)
		}
	}
	fn.Worker.Emit(emit, t)
	return nil
}

// Misnamed is the message for a key that Files ignored.
const Misnamed = "looks like a raw file; raw files of the legacy layout are named YYYY-MM-DD_NNNN.json under country=/category=, with a valid date"

// targetState is the state of the key that a legacy file would be copied to.
type targetState int

// The states.
const (
	free     targetState = iota // it does not exist: the file would be copied
	Same                        // it is a copy of the file
	Conflict                    // it has other content: CopyFile would return ErrDiffers
)

// Inspect returns the state of a file's new key. It changes nothing.
func Inspect(ctx context.Context, s store.Store, r hive.Raw) (targetState, error) {
	there, err := store.Has(ctx, s, r.NewKey())
	if err != nil {
		return free, fmt.Errorf("comparing %s with its new key: %w", r.Key, err)
	}
	if !there {
		return free, nil
	}
	equal, err := same(ctx, s, r)
	switch {
	case err != nil:
		return free, err
	case equal:
		return Same, nil
	}
	return Conflict, nil
}

// Outcome is what CopyFile did, besides verifying.
type Outcome struct{ Copied, Deleted bool }

// ErrDiffers means that the new key has other content. The old file is kept.
var ErrDiffers = errors.New("the new key has other content; compare the two objects and remove one by hand")

// CopyFile copies a legacy file to its new key, unless that exists, and verifies the
// copy by SHA-256. With deleteVerified it then deletes the old file.
func CopyFile(ctx context.Context, s store.Store, key string, deleteVerified bool) (Outcome, error) {
	var done Outcome
	r, ok := hive.ParseLegacy(key)
	if !ok {
		return done, fmt.Errorf("%s is not a raw file of the legacy layout", key)
	}
	to := r.NewKey()
	err := store.Retry(ctx, func() error {
		body, err := s.Open(ctx, key)
		if err != nil {
			return fmt.Errorf("opening %s: %w", key, err)
		}
		defer func() { _ = body.Close() }() // it was only read: its error does not matter
		return s.PutIfAbsent(ctx, to, body, store.PutOptions{ContentType: "application/json"})
	})
	switch {
	case err == nil:
		done.Copied = true
	case !errors.Is(err, store.ErrExist):
		return done, fmt.Errorf("copying %s: %w", key, err)
	}
	equal, err := same(ctx, s, r)
	if err != nil {
		return done, err
	}
	if !equal {
		return done, fmt.Errorf("%s and %s: %w", key, to, ErrDiffers)
	}
	if deleteVerified {
		if err := store.Remove(ctx, s, key); err != nil {
			return done, fmt.Errorf("removing %s: %w", key, err)
		}
		done.Deleted = true
	}
	return done, nil
}

// same reports whether a file's new key has its content.
func same(ctx context.Context, s store.Store, r hive.Raw) (bool, error) {
	was, err := digest(ctx, s, r.Key)
	if err != nil {
		return false, err
	}
	is, err := digest(ctx, s, r.NewKey())
	return was == is, err
}

func digest(ctx context.Context, s store.Store, key string) (sum [sha256.Size]byte, err error) {
	err = store.Retry(ctx, func() error {
		body, err := s.Open(ctx, key)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }() // it was only read: its error does not matter
		h := sha256.New()
		_, err = io.Copy(h, body)
		sum = [sha256.Size]byte(h.Sum(nil))
		return err
	})
	if err != nil {
		return sum, fmt.Errorf("reading back %s: %w", key, err)
	}
	return sum, nil
}
