package store

import (
	"context"
	"fmt"
)

// Sync makes the objects of a directory store, and their names, survive a power
// cut. Syncing the folder with each object would cost as much as the object
// itself, so a run calls Sync once, at its end. Buckets need no sync.
func Sync(ctx context.Context, s Store) error {
	if local, ok := bare(s).(interface{ Sync(context.Context) error }); ok {
		return local.Sync(ctx)
	}
	return nil
}

func (d *dir) Sync(context.Context) error {
	if err := d.checkRoot(); err != nil {
		return err
	}
	if err := d.syncFileSystem(d.root); err != nil {
		return fmt.Errorf("syncing the file system of %s: %w", d.root, err)
	}
	return nil
}
