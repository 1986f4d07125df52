package server

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/ledger/alert"
)

// job is what the server must know of a job: how it is asked for, and which of
// its counts say how well it goes. A new job is a line in jobs.
type job struct {
	Name, Title string
	Path        string // of the request that starts a run
	Fields      []field
	done        string   // the count of what came out well
	failed      string   // the count of what did not; "" where only requests fail
	rules       []string // the alerts that are on unless the config says otherwise
	reported    bool     // the job judges them for its own report too, by --alerts
}

// field is one thing that a request for a run may say.
type field struct {
	Name, Label, Hint string
	Flag              string // of the command line
	Kind              string // text, day, yes, number or share (from 0 to 1)
	pattern           *regexp.Regexp
	wrong             string // what a bad value is told
}

// Pattern is what an <input> element holds a value against.
func (f field) Pattern() string {
	if f.pattern == nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(f.pattern.String(), "^"), "$")
}

var (
	countryField  = field{Name: "country", Label: "Country", Hint: "two lower-case letters, such as sg", Flag: "country", Kind: "text", pattern: regexp.MustCompile(`^[a-z]{2}$`), wrong: "a country is two lower-case letters, such as sg"}
	categoryField = field{Name: "category", Label: "Category", Hint: "such as news", Flag: "category", Kind: "text", pattern: regexp.MustCompile(`^[a-z0-9_\-]{1,64}$`), wrong: "a category is up to 64 lower-case letters, digits, _ and -"}
	dateField     = field{Name: "date", Label: "Date", Hint: "YYYY-MM-DD", Flag: "date", Kind: "day", pattern: regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`), wrong: "that is no day; write YYYY-MM-DD"}
	forceField    = field{Name: "force", Label: "Do again what is done", Flag: "force", Kind: "yes", wrong: "write true or false"}
)

// Most sites have no sitemap, so a 404 is nothing unusual to the seed job.
var jobs = []job{
	{Name: "seed", Title: "Seed", Path: "/api/v1/seeds/orchestrate", Fields: []field{countryField, categoryField, dateField, forceField,
		{Name: "outage_threshold", Label: "Outage threshold", Hint: "share of failing domains that stops the run, such as 0.95; 0: never", Flag: "outage-threshold", Kind: "share", wrong: "use a share from 0 (off) to 1"}},
		done: "domains_collected", failed: "domains_failed", rules: []string{"failure_rate", "duration", "retry_rate"}},
	{Name: "docs", Title: "Docs", Path: "/api/v1/docs/runs", Fields: []field{
		{Name: "fallback", Label: "Crawl context7's providers too", Flag: "fallback", Kind: "yes", wrong: "write true or false"},
		{Name: "session_max_pages", Label: "Pages at most", Flag: "session-max-pages", Kind: "number", wrong: "use 1 to 1000000"}},
		done: "pages_fetched", rules: alert.Rules(), reported: true},
	{Name: "catalog", Title: "Catalog", Path: "/api/v1/catalog/runs", Fields: []field{
		{Name: "stop_after_known", Label: "Stop after known pages", Flag: "stop-after-known", Kind: "number", wrong: "use 1 to 1000000"}, forceField},
		done: "products_saved", failed: "failed_tasks", rules: alert.Rules()},
	{Name: "news", Title: "News", Path: "/api/v1/news/runs", done: "articles_inserted", rules: alert.Rules()},
}

func jobNamed(name string) (job, bool) {
	i := slices.IndexFunc(jobs, func(j job) bool { return j.Name == name })
	if i < 0 {
		return job{}, false
	}
	return jobs[i], true
}

// failures are how many of a run's items failed, and of how many.
func (j job) failures(r ledger.Report) (failed, of int64) {
	if j.failed == "" {
		return r.HTTP.Unanswered() + r.HTTP.Class('5'), r.HTTP.Requests
	}
	return r.Counts[j.failed], r.Counts[j.failed] + r.Counts[j.done]
}

// badRequest is a request that is refused with a message for its sender.
type badRequest struct{ message string }

func (e *badRequest) Error() string { return e.message }

func refuse(format string, args ...any) error { return &badRequest{fmt.Sprintf(format, args...)} }

// flags turns the JSON body of a request into flags of the command line.
func (j job) flags(body []byte) ([]string, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var said map[string]json.RawMessage
	if err := json.Unmarshal(body, &said); err != nil || said == nil {
		return nil, refuse("the body is no JSON object; write %s", j.example())
	}
	values := map[string]string{}
	for name, raw := range said {
		i := slices.IndexFunc(j.Fields, func(f field) bool { return f.Name == name })
		if i < 0 {
			return nil, refuse("unknown field %q; this takes %s", clip(name), j.fieldNames())
		}
		v, ok := j.Fields[i].decode(raw)
		if !ok {
			return nil, refuse("%s: %s", name, j.Fields[i].wrong)
		}
		values[name] = v
	}
	return j.settle(values)
}

// decode takes a JSON value of the field's own type only.
func (f field) decode(raw json.RawMessage) (string, bool) {
	switch f.Kind {
	case "yes":
		s := string(raw)
		return s, s == "true" || s == "false"
	case "number":
		var n *float64 // to JSON 1, 1.0 and 1e0 are one number
		if err := json.Unmarshal(raw, &n); err != nil || n == nil || *n != math.Trunc(*n) {
			return "", false
		}
		return strconv.FormatFloat(*n, 'f', 0, 64), true
	case "share":
		var n *float64
		if err := json.Unmarshal(raw, &n); err != nil || n == nil {
			return "", false
		}
		return strconv.FormatFloat(*n, 'g', -1, 64), true
	}
	var s *string
	err := json.Unmarshal(raw, &s)
	if err != nil || s == nil {
		return "", false
	}
	return *s, true
}

// settle checks values by their fields' names and makes flags of them.
func (j job) settle(values map[string]string) ([]string, error) {
	var out []string
	for _, f := range j.Fields {
		v, said := values[f.Name]
		if !said {
			continue
		}
		if err := f.check(v); err != nil {
			return nil, err
		}
		out = append(out, "--"+f.Flag+"="+v)
	}
	return out, nil
}

func (f field) check(v string) error {
	bad := f.pattern != nil && !f.pattern.MatchString(v)
	switch f.Kind {
	case "day":
		_, err := time.Parse(time.DateOnly, v)
		bad = bad || err != nil
	case "yes":
		bad = v != "true" && v != "false"
	case "number":
		n, err := strconv.Atoi(v)
		bad = err != nil || n < 1 || n > 1_000_000
	case "share":
		n, err := strconv.ParseFloat(v, 64)
		bad = err != nil || !(n >= 0 && n <= 1)
	}
	if bad {
		return refuse("%s: %s", f.Name, f.wrong)
	}
	return nil
}

func (j job) fieldNames() string {
	if len(j.Fields) == 0 {
		return "none"
	}
	var names []string
	for _, f := range j.Fields {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

func (j job) example() string {
	if len(j.Fields) > 0 && j.Fields[0].Name == "country" {
		return `{"country": "sg"}, or {} for all`
	}
	return "{}"
}

// clip shortens what a stranger wrote before it is repeated to them.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
