package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxClockError is how far the clocks of a site and of this machine may differ.
const maxClockError = 24 * time.Hour

// RetryAfter reads the Retry-After header of an answer (RFC 9110, 10.2.3): seconds, or a date.
// It returns the time from now until the date, 0 for a past date, and false when the header is
// neither. A date is compared with the answer's own one: by a clock that is wrong the pause
// could seem to be over.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	after := strings.TrimSpace(h.Get("Retry-After"))
	if allDigits(after) {
		const maxSeconds = int64(1<<63-1) / int64(time.Second)
		s, err := strconv.ParseInt(after, 10, 64)
		if err != nil || s > maxSeconds {
			s = maxSeconds
		}
		return time.Duration(s) * time.Second, true
	}
	at, err := http.ParseTime(after)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil && sent.Sub(now).Abs() < maxClockError {
		now = sent
	}
	return max(0, at.Sub(now)), true
}
