// Package scratch makes folders for temporary files that do not stay for ever: the folder
// of a process that was killed is removed by a later process. No promise: see docs/library.md.
package scratch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockName is the file of a folder that its process keeps locked. The lock ends with the
	// process, however that ends. By its name a folder is known to be of this program.
	lockName = ".seed-engine-in-use"
	// unfinished begins the name of a folder whose file is not locked yet.
	unfinished = ".seed-engine-new-"
	// Records begin the names of folders that outlive their process for maxRecords, unless Ended removes them.
	Records    = "records-"
	maxRecords = 30 * 24 * time.Hour
)

// Dir makes a folder in the system's folder for temporary files, and calls Sweep. remove removes the
// folder. Where files cannot be locked, no later process removes the folder.
func Dir(prefix string) (dir string, remove func() error, err error) {
	Sweep(time.Now())
	// The folder gets its final name when its file is locked: no other process sees it unlocked.
	made, err := os.MkdirTemp(place(prefix), unfinished+prefix)
	if err != nil {
		return "", nil, err
	}
	lock, err := os.Create(filepath.Join(made, lockName))
	if err == nil && unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		err = os.Remove(lock.Name())
	}
	dir = filepath.Join(filepath.Dir(made), strings.TrimPrefix(filepath.Base(made), unfinished))
	if err == nil {
		err = os.Rename(made, dir)
	}
	if err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return "", nil, errors.Join(err, os.RemoveAll(made))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
}

// place is where the folders with the prefix are. Records are not in the folder that a run has made for its
// process's temporary files, and which is removed with it.
func place(prefix string) string {
	dir := os.TempDir()
	for strings.HasPrefix(prefix, Records) {
		if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// Sweep removes the folders of processes that have ended. A folder that cannot be opened
// or removed, such as another user's, stays.
func Sweep(now time.Time) {
	Ended("", func(dir string) bool {
		i, err := os.Stat(dir)
		return !strings.HasPrefix(filepath.Base(dir), Records) || err == nil && now.Sub(i.ModTime()) > maxRecords || blank(dir)
	})
	for _, name := range []string{unfinished, "seed-run-", "beam-options-"} { // the files are unnamed as soon as they are open
		SweepOld(os.TempDir(), name, now)
	}
}

// SweepOld removes what nobody has written to for an hour of a folder's files and folders with the prefix.
func SweepOld(dir, prefix string, now time.Time) {
	made, _ := filepath.Glob(filepath.Join(dir, prefix+"*")) // an error: the folder's name is no pattern
	for _, name := range made {
		if i, err := os.Lstat(name); err == nil && now.Sub(i.ModTime()) > time.Hour {
			_ = os.RemoveAll(name) // what stays is tried again by the next process
		}
	}
}

// blank reports whether a folder's files have no text.
func blank(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
	for _, name := range files {
		text, rerr := os.ReadFile(name)
		if rerr != nil || len(bytes.TrimSpace(text)) > 0 {
			return false
		}
	}
	return err == nil
}

// Ended calls use for each folder with the prefix whose process has ended, and removes the folder if use
// returns true.
func Ended(prefix string, use func(dir string) bool) {
	locks, err := filepath.Glob(filepath.Join(place(prefix), prefix+"*", lockName))
	if err != nil {
		return // the temporary folder's name is no pattern
	}
	for _, name := range locks {
		if strings.HasPrefix(filepath.Base(filepath.Dir(name)), unfinished) {
			continue // its process is about to lock it
		}
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && use(filepath.Dir(name)) {
			_ = os.RemoveAll(filepath.Dir(name))
		}
		_ = lock.Close()
	}
}
