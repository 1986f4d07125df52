package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
)

// job is one of the jobs that the server knows.
type job struct{ ledger.Job }

// field is one option of a request that starts a run.
type field ledger.Field

// jobList are the jobs that the server knows, including those that it does not start.
type jobList []job

func knownJobs(all []ledger.Job) jobList {
	var out jobList
	for _, j := range all {
		out = append(out, job{j})
	}
	return out
}

// started are the jobs that the server can start.
func (l jobList) started() jobList {
	return slices.DeleteFunc(slices.Clone(l), func(j job) bool { return j.Path == "" })
}

func (l jobList) named(name string) (job, bool) {
	i := slices.IndexFunc(l, func(j job) bool { return j.Name == name })
	if i < 0 {
		return job{}, false
	}
	return l[i], true
}

func (l jobList) names() []string {
	var names []string
	for _, j := range l {
		names = append(names, j.Name)
	}
	return names
}

// or is the list as text: "a, b or c".
func (l jobList) or() string {
	names := l.names()
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// failures is how many of a run's items failed, and how many items there were.
func (j job) failures(r ledger.Report) (failed, of int64) {
	if j.Failed == "" {
		return r.HTTP.Unanswered() + r.HTTP.Class('5'), r.HTTP.Requests
	}
	return r.Counts[j.Failed], r.Counts[j.Failed] + r.Counts[j.Done]
}

// badRequest is the reason for refusing a request, as its sender sees it.
type badRequest struct{ message string }

func (e *badRequest) Error() string { return e.message }

// told returns what the sender of a request may be told of an error, and the status. Others
// go to the log.
func told(err error) (message string, code int, ok bool) {
	var bad *badRequest
	var known *answerError
	switch {
	case errors.As(err, &known):
		return safe(known.message), known.code, true
	case errors.As(err, &bad):
		return safe(bad.message), http.StatusBadRequest, true
	}
	return "", 0, false
}

func refuse(format string, args ...any) error { return &badRequest{fmt.Sprintf(format, args...)} }

// flags translates the JSON body of a request to command-line flags.
func (j job) flags(body []byte) ([]string, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		return nil, refuse("the body is not a JSON object; write %s", j.example())
	}
	values := map[string]string{}
	for name, raw := range given {
		i := slices.IndexFunc(j.Fields, func(f ledger.Field) bool { return f.Name == name })
		if i < 0 {
			return nil, refuse("unknown field %q; known fields: %s", clip(name), j.fieldNames())
		}
		v, ok := field(j.Fields[i]).decode(raw)
		if !ok {
			return nil, refuse("%s: %s", name, j.Fields[i].Wrong)
		}
		values[name] = v
	}
	return j.flagsOf(values)
}

// decode returns a JSON value as text, false if it has not the field's type.
func (f field) decode(raw json.RawMessage) (string, bool) {
	switch f.Kind {
	case "yes":
		s := string(raw)
		return s, s == "true" || s == "false"
	case "number":
		var n *float64 // in JSON 1, 1.0 and 1e0 are the same number
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

// flagsOf checks the values, by field name, and translates them to flags.
func (j job) flagsOf(values map[string]string) ([]string, error) {
	var out []string
	for _, f := range j.Fields {
		v, given := values[f.Name]
		if !given {
			continue
		}
		if err := field(f).check(v); err != nil {
			return nil, err
		}
		out = append(out, "--"+f.Flag+"="+v)
	}
	return out, nil
}

func (f field) check(v string) error {
	bad := f.Pattern != "" && !regexp.MustCompile("^(?:"+f.Pattern+")$").MatchString(v)
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
		return refuse("%s: %s", f.Name, f.Wrong)
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
	for _, f := range j.Fields {
		if f.Example != nil {
			return fmt.Sprintf("{%q: %q}, or {} for all", f.Name, f.Example)
		}
	}
	return "{}"
}

// clip shortens a sender's text for an error message.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
