package store

import (
	"context"
	"fmt"
)

// Sync makes the objects of a directory store, and their names, survive a power
// cut. Syncing the folder with each object would cost as much as the object
// itself, so a run calls Sync once, at its end. Buckets need no sync.
func Sync(ctx context.Context, s Store) error {
	switch s := s.(type) {
	case *counted:
		return Sync(ctx, s.Store)
	case *guarded:
		return Sync(ctx, s.Store)
	case *dir:
		if err := s.checkRoot(); err != nil {
			return err
		}
		if err := syncFileSystem(s.root); err != nil {
			return fmt.Errorf("syncing the file system of %s: %w", s.root, err)
		}
	}
	return nil
}
