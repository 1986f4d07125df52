package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/rows"
	"github.com/newsfork/seed-engine/io/scratch"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// Keys of exports in the store begin with this, so that none replaces what the jobs keep.
const keyPrefix = "exports/"

// target is where an export goes: standard output, a file, or an object of the store.
type target struct {
	Format rows.Format
	stdout bool
	file   string
	key    string
}

// ParseTarget reads the values of --to and --format. It checks what can be checked before
// the export.
func ParseTarget(what, to, format string) (t target, err error) {
	if format != "" {
		if t.Format, err = parseFormat(format); err != nil {
			return t, err
		}
	}
	key, isKey := strings.CutPrefix(to, "store:")
	switch {
	case to == "":
		return t, usage.Errorf("--to is missing; name a file or folder, store:%sNAME for an object of the store, or - for standard output", keyPrefix)
	case to == "-":
		if t.Format == "" {
			t.Format = rows.JSONL
		}
		if t.Format != rows.JSONL {
			return t, usage.Errorf("--to=-: only --format=jsonl goes to standard output; name a file for %s", t.Format)
		}
		t.stdout = true
		return t, nil
	case isKey:
		if !strings.HasPrefix(key, keyPrefix) || key == keyPrefix || strings.HasSuffix(key, "/") {
			return t, usage.Errorf("--to=%s: write store:%sNAME, so that it replaces nothing that a job keeps", to, keyPrefix)
		}
		t.key = key
		return t, t.byEnding(to, key)
	case strings.Contains(to, "://"):
		return t, usage.Errorf("--to=%s: it is a URL; name a file, or store:%sNAME for an object of --store", to, keyPrefix)
	}
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		if t.Format == "" {
			t.Format = rows.Parquet
		}
		t.file = filepath.Join(to, what+"."+string(t.Format))
		return t, nil
	}
	if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() || strings.HasSuffix(to, "/") {
		return t, usage.Errorf("--to=%s: there is no folder %s; create it first", to, strings.TrimSuffix(filepath.Dir(to+"x"), "/"))
	}
	t.file = to
	return t, t.byEnding(to, to)
}

func parseFormat(name string) (rows.Format, error) {
	var all []string
	for _, f := range rows.Formats {
		if string(f) == name {
			return f, nil
		}
		all = append(all, string(f))
	}
	return "", usage.Errorf("--format=%s: use %s", name, usage.Or(all))
}

// byEnding takes the format from the name's ending if --format did not say it.
func (t *target) byEnding(to, name string) (err error) {
	if t.Format != "" {
		return nil
	}
	if t.Format, err = parseFormat(strings.TrimPrefix(filepath.Ext(name), ".")); err != nil {
		return usage.Errorf("--to=%s: its ending says no format; add --format=parquet, jsonl or csv", to)
	}
	return nil
}

// String names the target for a person.
func (t target) String() string {
	switch {
	case t.stdout:
		return "standard output"
	case t.key != "":
		return "the store's object " + t.key
	}
	return t.file
}

// temporary begins the names of the files that Write writes.
const temporary = ".export-"

// Write calls write with a temporary file, and puts that file in its place if write
// succeeds: what has the target's name is always whole. (What goes to standard output is
// whole if the program ends with exit code 0.)
func (t target) Write(ctx context.Context, s store.Store, stdout io.Writer, write func(io.Writer) (int64, error)) (n int64, err error) {
	switch {
	case t.stdout:
		return write(stdout)
	case t.key != "":
		return t.writeObject(ctx, s, write)
	}
	scratch.SweepOld(filepath.Dir(t.file), temporary, time.Now())
	f, err := os.CreateTemp(filepath.Dir(t.file), temporary+"*.tmp")
	if err != nil {
		return 0, usage.Errorf("--to=%s: %w", t.file, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if n, err = write(f); err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return n, err
	}
	return n, os.Rename(f.Name(), t.file)
}

// writeObject keeps the file on this machine's disk first: an upload can then be tried
// again, and memory does not grow with the file.
func (t target) writeObject(ctx context.Context, s store.Store, write func(io.Writer) (int64, error)) (n int64, err error) {
	dir, remove, err := scratch.Dir("seed-engine-export-")
	if err != nil {
		return 0, fmt.Errorf("making a folder for temporary files: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	f, err := os.Create(filepath.Join(dir, "export"))
	if err != nil {
		return 0, err
	}
	n, err = write(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return n, err
	}
	err = store.Retry(ctx, func() error {
		body, err := os.Open(f.Name())
		if err != nil {
			return err
		}
		return errors.Join(s.Put(ctx, t.key, body, store.PutOptions{}), body.Close())
	})
	if err != nil {
		return n, fmt.Errorf("writing %s: %w", t.key, err)
	}
	return n, nil
}
