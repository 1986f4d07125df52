package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// canSyncFileSystem says that syncFileSystem writes all data to the disk.
const canSyncFileSystem = true

func syncFileSystem(root string) error {
	f, err := os.Open(root)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
