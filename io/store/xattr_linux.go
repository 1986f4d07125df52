package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hasXattrs says whether the file system of path has extended attributes.
func hasXattrs(path string) bool {
	_, err := unix.Getxattr(path, attributesName, nil)
	return err == nil || errors.Is(err, unix.ENODATA)
}

func setXattr(f *os.File, name string, value []byte) error {
	return unix.Fsetxattr(int(f.Fd()), name, value, 0)
}

// getXattr returns nothing where the file, or the file system, has none.
func getXattr(path, name string) ([]byte, error) {
	for size := 512; ; size *= 8 {
		value := make([]byte, size)
		n, err := unix.Getxattr(path, name, value)
		switch {
		case err == nil:
			return value[:n], nil
		case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOENT):
			return nil, nil
		case !errors.Is(err, unix.ERANGE) || size > 1<<16: // 64 KiB is the kernel's limit
			return nil, &os.PathError{Op: "getxattr", Path: path, Err: err}
		}
	}
}
