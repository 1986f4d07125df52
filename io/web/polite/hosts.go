package polite

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones are then known on every machine

	"github.com/newsfork/seed-engine/io/web"
)

// Hosts are the settings of hosts for all jobs, by pattern: a host as web.Site names it,
// "*.example.org" for all hosts below example.org, and "*" for all hosts. The most specific
// pattern with a setting decides it. Hosts travel as JSON.
type Hosts map[string]Host

// Host is what a pattern sets. Less specific patterns and the job decide zero fields. A
// request waits for the longest of three pauses: the job's, Delay, and robots.txt's.
type Host struct {
	Delay        time.Duration `json:",omitempty"` // the least pause between two requests to one site
	LongestDelay time.Duration `json:",omitempty"` // in place of Policy.MaxCrawlDelay and Policy.MaxRetryAfter
	Concurrency  int           `json:",omitempty"` // requests in flight to all hosts of the pattern, in one process
	Hours        Hours         `json:",omitzero"`  // when requests may be sent
	UserAgent    string        `json:",omitempty"` // in place of the job's, also for robots.txt
}

// Decision is a setting of a site, and the pattern that decides it.
type Decision struct {
	Setting string `json:"setting"` // as in the politeness file
	Value   string `json:"value"`
	Pattern string `json:"pattern"`
}

// For returns the settings of a site, and the pattern that decides each.
func (h Hosts) For(site string) (all Host, by []Decision) {
	if len(h) == 0 {
		return Host{}, nil
	}
	host, _, err := net.SplitHostPort(site)
	if err != nil { // it has no port
		host = site
	}
	for pattern, below := host, host; ; {
		all.take(h[pattern], func(setting string, value any) {
			by = append(by, Decision{setting, fmt.Sprint(value), pattern})
		})
		if pattern == "*" {
			return all, by
		}
		var more bool
		if _, below, more = strings.Cut(below, "."); more {
			pattern = "*." + below
		} else {
			pattern = "*"
		}
	}
}

// take takes the settings that h does not have yet.
func (h *Host) take(from Host, took func(setting string, value any)) {
	if h.Delay == 0 && from.Delay > 0 {
		h.Delay = from.Delay
		took("delay", from.Delay)
	}
	if h.LongestDelay == 0 && from.LongestDelay > 0 {
		h.LongestDelay = from.LongestDelay
		took("max_crawl_delay", from.LongestDelay)
	}
	if h.Concurrency == 0 && from.Concurrency > 0 {
		h.Concurrency = from.Concurrency
		took("concurrency", from.Concurrency)
	}
	if h.Hours.IsZero() && !from.Hours.IsZero() {
		h.Hours = from.Hours
		took("hours", from.Hours)
	}
	if h.UserAgent == "" && from.UserAgent != "" {
		h.UserAgent = from.UserAgent
		took("user_agent", from.UserAgent)
	}
}

// String lists what is set.
func (h Host) String() string {
	var all []string
	new(Host).take(h, func(setting string, value any) { all = append(all, fmt.Sprint(setting, " ", value)) })
	return strings.Join(all, "; ")
}

// decidedBy returns the pattern that decides a setting, "" for none.
func decidedBy(all []Decision, setting string) string {
	for _, d := range all {
		if d.Setting == setting {
			return d.Pattern
		}
	}
	return ""
}

// Hours are the hours of the day in which requests may be sent. The zero value is any time.
type Hours struct {
	text string
	of   [][2]int // minutes of the day, from and to; to is less than from across midnight
	zone *time.Location
}

// anyTime lifts the hours of a less specific pattern.
const anyTime = "any"

