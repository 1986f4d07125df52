package robots_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/temoto/robotstxt"

	"github.com/newsfork/seed-engine/io/web/robots"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// Floors: they may only rise.
const (
	minAgreed   = 1126 // rows that every source or every implementation agrees on: all of them
	minSingle   = 69   // rows of which nobody says whether others agree
	minDoubtful = 63   // of the rows the sources dispute, those where we agree with the row's own source
)

type row struct {
	ID         string
	Source     string
	Robots     string
	RobotsB64  []byte `json:"robots_b64"`
	Agent      string
	Agents     []string
	URL        string
	Allowed    *bool
	Undisputed *bool
	CrawlDelay json.RawMessage `json:"crawl_delay"`
	Sitemaps   *[]string
}

func (r row) body() []byte {
	if r.RobotsB64 != nil {
		return r.RobotsB64
	}
	return []byte(r.Robots)
}

// agreed rows are those that must be right without exception.
func (r row) agreed() bool {
	return r.Allowed != nil && r.Agents == nil &&
		(r.Undisputed != nil && *r.Undisputed || strings.HasPrefix(r.Source, "real-"))
}

func TestAgreedCases(t *testing.T) {
	right := 0
	for _, r := range cases.Rows[row](t, "robots/robots_cases.jsonl") {
		if !r.agreed() {
			continue
		}
		line, text, got := robots.Parse(r.body()).Rule(r.Agent, r.URL)
		if got != *r.Allowed {
			t.Errorf("%s: %s on %q: allowed %v, want %v (line %d %q)\n%.400s", r.ID, r.Agent, r.URL, got, *r.Allowed, line, text, r.body())
			continue
		}
		right++
	}
	assert.GreaterOrEqual(t, right, minAgreed)
}

// TestSingleCases has the rows whose result comes from one implementation only. Rows
// with several agents have all names of a legacy crawler; each is tried.
func TestSingleCases(t *testing.T) {
	right := 0
	for _, r := range cases.Rows[row](t, "robots/robots_cases.jsonl") {
		if r.Allowed == nil || r.agreed() {
			continue
		}
		agents := r.Agents
		if len(agents) == 0 {
			agents = []string{r.Agent}
		}
		file, allowed := robots.Parse(r.body()), true
		for _, a := range agents {
			allowed = allowed && file.Allowed(a, r.URL)
		}
		agrees := allowed == *r.Allowed
		if agrees {
			right++
		}
		if reason := deviations[r.ID]; agrees != (reason == "") {
			t.Errorf("%s: %q on %q: allowed %v, the source says %v, our reason to differ: %q\n%.300q", r.ID, agents, r.URL, allowed, *r.Allowed, reason, r.body())
		}
	}
	assert.GreaterOrEqual(t, right, minSingle)
}

// deviations has the rows in which this package differs from the row's source, and
// why.
var deviations = map[string]string{
	"google/ID_Encoding/006":                                   "RFC 9309 2.2.2 decodes encoded unreserved characters before it compares",
	"google/GoogleOnly_LineTooLong/002":                        "RFC 9309 knows no longest line; the file's size limit is the caller's",
	"crawler-commons/testMatchingUserAgentNamesHttpHeader/002": "RFC 9309 2.2.1: a line's leading product token counts, none within a comment",
	"crawler-commons/testMatchingUserAgentNamesHttpHeader/004": "RFC 9309 2.2.1: both lead with the token mozilla",
	"crawler-commons/testMultiAgentNames/001":                  "RFC 9309 2.2.1: one product token a line",
	"crawler-commons/testDirectiveTypos/001":                   "only the misspellings that google/robotstxt accepts",
	"crawler-commons/testDirectiveTypos/004":                   "only the misspellings that google/robotstxt accepts",
	"protego/test_generosity/007":                              "RFC 9309 2.2.1: tokens are compared, wildcards inside them are none",
	"protego/test_special_symbols_dual_behaviour/002":          "RFC 9309 2.2.3: a final $ is the end of the match, nothing else",
	"protego/test_special_symbols_dual_behaviour/003":          "RFC 9309 2.2.3: a final $ is the end of the match, nothing else",
	"protego/test_with_absolute_urls/002":                      "RFC 9309 2.2.2: a rule is a path; a URL in its place matches nothing",
	"protego/test_user_agent_precedence/002":                   "RFC 9309 2.2.1: tokens are equal or not, prefixes do not count",
	"protego/test_user_agent_precedence/008":                   "RFC 9309 2.2.1: tokens are equal or not, prefixes do not count",
	"protego/test_user_agent_precedence/009":                   "RFC 9309 2.2.1: tokens are equal or not, prefixes do not count",
	"protego/test_user_agent_precedence/011":                   "RFC 9309 2.2.1: tokens are equal or not, prefixes do not count",
	"protego/test_user_agent_precedence/012":                   "RFC 9309 2.2.1: tokens are equal or not, prefixes do not count",
}

func TestDoubtfulCases(t *testing.T) {
	right := 0
	for _, r := range cases.Rows[row](t, "robots/robots_doubtful.jsonl") {
		if r.Allowed == nil {
			continue
		}
		line, text, got := robots.Parse(r.body()).Rule(r.Agent, r.URL)
		agrees := got == *r.Allowed
		if agrees {
			right++
		}
		if reason := deviations[r.ID]; agrees != (reason == "") {
			t.Errorf("%s: %s on %.200q: allowed %v, the source says %v (line %d %.200q), our reason to differ: %q\n%.300q",
				r.ID, r.Agent, r.URL, got, *r.Allowed, line, text, reason, r.body())
		}
	}
	assert.GreaterOrEqual(t, right, minDoubtful)
}

func TestExtensionCases(t *testing.T) {
	delays, sitemaps := 0, 0
	for _, r := range cases.Rows[row](t, "robots/robots_cases.jsonl") {
		f := robots.Parse(r.body())
		if r.Sitemaps != nil {
			sitemaps++
			assert.True(t, slices.Equal(f.Sitemaps(), *r.Sitemaps), "%s: sitemaps %q, want %q", r.ID, f.Sitemaps(), *r.Sitemaps)
		}
		if r.CrawlDelay != nil {
			delays++
			var seconds *float64
			require.NoError(t, json.Unmarshal(r.CrawlDelay, &seconds))
			got, ok := f.CrawlDelay(r.Agent)
			assert.True(t, ok == (seconds != nil) && (!ok || got == time.Duration(*seconds*float64(time.Second))),
				"%s: crawl delay of %s %v %v, want %s", r.ID, r.Agent, got, ok, r.CrawlDelay)
		}
	}
	assert.True(t, delays >= 18 && sitemaps >= 8, "only %d delay and %d sitemap rows were read", delays, sitemaps)
}

// TestOracle says why this package does not use temoto/robotstxt: that library is
// wrong on the rows counted here, on which all other implementations agree.
func TestOracle(t *testing.T) {
	right, all := 0, 0
	for _, r := range cases.Rows[row](t, "robots/robots_cases.jsonl") {
		if !r.agreed() || r.Undisputed == nil {
			continue
		}
		all++
		// The library takes paths; given a whole URL it matches nothing.
		path := "/"
		if u, err := url.Parse(r.URL); err == nil && u.RequestURI() != "" {
			path = u.RequestURI()
		}
		data, err := robotstxt.FromBytes(r.body())
		if err == nil && data.TestAgent(path, r.Agent) == *r.Allowed {
			right++
		}
	}
	t.Logf("temoto/robotstxt is right on %d of %d undisputed rows", right, all)
	assert.NotEqual(t, all, right, "temoto/robotstxt is now right on every undisputed row: reconsider using it")
}
