package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/newsfork/seed-engine/io/store"
	_ "github.com/newsfork/seed-engine/io/store/bucket" // s3://, r2:// and gs://
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/testdata"
)

// OpenStore opens the user's store. A store that does not exist, or may not be
// read, is wrong usage; any other error is the store's own.
func OpenStore(ctx context.Context, o *Options, stderr io.Writer) (store.Store, error) {
	if o.beamDryRun() { // the printed job depends on the options alone
		return store.Open(ctx, "mem://dry-run")
	}
	if _, err := os.Stat(o.Store); o.Sample && o.Preview() && errors.Is(err, fs.ErrNotExist) {
		return memorySample(ctx) // a preview creates no ./out
	}
	if o.Sample {
		if err := copySample(o.Store); err != nil {
			return nil, usage.Errorf("no --store is given, and the sample bucket cannot be copied to ./%s (%w): name a bucket with --store, or use another folder", o.Store, err)
		}
		if err := notice(*o, stderr, "sample_bucket_used", fmt.Sprintf("No --store given: using the sample bucket (demo data), copied to ./%s", o.Store), "directory", o.Store); err != nil {
			return nil, err
		}
	}
	if o.Fresh && o.action() == nil && os.Mkdir(o.Store, 0o755) == nil { // else opening it says what is wrong
		if err := notice(*o, stderr, "store_made", "Made the store's directory ./"+o.Store, "directory", o.Store); err != nil {
			return nil, err
		}
	}
	s, err := store.Open(ctx, o.Store)
	if err == nil {
		s = store.Placed(s, o.Roots)
		err = readable(ctx, s)
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	switch {
	case errors.Is(err, store.ErrNotExist), errors.Is(err, fs.ErrPermission), err != nil && !store.Retryable(err):
		return nil, usage.Errorf("--store: %w", err)
	case err != nil:
		return nil, fmt.Errorf("--store: %w; try again when the store answers", err)
	}
	return s, nil
}

// readable tries a listing: opening a directory does not read it.
func readable(ctx context.Context, s store.Store) error {
	for _, err := range s.List(ctx, "datasets/") {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("it may not be read; give this user the right to: %w", err)
		}
		return err
	}
	return nil
}

// memorySample is the sample bucket in memory, without a copy on disk.
func memorySample(ctx context.Context) (store.Store, error) {
	s, err := store.Open(ctx, "mem://sample")
	if err != nil {
		return nil, err
	}
	return s, fs.WalkDir(testdata.Bucket, "bucket", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := testdata.Bucket.ReadFile(p)
		if err != nil {
			return err
		}
		return s.Put(ctx, strings.TrimPrefix(p, "bucket/"), bytes.NewReader(b), store.PutOptions{})
	})
}

// copySample copies the sample bucket to dir; files that exist stay as they are.
func copySample(dir string) error {
	return fs.WalkDir(testdata.Bucket, "bucket", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(p, "bucket")))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		if _, err := os.Stat(to); err == nil {
			return nil
		}
		b, err := testdata.Bucket.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
}

// LocalStore reports whether only this machine can reach a store.
func LocalStore(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return !ok || scheme == "file" || scheme == "mem"
}
