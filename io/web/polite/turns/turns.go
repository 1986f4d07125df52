// Package turns lets all processes of a machine take turns at a site, whichever job they
// work for: a file that all of them map into memory says which process has a request to
// the site in flight, when the last answer was read, and until when the site may not be
// asked. A turn costs no system call.
//
// The file remembers some 36,000 sites, those that were asked last. It holds no
// names, only hashes. A process that was killed gives its turns back at once, one that was
// stopped after staleAfter. The next process then knows no better than that the request
// has just been answered. No promise: see docs/library.md.
package turns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ErrNotHere is the error of Open on systems other than Linux.
var ErrNotHere = errors.New("processes share their turns at sites on Linux only")

// Times are what the processes know of a site. A zero time is not known.
type Times struct {
	Ended  time.Time // when the last answer was read
	Next   time.Time // when the gap after it is over
	Paused time.Time // no request before this: the site asked for a pause, or a retry waits
}

// join returns the later of each of two times.
func (t Times) join(u Times) Times {
	return Times{Later(t.Ended, u.Ended), Later(t.Next, u.Next), Later(t.Paused, u.Paused)}
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// back returns the times as they are by a clock that was set back since they were written:
// no answer was read later than now.
func (t Times) back(now time.Time) Times {
	ahead := t.Ended.Sub(now)
	if t.Ended.IsZero() || ahead <= 0 {
		return t
	}
	for _, of := range []*time.Time{&t.Ended, &t.Next, &t.Paused} {
		if !of.IsZero() {
			*of = of.Add(-ahead)
		}
	}
	return t
}

// temporary is the system's folder for temporary files. It is looked up when the program
// starts: a run later gives its process another one, which it removes.
var temporary = os.TempDir()

// DefaultPath is the file that processes of one user share when no other is named: in the
// user's folder for caches or, where there is none, in the system's for temporary files.
func DefaultPath() string {
	const folder, name = "seed-engine", "turns"
	if cache, err := os.UserCacheDir(); err == nil && os.MkdirAll(filepath.Join(cache, folder), 0o700) == nil {
		return filepath.Join(cache, folder, name)
	}
	return filepath.Join(temporary, folder+"-"+strconv.Itoa(os.Getuid()), name)
}

// notOpened is an error that says what to do.
func notOpened(path string, err error) error {
	return fmt.Errorf("the file of turns at sites, %s: %w", path, err)
}
