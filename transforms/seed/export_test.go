package seed

import (
	"testing"
	"time"
)

// Hurry cuts the time-outs of seed.md down to d, so that a test of hosts that
// hang need not wait for them.
func Hurry(t *testing.T, d time.Duration) {
	t.Helper()
	robots, sitemap := robotsTimeout, sitemapTimeout
	if robots != 10*time.Second || sitemap != 15*time.Second {
		t.Errorf("robots.txt has %v and a sitemap %v, want 10s and 15s (seed.md, Collect)", robots, sitemap)
	}
	robotsTimeout, sitemapTimeout = d, d
	t.Cleanup(func() { robotsTimeout, sitemapTimeout = robots, sitemap })
}
