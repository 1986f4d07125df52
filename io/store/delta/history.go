package delta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/newsfork/seed-engine/io/store"
)

// ErrGone means that a file of an old version was removed.
var ErrGone = errors.New("the file was removed")

// keepLog is how long Trim keeps entries at least: longer than a suspended process trusts its own knowledge of the log (fresh).
const keepLog = 24 * time.Hour

// Version is an entry of a log.
type Version struct {
	Number  int64
	At      time.Time
	Changes []Note
}

// History yields the versions, the newest first, as far back as the log goes. It ends after an error.
func (t *Table) History(ctx context.Context) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		entries, _, err := t.list(ctx)
		if err != nil {
			yield(Version{}, err)
			return
		}
		for _, number := range slices.Backward(entries) {
			if v, err := t.version(ctx, number); !yield(v, err) || err != nil {
				return
			}
		}
	}
}

func (l log) version(ctx context.Context, number int64) (Version, error) {
	actions, err := l.entry(ctx, number)
	if err == nil && actions == nil {
		err = fmt.Errorf("reading %s: %w", l.entryKey(number), ErrVersion)
	}
	v := Version{Number: number}
	for _, a := range actions {
		if a.CommitInfo != nil {
			v.At, v.Changes = time.UnixMilli(a.CommitInfo.Timestamp).UTC(), a.CommitInfo.Changes
		}
	}
	return v, err
}

// AsOf returns the version that was the newest one at a time. The error matches ErrVersion if the log does not go back so far.
func (t *Table) AsOf(ctx context.Context, at time.Time) (Snapshot, error) {
	number, err := t.asOf(ctx, at)
	if err != nil {
		return Snapshot{}, err
	}
	return t.At(ctx, number)
}

func (l log) asOf(ctx context.Context, at time.Time) (int64, error) {
	entries, _, err := l.list(ctx)
	from, to := 0, len(entries)
	for i := to - 1; i > 0 && from == 0; i-- { // what is before a gap was left by a process that was suspended while Trim ran
		if entries[i-1] != entries[i]-1 {
			from = i
		}
	}
	first := from
	for err == nil && from < to { // each version is younger than the one before
		var v Version
		i := (from + to) / 2
		if v, err = l.version(ctx, entries[i]); v.At.After(at) {
			to = i
		} else {
			from = i + 1
		}
	}
	if err == nil && from == first {
		err = fmt.Errorf("reading %s as of %s: %w: its oldest one is younger", l.root, at.Format(time.RFC3339), ErrVersion)
	}
	if err != nil {
		return 0, err
	}
	return entries[from-1], nil
}

// Whole returns an error that matches ErrGone if a file of an old version is not there any more.
func (t *Table) Whole(ctx context.Context, old Snapshot) error {
	if _, err := t.Snapshot(ctx); err != nil {
		return err
	}
	now := t.current.Load().files
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(reads)
	for _, f := range old.Files {
		if _, ok := now[f.Path]; ok {
			continue
		}
		group.Go(func() error {
			there, err := store.Has(within, t.s, t.root+f.Path)
			if err == nil && !there {
				err = fmt.Errorf("going back to version %d of %s: %s: %w", old.Version, t.root, t.root+f.Path, ErrGone)
			}
			return err
		})
	}
	return group.Wait()
}

// Restore makes the table what it was at a version, by one entry. The error matches ErrGone if a file is not there any more.
func (t *Table) Restore(ctx context.Context, version int64) (int64, error) {
	target, err := t.At(ctx, version)
	if err != nil {
		return 0, err
	}
	if err := t.Whole(ctx, target); err != nil {
		return 0, err
	}
	want := map[string]File{}
	for _, f := range target.Files {
		want[f.Path] = f
	}
	note := Note{"RESTORE", map[string]string{"version": fmt.Sprint(version)}}
	return t.submit(ctx, &member{note: note, plan: func(st *state) ([]action, error) {
		var c Change
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if _, ok := st.files[path]; !ok {
				c.Add = append(c.Add, want[path])
			}
		}
		for _, path := range slices.Sorted(maps.Keys(st.files)) {
			if _, ok := want[path]; !ok {
				c.Remove = append(c.Remove, path)
			}
		}
		return st.change(c)
	}})
}

// Named returns the files that a version of the last time keep names, at most Retention.
func (t *Table) Named(ctx context.Context, keep time.Duration) ([]File, error) {
	if keep > Retention {
		return nil, fmt.Errorf("looking at %s: files that were removed more than %s ago are not known any more, so %s cannot be kept",
			t.root, Retention, keep)
	}
	until := time.Now().Add(-keep)
	if _, err := t.Snapshot(ctx); err != nil {
		return nil, err
	}
	st := t.current.Load()
	files := slices.Collect(maps.Values(st.files))
	for _, f := range st.removed {
		if f.at > until.UnixMilli() {
			files = append(files, f.File)
		}
	}
	return files, nil
}

// Trim removes the entries and checkpoints that no version of the last time keep needs. They stay for a day in any case.
func (t *Table) Trim(ctx context.Context, keep time.Duration) error {
	keys, err := t.spent(ctx, time.Now().Add(-max(keep, keepLog)))
	if err != nil {
		return err
	}
	return store.Remove(ctx, t.s, keys...)
}

// spent returns the keys of the log that no version since a time needs, in the order of their removal: a kill leaves a log whose
// first entry is missing, or none of whose entries before a checkpoint is.
func (l log) spent(ctx context.Context, since time.Time) (keys []string, err error) {
	oldest, err := l.asOf(ctx, since)
	if errors.Is(err, ErrVersion) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, checkpoints, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	checkpoints = slices.DeleteFunc(checkpoints, func(n int64) bool { return n > oldest })
	if len(checkpoints) == 0 {
		return nil, nil
	}
	first := checkpoints[len(checkpoints)-1]
	for _, n := range checkpoints[:len(checkpoints)-1] {
		keys = append(keys, l.checkpointKey(n))
	}
	for _, n := range entries {
		if n < first {
			keys = append(keys, l.entryKey(n))
		}
	}
	return keys, nil
}
