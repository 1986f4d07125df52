//go:build unix

package web

import "golang.org/x/sys/unix"

// maxFiles is how many files and connections the process may have open. Go has
// raised the soft limit to the hard one.
func maxFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<20 {
		return 1 << 20
	}
	return int(limit.Cur) //nolint:gosec // at most a million
}
