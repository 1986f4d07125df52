package seed

import "time"

// Lookout remembers which open raw files a watcher has seen, so that each is
// read when it is whole and not again at every look. It holds open files only.
type Lookout struct {
	Interval time.Duration // between two looks
	// Awaits says that each file that was given will be settled: until then it is
	// not given again, but for after a while, lest a lost one waits for ever.
	Awaits bool

	files map[string]sighting
	began bool
}

type sighting struct {
	etag  string
	tries int
	next  time.Time // when it is tried again
}

const (
	// longestPause is between two tries of a file that stays open as it is.
	longestPause = time.Hour
	// patience is how long, at least, the work on a file is waited for.
	patience = 10 * time.Minute
)

// Due gives those of the open files that are to be read now, at most so many.
// What is there at the first look is read at once. A file that appears or is
// replaced later is read when a second look finds it unchanged, for it may be
// half written at the first. One that stays open is tried again after a pause
// that doubles.
func (l *Lookout) Due(open []File, now time.Time, most int) []File {
	seen := make(map[string]sighting, len(open))
	var due []File
	for _, f := range open {
		s, known := l.files[f.Key]
		switch {
		case known && s.etag == f.ETag:
		case l.began:
			s = sighting{etag: f.ETag, next: now.Add(1)} // at any later look
		default:
			s = sighting{etag: f.ETag, next: now}
		}
		if !now.Before(s.next) && len(due) < most {
			due = append(due, f)
			s.tries++
			s.next = now.Add(l.between(s.tries))
			if l.Awaits {
				s.next = now.Add(max(l.between(s.tries), patience))
			}
		}
		seen[f.Key] = s
	}
	l.files, l.began = seen, true
	return due
}

func (l *Lookout) between(tries int) time.Duration {
	return max(min(l.Interval<<min(tries, 16), longestPause), l.Interval)
}

// Settle says that the work on a file has ended: if it is still open, its pause
// begins.
func (l *Lookout) Settle(key string, now time.Time) {
	if s, ok := l.files[key]; ok && s.tries > 0 {
		s.next = now.Add(l.between(s.tries))
		l.files[key] = s
	}
}

// Pause is how long to wait for the next look: half an interval while files
// that have just appeared wait for their second look.
func (l *Lookout) Pause() time.Duration {
	for _, s := range l.files {
		if s.tries == 0 {
			return l.Interval / 2
		}
	}
	return l.Interval
}
