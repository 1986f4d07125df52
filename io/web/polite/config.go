package polite

import (
	"cmp"
	"time"
)

// Defaults for the zero fields of Config, and for a zero Policy.MaxRetryAfter.
const (
	defaultMaxPause     = 30 * time.Second
	defaultRetryBackoff = 500 * time.Millisecond
)

// Config is what the policies of several jobs take from a run's options. It travels as
// JSON in a DoFn's field.
type Config struct {
	HostDelay    time.Duration // the gap between two requests to a host
	MaxPause     time.Duration // the longest Crawl-delay or Retry-After that is waited for; 0: defaultMaxPause
	RetryBackoff time.Duration // the pause before a first retry; 0: defaultRetryBackoff
	Servers      Servers
	Adapt        float64 // see Pacer.Adapt
	Turns        string  // see Pacer.Share
	Hosts        Hosts
}

// Longest is MaxPause, or its default.
func (c Config) Longest() time.Duration { return cmp.Or(c.MaxPause, defaultMaxPause) }

// Backoff is the pause before a retry, after that many retries.
func (c Config) Backoff(retries int) time.Duration {
	return Backoff(cmp.Or(c.RetryBackoff, defaultRetryBackoff), retries)
}
