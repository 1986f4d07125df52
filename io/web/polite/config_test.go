package polite_test

import (
	"math"
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/web/polite"
)

func TestConfig(t *testing.T) {
	for _, c := range []polite.Config{{HostDelay: -1}, {MaxPause: -1}, {RetryBackoff: -1}, {Adapt: -1}, {Adapt: math.Inf(1)}, {Servers: polite.Servers{Delay: -1}}, {Servers: polite.Servers{Rate: -1}}, {Servers: polite.Servers{Rate: math.NaN()}}} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	if err := (polite.Config{}).Validate(); err != nil {
		t.Error(err)
	}
	if got := (polite.Config{}).Longest(); got != 30*time.Second {
		t.Errorf("the longest pause is %v, want 30s", got)
	}
	if got := (polite.Config{MaxPause: time.Second}).Longest(); got != time.Second {
		t.Errorf("the longest pause is %v, want 1s", got)
	}
	if got := (polite.Config{}).Backoff(1); got < 750*time.Millisecond || got > 1250*time.Millisecond {
		t.Errorf("the second retry waits %v, want 1 s within a quarter", got)
	}
}
