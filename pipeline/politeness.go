package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/botauth"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/similar"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// politenessFile is the file of --politeness.
type politenessFile struct {
	// By pattern: a host (example.org, with and without www.), *.example.org for all hosts
	// below it, or * for all. Each setting comes from the most specific pattern that has it.
	Hosts map[string]hostSettings `yaml:"hosts" jsonschema:"required,minProperties=1" pattern:"^(\\*|(\\*\\.)?[^*:/?#@\\s]+)$"`
}

// hostSettings are what the file says about the hosts of a pattern.
type hostSettings struct {
	// The least pause between two requests to one site, up to 1h.
	Delay string `yaml:"delay" pattern:"^[0-9][0-9a-zµ.]*$"`
	// The longest Crawl-delay or Retry-After that a run waits for, up to 24h, in place of --max-crawl-delay.
	MaxCrawlDelay string `yaml:"max_crawl_delay" pattern:"^[0-9][0-9a-zµ.]*$"`
	// Requests in flight to all hosts of the pattern together; each worker process has its part, at least one. A site gets one at a time.
	Concurrency *int `yaml:"concurrency" jsonschema:"minimum=1,maximum=10000"`
	// The hours of the day in which requests are sent, with their time zone, such as
	// 22:00-06:00 Asia/Singapore, or 12:00-13:00,22:00-06:00 UTC. any: at any time.
	Hours string `yaml:"hours" pattern:"^(any|[0-9:,-]+ [A-Za-z].*)$"`
	// In place of the job's own, also for robots.txt. It begins with the crawler's name.
	UserAgent string `yaml:"user_agent" pattern:"^[A-Za-z_-][!-~]*( [!-~]+)*$"`
}

// maxPoliteness is the largest politeness file in bytes: each worker gets it.
const maxPoliteness = 1 << 20

// ReadPoliteness reads the file of --politeness, if there is one.
func (c *RunOptions) ReadPoliteness() error {
	if c.Politeness == "" {
		return nil
	}
	text, err := os.ReadFile(c.Politeness)
	if err != nil {
		return usage.Errorf("reading --politeness: %w", err)
	}
	if c.Hosts, err = ParsePoliteness(text); err != nil {
		return usage.Errorf("--politeness=%s: %w", c.Politeness, err)
	}
	return nil
}

// unknownKey matches the error of a key that a file cannot have.
var unknownKey = regexp.MustCompile(`unknown field "([^"]*)"`)

// ParsePoliteness reads a politeness file. Its errors name the line and say what to write.
func ParsePoliteness(text []byte) (polite.Hosts, error) {
	if len(text) > maxPoliteness {
		return nil, fmt.Errorf("it is longer than %d KiB", maxPoliteness>>10)
	}
	var f politenessFile
	if err := yamltext.Strict(text, &f); err != nil {
		if m := unknownKey.FindStringSubmatch(err.Error()); m != nil {
			if near := similar.Near(m[1], []string{"hosts", "delay", "max_crawl_delay", "concurrency", "hours", "user_agent"}); near != "" {
				err = fmt.Errorf("%w; did you mean %s?", err, near)
			}
		}
		return nil, err
	}
	if len(f.Hosts) == 0 {
		return nil, errors.New("it names no hosts; write hosts: and below it patterns with their settings")
	}
	all, written := polite.Hosts{}, map[string]string{}
	for _, pattern := range slices.Sorted(maps.Keys(f.Hosts)) {
		key, host, err := f.Hosts[pattern].read(pattern)
		if err == nil && written[key] != "" {
			err = fmt.Errorf("pattern %q means the same hosts as %q of line %d; write one of them",
				pattern, written[key], yamltext.Line(text, "hosts", written[key]))
		}
		var wrong settingError
		errors.As(err, &wrong) // else the pattern is wrong, and its own line is named
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", yamltext.Line(text, "hosts", pattern, wrong.setting), err)
		}
		all[key], written[key] = host, pattern
	}
	return all, nil
}

// settingError says what is wrong with a setting.
type settingError struct {
	setting string
	error
}

// read returns a pattern in its usual form, and its settings.
func (s hostSettings) read(pattern string) (key string, h polite.Host, err error) {
	if key, err = patternKey(pattern); err != nil {
		return "", h, err
	}
	if s == (hostSettings{}) {
		return "", h, fmt.Errorf("pattern %q sets nothing; write delay, max_crawl_delay, concurrency, hours or user_agent below it", pattern)
	}
	if h.Delay, err = polite.ReadPause(s.Delay, polite.MaxDelay); err != nil {
		return "", h, settingError{"delay", fmt.Errorf("delay %q: %w", s.Delay, err)}
	}
	if h.LongestDelay, err = polite.ReadPause(s.MaxCrawlDelay, 24*time.Hour); err != nil {
		return "", h, settingError{"max_crawl_delay", fmt.Errorf("max_crawl_delay %q: %w", s.MaxCrawlDelay, err)}
	}
	if s.Concurrency != nil {
		if h.Concurrency = *s.Concurrency; h.Concurrency < 1 || h.Concurrency > 10_000 {
			return "", h, settingError{"concurrency", fmt.Errorf("concurrency %d: use 1 to 10000", h.Concurrency)}
		}
	}
	if s.Hours != "" {
		if err := h.Hours.UnmarshalText([]byte(s.Hours)); err != nil {
			return "", h, settingError{"hours", err}
		}
	}
	if h.UserAgent = s.UserAgent; s.UserAgent != "" {
		if err := botauth.CheckAgent(s.UserAgent); err != nil {
			return "", h, settingError{"user_agent", fmt.Errorf("user_agent %w", err)}
		}
	}
	return key, h, nil
}

var hostForm = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$`)

// patternKey returns the key of polite.Hosts for a pattern.
func patternKey(pattern string) (string, error) {
	if pattern == "*" {
		return pattern, nil
	}
	host, below := strings.CutPrefix(pattern, "*.")
	key := host
	if !strings.ContainsAny(host, "*:/?#@ ") {
		if below {
			host = "x." + host // keeps its www.
		}
		key = web.Site(&url.URL{Host: host})
		if below {
			key = strings.TrimPrefix(key, "x.")
		}
	}
	if !hostForm.MatchString(key) {
		return "", fmt.Errorf("pattern %q: write a host (example.org), *.example.org for all hosts below it, or *", pattern)
	}
	if below {
		key = "*." + key
	}
	return key, nil
}
