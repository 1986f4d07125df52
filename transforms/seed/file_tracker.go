package seed

import "time"

// FileTracker remembers which open raw files a watch has seen, so that each file is
// read when it is complete, and not again at every poll. It has only open files.
type FileTracker struct {
	Interval time.Duration // between two polls
	// AwaitEnd means that Ended is called for each file that was due. Until then the
	// file is not due again, except after a long time: a file whose worker was lost
	// must not wait for ever.
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
	// maxPause is the longest pause between two tries of an unchanged open file.
	maxPause = time.Hour
	// minAwait is the shortest time for which the end of the work on a file is awaited.
	minAwait = 10 * time.Minute
)

// Due returns the open files that must be read now, at most n. Files of the first poll
// are due at once. A file that appears or changes later may be half-written when it is
// first seen, so it is due when the next poll finds it unchanged. A file that stays
// open is due again after a pause that doubles each time.
func (t *FileTracker) Due(open []File, now time.Time, n int) []File {
	seen := make(map[string]trackedFile, len(open))
	var due []File
	for _, f := range open {
		s, known := t.files[f.Key]
		switch {
		case known && s.etag == f.ETag:
		case t.began:
			s = trackedFile{etag: f.ETag, next: now.Add(1)} // due at the next poll
		default:
			s = trackedFile{etag: f.ETag, next: now}
		}
		if !now.Before(s.next) && len(due) < n {
			due = append(due, f)
			s.tries++
			s.next = now.Add(t.pause(s.tries))
		}
		seen[f.Key] = s
	}
	t.files, t.began = seen, true
	return due
}

// resume makes a new tracker of one that another process had at its last poll. When a file was written says
// when it was due: after one poll, and then after a pause that doubles each time.
func (t *FileTracker) resume(open []File, written []time.Time, last time.Time) {
	t.files, t.began = make(map[string]trackedFile, len(open)), true
	for i, f := range open {
		s := trackedFile{etag: f.ETag, tries: 1, next: written[i]}
		switch {
		case written[i].After(last): // Due sees it for the first time
			continue
		case written[i].After(last.Add(-t.Interval)):
			s.tries = 0
		default:
			for pause := t.pause(s.tries); !s.next.After(last); pause = t.pause(s.tries) {
				if pause >= maxPause && last.Sub(s.next) > pause {
					s.next = s.next.Add(last.Sub(s.next).Truncate(pause)) // a file may be open for years
				}
				s.next = s.next.Add(pause)
				s.tries++
			}
		}
		t.files[f.Key] = s
	}
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

// ended records that the work on a file has ended. If the file is still open, its pause
// begins.
func (t *FileTracker) ended(key string, now time.Time) {
	if s, ok := t.files[key]; ok && s.tries > 0 {
		s.next = now.Add(t.between(s.tries))
		t.files[key] = s
	}
}

// Pause returns how long to wait for the next poll: half an interval while new files
// wait for their second poll.
func (t *FileTracker) Pause() time.Duration {
	for _, s := range t.files {
		if s.tries == 0 {
			return t.Interval / 2
		}
	}
	return t.Interval
}
