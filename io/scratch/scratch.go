// Package scratch makes folders for temporary files that do not stay for ever: the folder
// of a process that was killed is removed when another process makes one.
package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lockName is the file of a folder that its process keeps locked. The lock ends with the
// process, however that ends.
const lockName = ".in-use"

// Dir makes a folder in the system's folder for temporary files, and removes those of the
// same prefix whose process has ended. remove removes the folder. Where files cannot be
// locked, no later process removes the folder.
func Dir(prefix string) (dir string, remove func() error, err error) {
	sweep(prefix)
	// The folder gets its final name when its file is locked: no other process sees it unlocked.
	const unfinished = ".new-"
	made, err := os.MkdirTemp("", unfinished+prefix)
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

// sweep removes the folders of processes that have ended. A folder that cannot be opened
// or removed, such as another user's, stays.
func sweep(prefix string) {
	locks, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*", lockName))
	if err != nil {
		return // the temporary folder's name is no pattern
	}
	for _, name := range locks {
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(name))
		}
		_ = lock.Close()
	}
}
