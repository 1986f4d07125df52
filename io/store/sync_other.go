//go:build !linux

package store

const canSyncFileSystem = false

// syncFileSystem does nothing: only Linux can sync a single file system.
func syncFileSystem(string) error { return nil }
