package docs

import (
	"time"

	"github.com/newsfork/seed-engine/io/web"
)

// longestRetryAfter is the longest wait that a host may ask for and still be
// waited for; a longer one ends its provider for this run (docs.md, delay).
const longestRetryAfter = 10 * time.Minute

// defaultRetryAfter is waited where a 429 names no time (section 5.4).
const defaultRetryAfter = time.Minute

// backoffs are the waits before each further try, by status (section 5.4). 0
// stands for no HTTP answer: DNS, connection or time-out.
var backoffs = map[int][]time.Duration{
	0:   {30 * time.Second},
	429: {defaultRetryAfter},
	500: {30 * time.Second, time.Minute},
	502: {30 * time.Second, time.Minute},
	503: {30 * time.Second, time.Minute, 2 * time.Minute},
	504: {30 * time.Second, time.Minute},
}

// backoff says how long to wait before an exchange is tried once more after it
// ended in status (0: below HTTP) and had so many retries already; false when
// there is no further try. after is the answer's Retry-After, below 0 for none:
// it replaces a 429's own wait and can only lengthen the others.
func backoff(status, retries int, after time.Duration) (wait time.Duration, again bool) {
	if status == 501 || status > 504 {
		status = 500 // appendix B has one arrow for all of 5xx
	}
	waits := backoffs[status]
	if retries >= len(waits) {
		return 0, false
	}
	wait = waits[retries]
	if after >= 0 && (status == 429 || after > wait) {
		wait = after
	}
	return wait, true
}

// transient says whether an exchange that failed below HTTP may fare better
// later: the table's rows of DNS, connection and time-out.
func transient(k web.Kind) bool {
	switch k {
	case web.KindDNS, web.KindConnect, web.KindTimeout, web.KindReset, web.KindTLS:
		return true
	}
	return false
}
