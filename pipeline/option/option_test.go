package option

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told is a set with an option of each kind, and two jobs.
func told() (s *Set, share *float64) {
	s, share = New("test"), new(float64)
	s.Text(new(string), "country", "", "").Like("[a-z]{2}").Says("a country is two letters").NotEmpty("name one")
	s.Day(new(string), "date", "")
	s.Yes(new(bool), "force", false, "")
	s.Number(new(int), "lanes", 0, "").Range(1, 9)
	s.Pause(new(time.Duration), "delay", time.Second, "").Above(0)
	s.Pause(new(time.Duration), "ttl", 30*time.Second, "").From(1)
	s.Text(new(string), "runner", "direct", "").OneOf("direct", "prism")
	s.Text(new(string), "db", "", "").Is(Secret)
	s.Begin("crawl")
	s.Take("lanes")
	s.Default("delay", "5s")
	s.Decimal(share, "share", 0.5, "").Range(0, 1)
	s.Begin("copy")
	s.Yes(new(bool), "dry-run", true, "").Previews("--dry-run")
	s.Names(new(string), "only", "", "Only these", "names")
	return s, share
}

func TestValues(t *testing.T) {
	s, _ := told()
	for _, c := range []struct{ name, value, wrong string }{
		{"country", "sg", ""}, {"country", "sgp", "a country is two letters"}, {"country", "", "a country is two letters"},
		{"date", "2026-02-28", ""}, {"date", "2026-02-30", "that is no day; write YYYY-MM-DD"},
		{"date", "20260228", "that is no day; write YYYY-MM-DD"},
		{"force", "true", ""}, {"force", "1", "write true or false"},
		{"lanes", "9", ""}, {"lanes", "10", "use 1 to 9"}, {"lanes", "x", "use 1 to 9"},
		{"delay", "1ms", ""}, {"delay", "0s", "use more than 0"}, {"ttl", "1s", ""}, {"ttl", "999ms", "use 1s or more"},
		{"runner", "prism", ""}, {"runner", "flink", "use direct or prism"},
		{"share", "1", ""}, {"share", "1.1", "use 0 to 1"}, {"share", "NaN", "use 0 to 1"},
		{"only", "a,b", ""}, {"only", "a b", "write names, separated by commas"},
	} {
		err := s.Get(c.name).Check(c.value)
		if c.wrong == "" {
			assert.NoError(t, err, "%s=%s", c.name, c.value)
			continue
		}
		assert.EqualError(t, err, c.wrong, "%s=%s", c.name, c.value)
	}
}

// A request has values of JSON's types, and its schema says which.
func TestRequest(t *testing.T) {
	s, _ := told()
	for _, c := range []struct{ name, raw, text string }{
		{"lanes", "3", "3"}, {"lanes", "3e0", "3"}, {"lanes", `"3"`, ""}, {"lanes", "null", ""}, {"share", "0.25", "0.25"}, {"share", "true", ""},
		{"force", "true", "true"}, {"force", `"true"`, ""}, {"country", `"sg"`, "sg"}, {"country", "7", ""}, {"country", "null", ""},
	} {
		text, err := s.Get(c.name).Decode(json.RawMessage(c.raw))
		assert.Equal(t, c.text, text, "%s: %s", c.name, c.raw)
		assert.Equal(t, c.text == "", err != nil, "%s: %s", c.name, c.raw)
	}
	assert.Equal(t, map[string]any{"description": "", "type": "integer", "minimum": 1., "maximum": 9.}, s.Get("lanes").Schema())
	assert.Equal(t, map[string]any{"description": "", "type": "string", "enum": []string{"direct", "prism"}}, s.Get("runner").Schema())
	assert.Equal(t, "dry_run", s.Get("dry-run").Field())
	assert.Equal(t, "SEED_DRY_RUN", Variable("dry-run"))
}

// The values of a command line are checked when all of them are there.
func TestLine(t *testing.T) {
	for _, c := range []struct{ job, line, wrong string }{
		{"crawl", "--lanes=2 --share=1", ""},
		{"crawl", "--lanes=x", "--lanes=x: write a number"},
		{"crawl", "--delay=5", "--delay=5: write a number with its unit, such as 500ms, 30s or 1m"},
		{"crawl", "--lanes=12", "--lanes=12: use 1 to 9"},
		{"crawl", "--country=", "--country= is empty; name one"},
		{"crawl", "--only=a", "--only means nothing to --job=crawl; leave it out, `help crawl` lists what there is"},
		{"crawl", "--dry-run", "--dry-run means nothing to --job=crawl; leave it out, `help crawl` lists what there is"},
		{"copy", "--lanes=2", "--lanes means nothing to --job=copy; leave it out, `help copy` lists what there is"},
		{"copy", "--only=../a", ""}, // the job refuses what it does not know
	} {
		s, _ := told()
		err := s.Parse([]string{c.line})
		if c.line == "--lanes=2 --share=1" {
			err = s.Parse([]string{"--lanes=2", "--share=1"})
		}
		if err == nil {
			err = s.Check()
		}
		if err == nil {
			var line []string
			for name := range s.Given() {
				line = append(line, name)
			}
			err = s.CheckLine(c.job, line)
		}
		if c.wrong == "" {
			assert.NoError(t, err, c.line)
			continue
		}
		assert.EqualError(t, err, c.wrong)
	}
}

func TestOfAJob(t *testing.T) {
	s, share := told()
	names := func(job string) (all []string) {
		for _, o := range s.Of(job) {
			all = append(all, o.Name+"="+o.Default)
		}
		return all
	}
	assert.Equal(t, []string{"country=", "date=", "force=false", "lanes=0", "delay=5s", "ttl=30s", "runner=direct", "share=0.5"}, names("crawl"))
	assert.Equal(t, []string{"country=", "date=", "force=false", "delay=1s", "ttl=30s", "runner=direct", "dry-run=true", "only="}, names("copy"))
	require.NoError(t, s.UseDefaults("crawl", map[string]bool{"share": true}))
	assert.Equal(t, "5s", s.Value("delay"))
	require.NoError(t, s.Put("share", "0.75"))
	assert.InDelta(t, 0.75, *share, 0)
	assert.Equal(t, "--dry-run", s.Preview("copy"))
	assert.Empty(t, s.Preview("crawl"))
	assert.Equal(t, []string{"db"}, s.Which(Secret))
}
