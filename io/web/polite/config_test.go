package polite_test

import (
	"testing"
	"time"

	"github.com/newsfork/seed-engine/io/web/polite"
)

func TestConfig(t *testing.T) {
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
