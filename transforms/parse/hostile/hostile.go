// Package hostile runs parsers on text that was made to cost them much, for tests. No promise: see docs/library.md.
package hostile

import (
	"testing"
	"time"
)

// limit is far over the seconds that such a text may take on a busy machine.
const limit = time.Minute

// Parse returns parse's error, or fails the test when parse does not end in time.
func Parse(t testing.TB, parse func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- parse() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		t.Fatalf("the parser has not ended after %v", limit)
		return nil
	}
}
