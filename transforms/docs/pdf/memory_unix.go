//go:build unix

package pdf

import "golang.org/x/sys/unix"

func reserve(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func (l *linear) release() error { return unix.Munmap(l.reserved) }
