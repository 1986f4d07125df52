//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// inode is the file's inode number, 0 where the file system has none.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// rename is one system call, right after the check that the write is still allowed:
// os.Rename looks at the new name first, and a process may be suspended between the two.
func rename(from, to string) error {
	for {
		if err := syscall.Rename(from, to); !errors.Is(err, syscall.EINTR) {
			if err != nil {
				return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
			}
			return nil
		}
	}
}
