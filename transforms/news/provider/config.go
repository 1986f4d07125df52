package provider

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Config is the news job's configuration file. The comments and tags of the fields are
// the reference page of the file and its JSON Schema (pipeline/reference).
type Config struct {
	// Average pause between two requests to a host, in seconds. Each pause is random, from
	// half of it to one and a half.
	DelaySeconds float64 `yaml:"delaySeconds" jsonschema:"minimum=0.1,maximum=3600,default=2"`
	// How many articles of a publisher a run fetches at most: the newest of its sitemap.
	MaxArticlesPerProvider int `yaml:"maxArticlesPerProvider" jsonschema:"minimum=1,maximum=1000,default=10"`
	// How many characters of an article's text are stored at most.
	RawTextMaxLength int `yaml:"rawTextMaxLength" jsonschema:"minimum=1,default=2000"`
	// How many days an article is stored.
	RawRetentionDays int `yaml:"rawRetentionDays" jsonschema:"minimum=1,maximum=36500,default=30"`
	// Settings of single publishers, by id.
	Providers map[string]Toggles `yaml:"providers"`
}

// Toggles are an operator's settings of one provider.
type Toggles struct {
	// Whether the publisher is crawled. Those shipped with the program are off when
	// --publishers names a directory, unless this says true.
	Enabled *bool `yaml:"enabled" jsonschema:"default=true"`
	// Sitemaps in place of the publisher's own.
	SitemapHints []string `yaml:"sitemapHints" pattern:"^https?://"`
}

// Defaults is the default configuration: pauses of one to three seconds, ten
// articles for each publisher, 2,000 characters, thirty days.
func Defaults() Config {
	return Config{DelaySeconds: 2, MaxArticlesPerProvider: 10, RawTextMaxLength: 2000, RawRetentionDays: 30}
}

// Retention returns how long an article is stored.
func (c Config) Retention() time.Duration { return time.Duration(c.RawRetentionDays) * 24 * time.Hour }

// Enabled reports whether a provider is crawled.
func (c Config) Enabled(id string) bool {
	t := c.Providers[id]
	return t.Enabled == nil || *t.Enabled
}

// Switch returns the configuration with providers on or off. Those whose enabled it sets itself stay
// as they are, unless always is set.
func (c Config) Switch(on, always bool, ids ...string) Config {
	all := maps.Clone(c.Providers)
	if all == nil {
		all = map[string]Toggles{}
	}
	for _, id := range ids {
		if t := all[id]; always || t.Enabled == nil {
			t.Enabled = &on
			all[id] = t
		}
	}
	c.Providers = all
	return c
}

// envPrefix is the prefix of the environment variables of ReadConfig.
const envPrefix = "NEWS_"

// ReadConfig reads YAML, which may be empty, and the environment variables in
// environ ("NAME=value"), which override it: NEWS_DELAY_SECONDS,
// NEWS_MAX_ARTICLES_PER_PROVIDER, NEWS_RAW_TEXT_MAX_LENGTH, NEWS_RAW_RETENTION_DAYS,
// NEWS_PROVIDERS_{ID}_ENABLED and NEWS_PROVIDERS_{ID}_SITEMAP_HINTS (separated by
// commas), with the id in capitals and _ for -. Unknown keys, unknown NEWS_ variables
// and providers that are not in ids are errors.
func ReadConfig(text []byte, environ []string, ids []string) (Config, error) {
	c := Defaults()
	if err := yamltext.Strict(text, &c); err != nil {
		return Config{}, fmt.Errorf("parsing YAML: %w", err)
	}
	for id := range c.Providers {
		if !slices.Contains(ids, id) {
			return Config{}, fmt.Errorf("providers.%s: there is no such provider; known are %s", id, strings.Join(ids, ", "))
		}
	}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if rest, ours := strings.CutPrefix(name, envPrefix); ours && value != "" {
			if err := c.set(rest, value, ids); err != nil {
				return Config{}, fmt.Errorf("environment variable %s=%q: %w", name, value, err)
			}
		}
	}
	return c, c.check()
}

func (c *Config) set(name, value string, ids []string) (err error) {
	switch name {
	case "DELAY_SECONDS":
		c.DelaySeconds, err = strconv.ParseFloat(value, 64)
	case "MAX_ARTICLES_PER_PROVIDER":
		c.MaxArticlesPerProvider, err = strconv.Atoi(value)
	case "RAW_TEXT_MAX_LENGTH":
		c.RawTextMaxLength, err = strconv.Atoi(value)
	case "RAW_RETENTION_DAYS":
		c.RawRetentionDays, err = strconv.Atoi(value)
	default:
		return c.toggle(name, value, ids)
	}
	return err
}

func (c *Config) toggle(name, value string, ids []string) error {
	for _, id := range ids {
		upper := strings.ToUpper(strings.ReplaceAll(id, "-", "_"))
		what, ok := strings.CutPrefix(name, "PROVIDERS_"+upper+"_")
		if !ok {
			continue
		}
		t := c.Providers[id]
		switch what {
		case "ENABLED":
			on, err := strconv.ParseBool(value)
			if err != nil {
				return err
			}
			t.Enabled = &on
		case "SITEMAP_HINTS":
			t.SitemapHints = strings.Split(value, ",")
		default:
			continue
		}
		if c.Providers == nil {
			c.Providers = map[string]Toggles{}
		}
		c.Providers[id] = t
		return nil
	}
	return fmt.Errorf("there is no such setting of the news job")
}

func (c Config) check() error {
	switch {
	case !(c.DelaySeconds >= 0.1 && c.DelaySeconds <= 3600):
		return fmt.Errorf("delaySeconds %v: use 0.1 to 3600; the job's own is 2", c.DelaySeconds)
	case c.MaxArticlesPerProvider < 1 || c.MaxArticlesPerProvider > 1000:
		return fmt.Errorf("maxArticlesPerProvider %d: use 1 to 1000", c.MaxArticlesPerProvider)
	case c.RawTextMaxLength < 1:
		return fmt.Errorf("rawTextMaxLength %d: use 1 or more", c.RawTextMaxLength)
	case c.RawRetentionDays < 1 || c.RawRetentionDays > 36_500:
		return fmt.Errorf("rawRetentionDays %d: use 1 or more", c.RawRetentionDays)
	}
	for id, t := range c.Providers {
		for _, h := range t.SitemapHints {
			if err := absolute(h); err != nil {
				return fmt.Errorf("providers.%s.sitemapHints: %w", id, err)
			}
		}
	}
	return nil
}
