package polite

import (
	"math/rand/v2"
	"time"

	"github.com/newsfork/seed-engine/io/web"
)

// Attempt is one try of a request. It has either a Response or a Failure.
type Attempt struct {
	Response   *web.Response
	Failure    *web.Error
	Retries    int           // tries before this one
	RetryAfter time.Duration // the pause that the answer asks for; below 0: none
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

// Retry decides whether a request is retried after an attempt, and how long its site
// gets no request before that. A longer Retry-After of the answer takes precedence.
type Retry func(Attempt) (wait time.Duration, again bool)

// Backoff is a random pause before a retry, within 25 % of a value that starts at
// first and doubles with each retry made before.
func Backoff(first time.Duration, retries int) time.Duration {
	d := first << min(retries, 10)
	return d*3/4 + rand.N(d/2+1)
}
