package seed

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// Spoil makes the schema refuse the metadata of a domain, which nothing that a
// site answers is known to do, until mend is called.
func Spoil(t *testing.T, domain string) (mend func()) {
	t.Helper()
	validate = func(m metadata.Domain) error {
		if m.RegistrableDomain == domain {
			return errors.New("/robots/status_code: spoiled")
		}
		return metadata.Validate(m)
	}
	mend = func() { validate = metadata.Validate }
	t.Cleanup(mend)
	return mend
}

// ShortTimeouts sets the time-outs of robots.txt and of sitemaps to d, so that a
// test of hosts that hang need not wait for them.
func ShortTimeouts(t *testing.T, d time.Duration) {
	t.Helper()
	robots, sitemap := robotsTimeout, sitemapTimeout
	assert.True(t, robots == 10*time.Second && sitemap == 15*time.Second,
		"robots.txt has %v and a sitemap %v, want 10s and 15s", robots, sitemap)
	robotsTimeout, sitemapTimeout = d, d
	t.Cleanup(func() { robotsTimeout, sitemapTimeout = robots, sitemap })
}

// CompareAtOnce sets how many packed results are compared at a time.
func CompareAtOnce(t *testing.T, n int64) {
	t.Helper()
	before := maxCompared
	maxCompared = n
	t.Cleanup(func() { maxCompared = before })
}
