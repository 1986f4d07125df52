package store

import (
	"context"
	"fmt"
)

// Sync makes what was written to a directory store outlast a power cut, the
// names too. To sync the folder of each object would cost as much as the object
// itself: a run calls it once, at its end. Buckets keep what they confirmed.
func Sync(ctx context.Context, s Store) error {
	switch s := s.(type) {
	case *counted:
		return Sync(ctx, s.Store)
	case *guarded:
		return Sync(ctx, s.Store)
	case *dir:
		if err := s.here(); err != nil {
			return err
		}
		if err := syncFileSystem(s.root); err != nil {
			return fmt.Errorf("syncing the file system of %s: %w", s.root, err)
		}
	}
	return nil
}
