//go:build !unix

package store

import (
	"io/fs"
	"os"
)

// inode is unknown here: size and modification time alone make the ETag.
func inode(fs.FileInfo) uint64 { return 0 }

// isNotDir is false: these systems report fs.ErrNotExist instead.
func isNotDir(error) bool { return false }

func rename(from, to string) error { return os.Rename(from, to) }
