package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ParseRetryAfter reads a Retry-After header (RFC 9110, 10.2.3): seconds, or a
// date. It returns the time from now until the date, 0 for a past date, and false
// when h is neither.
func ParseRetryAfter(h string, now time.Time) (time.Duration, bool) {
	h = strings.TrimSpace(h)
	if allDigits(h) {
		const maxSeconds = int64(1<<63-1) / int64(time.Second)
		s, err := strconv.ParseInt(h, 10, 64)
		if err != nil || s > maxSeconds {
			s = maxSeconds
		}
		return time.Duration(s) * time.Second, true
	}
	at, err := http.ParseTime(h)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}
