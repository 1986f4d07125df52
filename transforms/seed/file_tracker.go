package seed

import "time"

// FileTracker remembers which open raw files a watch has seen, so that each is
// read when it is whole and not again at every poll. It holds open files only.
type FileTracker struct {
	Interval time.Duration // between two polls
	// AwaitEnd says that Ended is called for each file that was due. Until then
	// the file is not due again, except after a long while: a file whose worker was
	// lost must not wait for ever.
	AwaitEnd bool

	files map[string]trackedFile
	began bool
}

type trackedFile struct {
	etag  string
	tries int
	next  time.Time // when it is tried again
}

const (
	// maxPause is the longest pause between two tries of a file that stays open as it is.
	maxPause = time.Hour
	// minAwait is how long, at least, the end of the work on a file is awaited.
	minAwait = 10 * time.Minute
)

// Due gives those of the open files that are to be read now, at most so many.
// What is there at the first poll is read at once. A file that appears or is
// replaced later is read when a second poll finds it unchanged, for it may be
// half written at the first. One that stays open is tried again after a pause
// that doubles.
func (t *FileTracker) Due(open []File, now time.Time, most int) []File {
	seen := make(map[string]trackedFile, len(open))
	var due []File
	for _, f := range open {
		s, known := t.files[f.Key]
		switch {
		case known && s.etag == f.ETag:
		case t.began:
			s = trackedFile{etag: f.ETag, next: now.Add(1)} // at any later poll
		default:
			s = trackedFile{etag: f.ETag, next: now}
		}
		if !now.Before(s.next) && len(due) < most {
			due = append(due, f)
			s.tries++
			s.next = now.Add(t.between(s.tries))
			if t.AwaitEnd {
				s.next = now.Add(max(t.between(s.tries), minAwait))
			}
		}
		seen[f.Key] = s
	}
	t.files, t.began = seen, true
	return due
}

func (t *FileTracker) between(tries int) time.Duration {
	return max(min(t.Interval<<min(tries, 16), maxPause), t.Interval)
}

// Ended says that the work on a file has ended: if it is still open, its pause
// begins.
func (t *FileTracker) Ended(key string, now time.Time) {
	if s, ok := t.files[key]; ok && s.tries > 0 {
		s.next = now.Add(t.between(s.tries))
		t.files[key] = s
	}
}

// Pause is how long to wait for the next poll: half an interval while files
// that have just appeared wait for their second poll.
func (t *FileTracker) Pause() time.Duration {
	for _, s := range t.files {
		if s.tries == 0 {
			return t.Interval / 2
		}
	}
	return t.Interval
}
