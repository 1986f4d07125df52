// Package browsertest is for tests that render pages. No promise: see docs/library.md.
package browsertest

import (
	"io"
	"os"
	"testing"

	"github.com/newsfork/seed-engine/io/web/browser"
)

// Read has the system keep the browser's program in memory, while other
// tests run. What was compiled before may have pushed it out, and its own page
// faults read its 300 MB in pieces: 28 s where one read of the whole takes 5.
func Read() {
	for _, at := range []string{"/usr/lib/chromium/chromium", "/opt/google/chrome/chrome"} {
		if f, err := os.Open(at); err == nil {
			_, _ = io.Copy(io.Discard, f) // only time is lost when it fails
			_ = f.Close()
		}
	}
}

// Want gives the browser's path, and skips the test without one, but in CI.
func Want(t testing.TB) string {
	t.Helper()
	at, err := browser.Find(true)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return at
}
