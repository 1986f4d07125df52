package pipeline

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

func TestParsePoliteness(t *testing.T) {
	h, err := ParsePoliteness([]byte(`# ours
hosts:
  "*": {delay: 1s, concurrency: 4}
  WWW.Bücher.Example: {max_crawl_delay: 2m}
  "*.gov.sg":
    hours: 22:00-06:00 Asia/Singapore
    user_agent: ExampleBot/1.0 (+https://example.org/bot)
`))
	require.NoError(t, err)
	said := map[string]string{}
	for pattern, one := range h {
		said[pattern] = one.String()
	}
	assert.Equal(t, map[string]string{"*": "delay 1s; concurrency 4", "xn--bcher-kva.example": "max_crawl_delay 2m0s",
		"*.gov.sg": "hours 22:00-06:00 Asia/Singapore; user_agent ExampleBot/1.0 (+https://example.org/bot)"}, said)
}

// Each mistake is refused with its line, and with what to write.
func TestBadPoliteness(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "it names no hosts; write hosts: and below it patterns with their settings",
		"hosts: {}":                          "it names no hosts; write hosts: and below it patterns with their settings",
		"host:\n  a.example: {}":             `line 1: unknown field "host"; did you mean hosts?`,
		"hosts:\n  a.example:\n    dely: 1s": `line 3: unknown field "dely"; did you mean delay?`,
		"hosts:\n  a.example: {delay: 1s}\n  a.example: {delay: 2s}":     `line 3: mapping key "a.example" already defined at [2:3]`,
		"hosts:\n  a.example: {delay: 1s}\n  www.A.example: {delay: 2s}": `line 3: pattern "www.A.example" means the same hosts as "a.example" of line 2; write one of them`,
		"hosts:\n  a.example:\n  b.example: {delay: 1s}":                 `line 2: pattern "a.example" sets nothing; write delay, max_crawl_delay, concurrency, hours or user_agent below it`,
		"hosts:\n  https://a.example/: {delay: 1s}":                      `line 2: pattern "https://a.example/": write a host (example.org), *.example.org for all hosts below it, or *`,
		"hosts:\n  a*.example: {delay: 1s}":                              `line 2: pattern "a*.example": write a host (example.org), *.example.org for all hosts below it, or *`,
		"hosts:\n  a.example:8080: {delay: 1s}":                          `line 2: pattern "a.example:8080": write a host (example.org), *.example.org for all hosts below it, or *`,
		"hosts:\n  a.example:\n    concurrency: 1\n    delay: 5":         `line 4: delay "5": write a number with its unit, such as 500ms, 5s or 1m, at most 1h0m0s`,
		"hosts:\n  a.example:\n    delay: 2h":                            `line 3: delay "2h": write a number with its unit, such as 500ms, 5s or 1m, at most 1h0m0s`,
		"hosts:\n  a.example:\n    delay: 0s":                            `line 3: delay "0s": write a number with its unit, such as 500ms, 5s or 1m, at most 1h0m0s`,
		"hosts:\n  a.example:\n    max_crawl_delay: -1s":                 `line 3: max_crawl_delay "-1s": write a number with its unit, such as 500ms, 5s or 1m, at most 24h0m0s`,
		"hosts:\n  a.example:\n    concurrency: 0":                       "line 3: concurrency 0: use 1 to 10000",
		"hosts:\n  a.example:\n    hours: 22:00-06:00":                   `line 3: hours "22:00-06:00": name the time zone too, such as 22:00-06:00 UTC`,
		"hosts:\n  a.example:\n    user_agent: (bot)":                    `line 3: user_agent "(bot)": write a crawler's name, such as ExampleBot/1.0 (+https://example.org/bot), in printable ASCII`,
		"hosts:\n  a.example:\n    user_agent: \"A\\nB: c\"":             `line 3: user_agent "A\nB: c": write a crawler's name, such as ExampleBot/1.0 (+https://example.org/bot), in printable ASCII`,
	} {
		_, err := ParsePoliteness([]byte(text))
		assert.EqualError(t, err, want, text)
	}
}

// A run is refused before it begins, as wrong usage.
func TestReadPoliteness(t *testing.T) {
	at := filepath.Join(t.TempDir(), "hosts.yaml")
	err := (&RunOptions{Politeness: at}).ReadPoliteness()
	assert.True(t, usage.Is(err), "%v", err)
	require.NoError(t, os.WriteFile(at, []byte("hosts: {a.example: {delay: 1}}"), 0o600))
	err = (&RunOptions{Politeness: at}).ReadPoliteness()
	assert.True(t, usage.Is(err), "%v", err)
	assert.EqualError(t, err, "--politeness="+at+`: line 1: delay "1": write a number with its unit, such as 500ms, 5s or 1m, at most 1h0m0s`)
	require.NoError(t, os.WriteFile(at, []byte("hosts: {a.example: {delay: 1s}}"), 0o600))
	c := RunOptions{Politeness: at}
	require.NoError(t, c.ReadPoliteness())
	assert.Equal(t, polite.Hosts{"a.example": {Delay: time.Second}}, c.PoliteConfig().Hosts)
}

// What is read has settings that hold, and is the same after its travel to a worker.
func FuzzParsePoliteness(f *testing.F) {
	for _, text := range []string{"hosts: {'*': {delay: 1s, hours: '22:00-06:00 Asia/Seoul'}}", "hosts:\n  \"*.a.b\": {concurrency: 3}\n  a.b: {user_agent: x}", "hosts: {a.: {hours: any}, ..: {delay: 1s}}", "hosts: {*.: }"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := ParsePoliteness(text)
		if err != nil {
			return
		}
		sent, err := json.Marshal(h)
		require.NoError(t, err)
		var got polite.Hosts
		require.NoError(t, json.Unmarshal(sent, &got))
		require.NotEmpty(t, h)
		for pattern, one := range h {
			require.NotEmpty(t, one.String(), pattern)
			require.Equal(t, one.String(), got[pattern].String())
			require.True(t, one.Delay >= 0 && one.Delay <= polite.MaxDelay && one.Concurrency >= 0)
			_, by := h.For(pattern)
			if pattern[0] != '*' {
				require.Equal(t, pattern, by[0].Pattern)
			}
			begin := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
			client := polite.Client{Pacer: &polite.Pacer{Clock: polite.Clock{Now: func() time.Time { return begin }}, Hosts: polite.Hosts{"*": one}}}
			if e := client.Abandoned(&url.URL{Scheme: "https", Host: "a.example"}); e != nil {
				require.True(t, e.Until.After(begin) && e.Until.Before(begin.Add(73*time.Hour)), "%v", e.Until)
			}
		}
	})
}
