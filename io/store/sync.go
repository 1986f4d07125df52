package store

import (
	"context"
	"fmt"
)

// Sync makes the objects of a directory store, and their names, survive a power
// cut. Syncing the folder with each object would cost as much as the object
// itself, so a run calls Sync once, at its end. Buckets need no sync.
func Sync(ctx context.Context, s Store) error {
	d, ok := bare(s).(*dir)
	if !ok {
		return nil
	}
	if err := d.checkRoot(); err != nil {
		return err
	}
	if err := d.syncFileSystem(d.root); err != nil {
		return fmt.Errorf("syncing the file system of %s: %w", d.root, err)
	}
	return nil
}
