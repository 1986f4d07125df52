package polite

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Defaults for the zero fields of Config.
const (
	DefaultMaxPause     = 30 * time.Second
	DefaultRetryBackoff = 500 * time.Millisecond
)

// Config is what the policies of several jobs take from a run's options. It travels as
// JSON in a DoFn's field.
type Config struct {
	HostDelay    time.Duration // the gap between two requests to a host
	MaxPause     time.Duration // the longest Crawl-delay or Retry-After that is waited for; 0: DefaultMaxPause
	RetryBackoff time.Duration // the pause before a first retry; 0: DefaultRetryBackoff
	Servers      Servers
	Adapt        float64 // see Pacer.Adapt
	Turns        string  // see Pacer.Share
}

// Validate returns an error that tells the user what is wrong with the configuration.
func (c Config) Validate() error {
	switch {
	case c.HostDelay < 0:
		return fmt.Errorf("host delay %v: use 0 or more", c.HostDelay)
	case c.MaxPause < 0:
		return fmt.Errorf("longest pause %v: use 0 (for %v) or more", c.MaxPause, DefaultMaxPause)
	case c.RetryBackoff < 0:
		return fmt.Errorf("retry backoff %v: use 0 (for %v) or more", c.RetryBackoff, DefaultRetryBackoff)
	case c.Adapt < 0 || math.IsNaN(c.Adapt) || math.IsInf(c.Adapt, 0):
		return fmt.Errorf("adaptive delay %v: use times the response time, or 0 (off)", c.Adapt)
	case c.Servers.Delay < 0:
		return fmt.Errorf("server delay %v: use 0 (off) or more", c.Servers.Delay)
	case c.Servers.Rate < 0 || math.IsNaN(c.Servers.Rate) || math.IsInf(c.Servers.Rate, 0):
		return fmt.Errorf("rate of a CDN %v: use requests a second, or 0 for %d", c.Servers.Rate, DefaultCDNRate)
	}
	return nil
}

// Longest is MaxPause, or its default.
func (c Config) Longest() time.Duration { return cmp.Or(c.MaxPause, DefaultMaxPause) }

// Backoff is the pause before a retry, after that many retries.
func (c Config) Backoff(retries int) time.Duration {
	return Backoff(cmp.Or(c.RetryBackoff, DefaultRetryBackoff), retries)
}
