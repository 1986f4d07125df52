package metadata

import (
	"fmt"
	"strings"
)

// The error fields hold one word, of a closed set: why there is no answer to
// show. Most are the fetcher's (io/web.Kind); these are the seed job's own,
// about requests that were not sent or whose status no field can hold.
const (
	CrawlDelay = "crawl_delay" // not asked: robots.txt wants a longer pause than --max-crawl-delay
	RetryAfter = "retry_after" // not asked: the host answered with a longer Retry-After than that
	Disallowed = "robots"      // not asked: robots.txt disallows it
)

// fetched are the fetcher's words.
var fetched = []string{"dns", "connect", "tls", "timeout", "reset", "blocked", "redirect", "too_large"}

// StatusOutside is the word for an answer whose status is past the 599 that the
// design's schema takes, such as LinkedIn's 999: http_999.
func StatusOutside(status int) string { return fmt.Sprintf("http_%d", status) }

// errorPattern is what the schema's error fields match.
func errorPattern() string {
	words := append(fetched[:len(fetched):len(fetched)], "http_[0-9]{3}", CrawlDelay, RetryAfter, Disallowed)
	return "^(" + strings.Join(words, "|") + ")$"
}
