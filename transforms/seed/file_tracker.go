package seed

import "time"

// FileTracker remembers which open raw files a watch has seen, so that each file is
// read when it is complete, and not again at every poll. It has only open files.
type FileTracker struct {
	Interval time.Duration // between two polls
	// AwaitEnd means that a file that was due can be at work until it is due again: the
	// pause is long, but a file whose worker was lost must not wait for ever.
	AwaitEnd bool

	Files map[string]TrackedFile // the open ones
	Began bool                   // Due was called
}

// TrackedFile is what a FileTracker knows of a file.
type TrackedFile struct {
	ETag  string
	Tries int
	Next  time.Time // when it is tried again
}

const (
	// maxPause is the longest pause between two tries of an unchanged open file.
	maxPause = time.Hour
	// minAwait is the shortest time that work on a file may take before it begins again.
	minAwait = 10 * time.Minute
)

// Due returns the open files that must be read now, at most n. Files of the first poll
// are due at once. A file that appears or changes later may be half-written when it is
// first seen, so it is due when the next poll finds it unchanged. A file that stays
// open is due again after a pause that doubles each time.
func (t *FileTracker) Due(open []File, now time.Time, n int) []File {
	seen := make(map[string]TrackedFile, len(open))
	var due []File
	for _, f := range open {
		s, known := t.Files[f.Key]
		switch {
		case known && s.ETag == f.ETag:
		case t.Began:
			s = TrackedFile{ETag: f.ETag, Next: now.Add(1)} // due at the next poll
		default:
			s = TrackedFile{ETag: f.ETag, Next: now}
		}
		if !now.Before(s.Next) && len(due) < n {
			due = append(due, f)
			s.Tries++
			s.Next = now.Add(t.pause(s.Tries))
		}
		seen[f.Key] = s
	}
	t.Files, t.Began = seen, true
	return due
}

// pause is how long a file that is due waits until it is due again.
func (t *FileTracker) pause(tries int) time.Duration {
	if t.AwaitEnd {
		return max(t.between(tries), minAwait)
	}
	return t.between(tries)
}

func (t *FileTracker) between(tries int) time.Duration {
	return max(min(t.Interval<<min(tries, 16), maxPause), t.Interval)
}

// Pause returns how long to wait for the next poll: half an interval while new files
// wait for their second poll.
func (t *FileTracker) Pause() time.Duration {
	for _, s := range t.Files {
		if s.Tries == 0 {
			return t.Interval / 2
		}
	}
	return t.Interval
}
