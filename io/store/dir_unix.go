//go:build unix

package store

import (
	"errors"
	"io/fs"
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
