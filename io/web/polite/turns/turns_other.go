//go:build !linux

package turns

import "time"

// File is not available on this system.
type File struct{}

// Open returns ErrNotHere.
func Open(path string) (*File, error) { return nil, notOpened(path, ErrNotHere) }

// Take is not available on this system.
func (*File) Take(string, time.Time) (Times, bool) { return Times{}, true }

// Keep is not available on this system.
func (*File) Keep(string) bool { return true }

// Look is not available on this system.
func (*File) Look(string, time.Time) Times { return Times{} }

// Tell is not available on this system.
func (*File) Tell(string, Times) {}

// Give is not available on this system.
func (*File) Give(string, Times, time.Duration) {}