var window = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]:[0-5][0-9]|2[0-3]:[0-5][0-9]|24:00)$`)

// UnmarshalText reads hours such as "22:00-06:00 Asia/Singapore", or "any". Commas separate
// several.
func (h *Hours) UnmarshalText(text []byte) error {
	*h = Hours{text: string(text)}
	if h.text == anyTime {
		return nil
	}
	hours, zone, _ := strings.Cut(h.text, " ")
	for one := range strings.SplitSeq(hours, ",") {
		m := window.FindStringSubmatch(one)
		if m == nil {
			return fmt.Errorf("hours %q: write 22:00-06:00 Asia/Singapore, or any", text)
		}
		from, to := minutes(m[1]+":"+m[2]), minutes(m[3])
		if from == to || from == 0 && to == 24*60 {
			return fmt.Errorf("hours %q: %s is no part of a day; write any for the whole day", text, one)
		}
		h.of = append(h.of, [2]int{from, to})
	}
	if zone == "" || zone == "Local" {
		return fmt.Errorf("hours %q: name the time zone too, such as 22:00-06:00 UTC", text)
	}
	var err error
	if h.zone, err = time.LoadLocation(zone); err != nil {
		return fmt.Errorf("hours %q: there is no time zone %q; write a name of the IANA database, such as Asia/Singapore, or UTC", text, zone)
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (h Hours) MarshalText() ([]byte, error) { return []byte(h.text), nil }

func (h Hours) String() string { return h.text }

// IsZero reports whether nothing is said about hours.
func (h Hours) IsZero() bool { return h.text == "" }

// minutes is the time of day of "15:04".
func minutes(text string) int {
	h, m, _ := strings.Cut(text, ":")
	hours, _ := strconv.Atoi(h) // window matched both
	more, _ := strconv.Atoi(m)
	return hours*60 + more
}

// open reports whether requests may be sent at a time.
func (h Hours) open(at time.Time) bool {
	if h.of == nil {
		return true
	}
	at = at.In(h.zone)
	now := at.Hour()*60 + at.Minute()
	for _, w := range h.of {
		if w[0] < w[1] && w[0] <= now && now < w[1] || w[0] > w[1] && (now >= w[0] || now < w[1]) {
			return true
		}
	}
	return false
}

// longestClosed is more than hours can be closed, also where a clock change skips them.
const longestClosed = 3 * 24 * time.Hour

// opens returns the first time from now on at which requests may be sent. It looks at each
// minute, because a clock change moves, skips or repeats an hour.
func (h Hours) opens(now time.Time) time.Time {
	if h.open(now) {
		return now
	}
	at := now.Truncate(time.Minute)
	for end := at.Add(longestClosed); at.Before(end); {
		if at = at.Add(time.Minute); h.open(at) {
			break
		}
	}
	return at
}

// MaxDelay is the longest pause between two requests that a file may ask for.
const MaxDelay = time.Hour

// ReadPause reads a pause of a file, 0 for none. The error says what to write.
func ReadPause(text string, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > most {
		return 0, fmt.Errorf("write a number with its unit, such as 500ms, 5s or 1m, at most %v", most)
	}
	return d, nil
}

// Agent returns the User-Agent for the host of u, for which its robots.txt is read.
func (c *Client) Agent(u *url.URL) string {
	return cmp.Or(c.agent(u), c.Policy.Robots.Agent)
}

// agent returns the User-Agent that replaces the web client's own, "" for none.
func (c *Client) agent(u *url.URL) string { return c.Pacer.host(web.Site(u)).UserAgent }

// host returns the settings of a site.
func (p *Pacer) host(site string) Host {
	h, _ := p.Hosts.For(site)
	return h
}

// gap is the pause between two requests to a host: the longer one of the policy's and the file's.
func (c *Client) gap(h Host) (gap Range) {
	if !c.Policy.NoDelay {
		gap = c.Policy.Gap
	}
	return Range{max(gap.Min, h.Delay), max(gap.Max, h.Delay)}
}

// longestGap bounds the pauses that answers make longer. The politeness file makes it no shorter.
func (c *Client) longestGap(h Host) time.Duration {
	return max(h.LongestDelay, cmp.Or(c.Policy.MaxRetryAfter, defaultMaxPause))
}

// maxRetryAfter is the longest pause of a host that is waited for.
func (c *Client) maxRetryAfter(h Host) time.Duration {
	return cmp.Or(h.LongestDelay, c.Policy.MaxRetryAfter, defaultMaxPause)
}

// maxCrawlDelay is the longest Crawl-delay of a host that is obeyed; 0: any.
func (c *Client) maxCrawlDelay(h Host) time.Duration {
	return cmp.Or(h.LongestDelay, c.Policy.MaxCrawlDelay)
}

// tellClosed calls Pacer.Closed if it was not called for the site yet.
func (c *Client) tellClosed(e *AbandonedError) {
	c.mu.Lock()
	told := c.closed[e.Site]
	if c.closed == nil {
		c.closed = map[string]bool{}
	}
	c.closed[e.Site] = true
	c.mu.Unlock() // Closed may log or use the client
	if !told && c.Pacer.Closed != nil {
		c.Pacer.Closed(e)
	}
}

// fly counts a request against the limit of the pattern that limits the site's requests in
// flight, or returns a wait. A process has its part of the limit, and at least one request.
func (at *place) fly() (wait time.Duration) {
	p, pattern := at.c.Pacer, at.s.sharing
	if pattern == "" {
		return 0
	}
	most := max(1, int(float64(at.s.host.Concurrency)*p.part()))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flying[pattern] >= most {
		return lookAgain
	}
	if p.flying == nil {
		p.flying = map[string]int{}
	}
	p.flying[pattern]++
	at.flies = pattern
	return 0
}

// land ends what fly counted.
func (at *place) land() {
	if at.flies != "" {
		at.c.Pacer.mu.Lock()
		at.c.Pacer.flying[at.flies]--
		at.c.Pacer.mu.Unlock()
		at.flies = ""
	}
}
