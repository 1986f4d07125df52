package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// job is one of the jobs that the server knows.
type job struct{ option.Job }

// jobList are the jobs that the server knows, including those that it does not start.
type jobList []job

func knownJobs(all []option.Job) jobList {
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
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return strings.Join(names, "")
}

// failures is how many of a run's items failed, and how many items there were.
func (j job) failures(r ledger.Report) (failed, of int64) {
	if j.Failed == "" {
		return r.HTTP.Unanswered() + r.HTTP.Class('5'), r.HTTP.Requests
	}
	return r.Counts[j.Failed], r.Counts[j.Failed] + r.Counts[j.Done]
}

// Fields are the options of a request that starts a run.
func (j job) Fields() []option.Option {
	return slices.DeleteFunc(slices.Clone(j.Options), func(o option.Option) bool { return o.Label == "" })
}

// option returns the job's option of that name.
func (j job) option(name string) (option.Option, bool) {
	i := slices.IndexFunc(j.Options, func(o option.Option) bool { return o.Name == name })
	if i < 0 {
		return option.Option{}, false
	}
	return j.Options[i], true
}

// field returns the option of a request by its name there.
func (j job) field(name string) (option.Option, bool) {
	o, ok := j.option(strings.ReplaceAll(name, "_", "-"))
	return o, ok && o.Label != "" && o.Field() == name
}

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
		f, ok := j.field(name)
		if !ok {
			return nil, refuse("unknown field %q; known fields: %s", clip(name), j.fieldNames())
		}
		var err error
		if values[name], err = f.Decode(raw); err != nil {
			return nil, refuse("%s: %s", name, err)
		}
	}
	return j.flagsOf(values)
}

// flagsOf checks the values, by field name, and translates them to flags.
func (j job) flagsOf(values map[string]string) ([]string, error) {
	var out []string
	for _, f := range j.Fields() {
		v, given := values[f.Field()]
		if !given {
			continue
		}
		if err := f.Check(v); err != nil {
			return nil, refuse("%s: %s", f.Field(), err)
		}
		out = append(out, "--"+f.Name+"="+v)
	}
	return out, nil
}

// exampleBody is an example of a request that starts a run.
func (j job) exampleBody() string {
	example := map[string]any{}
	for _, f := range j.Fields() {
		if f.Example != nil {
			example[f.Field()] = f.Example
		}
	}
	b, _ := json.Marshal(example) // what an option names has no value that JSON lacks
	return string(b)
}

// request is the schema of a request that starts a run.
func (j job) request() string { return strings.ToUpper(j.Name[:1]) + j.Name[1:] + "Request" }

func (j job) fieldNames() string {
	var names []string
	for _, f := range j.Fields() {
		names = append(names, f.Field())
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

func (j job) example() string {
	for _, f := range j.Fields() {
		if f.Example != nil {
			return fmt.Sprintf("{%q: %q}, or {} for all", f.Field(), f.Example)
		}
	}
	return "{}"
}

// selection is the part of the job's work that a run does, in one spelling: the values of the options that select, without
// regard to order and case, as a URL's query. It is empty if the run does all of it.
func (j job) selection(run ledger.Run) string {
	out := url.Values{}
	for _, o := range j.Options {
		text, given := run.Options[o.Name].(string)
		if !given || text == o.Default || !o.Has(option.Selects) {
			continue
		}
		for name := range strings.SplitSeq(strings.ToLower(text), ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(out[o.Name], name) {
				out.Add(o.Name, name)
			}
		}
		slices.Sort(out[o.Name])
	}
	return out.Encode()
}

// outward reports whether an option says how a run tells of itself, and changes nothing of what it does.
func (j job) outward(name string) bool {
	o, known := j.option(name)
	return known && o.Has(option.Outward)
}

// dateField is the option that is a date, "" if the job has none.
func (j job) dateField() string {
	for _, f := range j.Fields() {
		if f.Kind == option.Day {
			return f.Field()
		}
	}
	return ""
}
