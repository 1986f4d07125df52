package metadata

import (
	"fmt"
	"strings"
)

// An error field has one word of a closed set, which says why there is no response.
// Most words are those of the web client (io/web.Kind). These are the seed job's
// own, for requests that were not sent.
const (
	CrawlDelay = "crawl_delay" // not sent: the Crawl-delay of robots.txt is over --max-crawl-delay
	RetryAfter = "retry_after" // not sent: the host's Retry-After is over --max-crawl-delay
	Disallowed = "robots"      // not sent: robots.txt disallows it
)

// clientKinds are the words of the web client.
var clientKinds = []string{"dns", "connect", "tls", "timeout", "reset", "blocked", "redirect", "too_large"}

// StatusOutside is the word for a response with a status over 599, the schema's
// maximum, such as LinkedIn's 999: http_999.
func StatusOutside(status int) string { return fmt.Sprintf("http_%d", status) }

// errorPattern returns the regular expression of the schema's error fields.
func errorPattern() string {
	words := append(clientKinds[:len(clientKinds):len(clientKinds)], "http_[0-9]{3}", CrawlDelay, RetryAfter, Disallowed)
	return "^(" + strings.Join(words, "|") + ")$"
}
