// Package known has what the packages of the server share: the jobs, refusals of requests, the audit log, secrets, and how numbers and
// times are written.
//
// No promise: see docs/library.md.
package known

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

// Job is one of the jobs that the server knows.
type Job struct{ option.Job }

// Jobs are the jobs that the server knows, including those that it does not start.
type Jobs []Job

// JobsOf makes the list of jobs.
func JobsOf(all []option.Job) Jobs {
	var out Jobs
	for _, j := range all {
		out = append(out, Job{j})
	}
	return out
}

// Started are the jobs that the server can start.
func (l Jobs) Started() Jobs {
	return slices.DeleteFunc(slices.Clone(l), func(j Job) bool { return j.Path == "" })
}

// Named returns the job of that name, and whether there is one.
func (l Jobs) Named(name string) (Job, bool) {
	i := slices.IndexFunc(l, func(j Job) bool { return j.Name == name })
	if i < 0 {
		return Job{}, false
	}
	return l[i], true
}

// Names are the names of the jobs, in their order.
func (l Jobs) Names() []string {
	var names []string
	for _, j := range l {
		names = append(names, j.Name)
	}
	return names
}

// Or is the list as text: "a, b or c".
func (l Jobs) Or() string {
	names := l.Names()
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return strings.Join(names, "")
}

// Failures is how many of a run's items failed, and how many items there were.
func (j Job) Failures(r ledger.Report) (failed, of int64) {
	if j.Failed == "" {
		return r.HTTP.Unanswered() + r.HTTP.Class('5'), r.HTTP.Requests
	}
	return r.Counts[j.Failed], r.Counts[j.Failed] + r.Counts[j.Done]
}

// Fields are the options of a request that starts a run.
func (j Job) Fields() []option.Option {
	return slices.DeleteFunc(slices.Clone(j.Options), func(o option.Option) bool { return o.Label == "" })
}

// Option returns the job's option of that name.
func (j Job) Option(name string) (option.Option, bool) {
	i := slices.IndexFunc(j.Options, func(o option.Option) bool { return o.Name == name })
	if i < 0 {
		return option.Option{}, false
	}
	return j.Options[i], true
}

// Field returns the option of a request by its name there.
func (j Job) Field(name string) (option.Option, bool) {
	o, ok := j.Option(strings.ReplaceAll(name, "_", "-"))
	return o, ok && o.Label != "" && o.Field() == name
}

// Flags translates the JSON body of a request to command-line flags.
func (j Job) Flags(body []byte) ([]string, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		return nil, Refuse("the body is not a JSON object; write %s", j.example())
	}
	values := map[string]string{}
	for name, raw := range given {
		f, ok := j.Field(name)
		if !ok {
			return nil, Refuse("unknown field %q; known fields: %s", Clip(name), j.FieldNames())
		}
		var err error
		if values[name], err = f.Decode(raw); err != nil {
			return nil, Refuse("%s: %s", name, err)
		}
	}
	return j.FlagsOf(values)
}

// FlagsOf checks the values, by field name, and translates them to flags.
func (j Job) FlagsOf(values map[string]string) ([]string, error) {
	var out []string
	for _, f := range j.Fields() {
		v, given := values[f.Field()]
		if !given {
			continue
		}
		if err := f.Check(v); err != nil {
			return nil, Refuse("%s: %s", f.Field(), err)
		}
		out = append(out, "--"+f.Name+"="+v)
	}
	return out, nil
}

// ExampleBody is an example of a request that starts a run.
func (j Job) ExampleBody() string {
	example := map[string]any{}
	for _, f := range j.Fields() {
		if f.Example != nil {
			example[f.Field()] = f.Example
		}
	}
	b, _ := json.Marshal(example) // what an option names has no value that JSON lacks
	return string(b)
}

// Request is the schema of a request that starts a run.
func (j Job) Request() string { return strings.ToUpper(j.Name[:1]) + j.Name[1:] + "Request" }

// FieldNames are the names of the fields of a request that starts a run, as text.
func (j Job) FieldNames() string { return cmp.Or(strings.Join(FieldNames(j.Fields()), ", "), "none") }

func (j Job) example() string {
	for _, f := range j.Fields() {
		if f.Example != nil {
			return fmt.Sprintf("{%q: %q}, or {} for all", f.Field(), f.Example)
		}
	}
	return "{}"
}

// Selection is the part of the job's work that a run does, in one spelling: the values of the options that select, without
// regard to order and case, as a URL's query. It is empty if the run does all of it.
func (j Job) Selection(run ledger.Run) string {
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

// Outward reports whether an option says how a run tells of itself, and changes nothing of what it does.
func (j Job) Outward(name string) bool {
	o, known := j.Option(name)
	return known && o.Has(option.Outward)
}
