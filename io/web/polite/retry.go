package polite

import (
	"math/rand/v2"
	"time"

	"github.com/newsfork/seed-engine/io/web"
)

// Attempt is a try of a request: with an answer, or with a failure below HTTP.
type Attempt struct {
	Response   *web.Response // nil with a Failure
	Failure    *web.Error
	Retries    int           // tries before it
	RetryAfter time.Duration // that a 429 or 503 asks for; below 0: none
}

// Status is the answer's; 0 for a failure.
func (a Attempt) Status() int {
	if a.Response == nil {
		return 0
	}
	return a.Response.Status
}

// Kind is the failure's; empty for an answer.
func (a Attempt) Kind() web.Kind {
	if a.Failure == nil {
		return ""
	}
	return a.Failure.Kind
}

// Retry says whether a request is tried once more after an attempt, and how long
// its site waits before that. A longer Retry-After of the answer prevails.
type Retry func(Attempt) (wait time.Duration, again bool)

// Backoff is first for the first retry and twice as much for each further one, a
// quarter more or less. retries are those made before.
func Backoff(first time.Duration, retries int) time.Duration {
	d := first << min(retries, 10)
	return d*3/4 + rand.N(d/2+1)
}
