//go:build !unix

package store

import "io/fs"

// inode is unknown here: size and modification time must do for an ETag.
func inode(fs.FileInfo) uint64 { return 0 }

// isNotDir: these systems report a file in place of a folder as not there.
func isNotDir(error) bool { return false }
