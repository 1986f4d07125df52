// Package option describes what can be set. One description makes an option's flag, environment variable, key of a file, field of a
// request with its schema, form field, line of the reference, and refusal. No promise: see docs/library.md.
package option

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

// Kind is what an option's values are.
type Kind string

// The kinds of values.
const (
	Text    Kind = "text"
	Day     Kind = "day" // YYYY-MM-DD
	Yes     Kind = "yes" // true or false
	Number  Kind = "number"
	Decimal Kind = "decimal"
	Pause   Kind = "pause" // a time.Duration
	Block   Kind = "block" // a mapping of YAML, which NAME.schema.json describes
	Names   Kind = "names" // of what is configured, separated by commas; the job refuses names that it does not know
)

// Mark is a property of an option.
type Mark uint8

// The marks of options.
const (
	OneRun  Mark = 1 << iota // it says what one run does: a server refuses it for all its runs
	Outward                  // it says how a run tells of itself, and changes nothing of what the run does
	Selects                  // with it a run does a part of the job's work
	Extent                   // it decides how much a run requests of its sites
	Secret                   // no report shows its value
	Tuning                   // nobody sets it better by hand: it is a key of the file and a variable, and no flag of a command
)

// Group is a part of a job's help.
type Group string

// The groups of a job's help, in its order.
const (
	What   Group = "What"
	Polite Group = "How politely"
	Where  Group = "Where"
	RunOn  Group = "Run on"
	Output Group = "Output"
)

// Groups are all of them.
var Groups = []Group{What, Polite, Where, RunOn, Output}

// Option is one thing that can be set. It is plain data, for programs that run no job too.
type Option struct {
	Name, Usage, Default string
	Kind                 Kind
	Marks                Mark     `json:",omitempty"`
	Choices              []string `json:",omitempty"` // the only values
	Pattern              string   `json:",omitempty"` // of the whole of a text, as a regular expression
	Min, Max             *float64 `json:",omitempty"` // of a pause in seconds, of a text in characters; nil: no limit
	Open                 bool     `json:",omitempty"` // Min itself is too little
	Wrong                string   `json:",omitempty"` // what to do about a bad value; "": by the limits
	Empty                string   `json:",omitempty"` // what to do about an empty value on the command line; "": it may be empty
	Label, Hint          string   `json:",omitempty"` // of its field in a form; without a label no request has it
	Example              any      `json:",omitempty"`
	Group                Group    `json:"-"`
	Preview              string   `json:",omitempty"` // how it makes the job only say what a run would do

	jobs     []string          // to which it means something; nil: all
	defaults map[string]string // by job, where they differ from Default
}

// Job is a job with its options, for programs that do not run it.
type Job struct {
	ledger.Job
	Options []Option
	Removal *removal.What `json:"-"` // how a source of it is removed; nil: it has none
	// Policies are those of its providers, sites or publishers, which people change on a server; nil: it has none.
	Policies Policies `json:"-"`
}

// Policies are how a server shows and changes the policies of a job's providers, sites or publishers: texts in YAML.
type Policies interface {
	// Called returns the words for them.
	Called() policyfile.Words
	// Text writes a policy in JSON as the text of a file.
	Text(fields []byte) (string, error)
	// Parse reads a text. The error has one line for each fault, with its line and field.
	Parse(text string, now time.Time) (policyfile.Shown, error)
	// All returns the policies by id: those of files, by the options of runs, and those that people keep. fixed says that the user named
	// the files, which then are not changed elsewhere.
	All(option func(name string) string, kept map[string]policyfile.Change, now time.Time) (all []policyfile.Shown, fixed bool, err error)
}

// Runs are what a server asks of the program about the runs that it starts.
type Runs struct {
	// Refuse refuses a run of a job with these flags that could not start, such as one of an unknown provider. The reason has the method
	// Usage. With now it also refuses one that finds no input in the store as it is.
	Refuse func(ctx context.Context, job string, flags []string, now bool) error
	// Offer returns what there is to choose from, by option: names of countries or providers. Its error is that of Refuse.
	Offer func(ctx context.Context, job string) (map[string][]string, error)
}

// Field is the option's name in a request.
func (o Option) Field() string { return strings.ReplaceAll(o.Name, "-", "_") }

// Variable is the environment variable of an option by its name.
func Variable(name string) string {
	return "SEED_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Has reports whether the option has a mark.
func (o Option) Has(m Mark) bool { return o.Marks&m != 0 }

// Means reports whether the option means something to a job.
func (o Option) Means(job string) bool { return o.jobs == nil || slices.Contains(o.jobs, job) }

// DefaultOf is the option's default for a job.
func (o Option) DefaultOf(job string) string {
	if v, ok := o.defaults[job]; ok {
		return v
	}
	return o.Default
}

// Check refuses a value, and says what to write.
func (o Option) Check(text string) error {
	bad := o.Choices != nil && !slices.Contains(o.Choices, text) ||
		o.Pattern != "" && !regexp.MustCompile("^(?:"+o.Pattern+")$").MatchString(text)
	v, err := 0.0, error(nil)
	switch o.Kind {
	case Text:
		v = float64(utf8.RuneCountInString(text))
	case Day:
		_, err = time.Parse(time.DateOnly, text)
	case Yes:
		bad = text != "true" && text != "false"
	case Number:
		_, err = strconv.Atoi(text)
		v, _ = strconv.ParseFloat(text, 64)
	case Decimal:
		v, err = strconv.ParseFloat(text, 64)
	case Pause:
		var d time.Duration
		d, err = time.ParseDuration(text)
		v = d.Seconds()
	}
	bad = bad || err != nil || math.IsNaN(v) || math.IsInf(v, 0)
	if bad || o.Max != nil && v > *o.Max || o.Min != nil && (v < *o.Min || o.Open && v == *o.Min) {
		return errors.New(o.advice())
	}
	return nil
}

// Least is the smallest value as text, "" if there is no limit.
func (o Option) Least() string { return o.limit(o.Min) }

// Most is the greatest value as text, "" if there is no limit.
func (o Option) Most() string { return o.limit(o.Max) }

func (o Option) limit(v *float64) string {
	switch {
	case v == nil:
		return ""
	case o.Kind == Pause && *v != 0:
		return time.Duration(*v * float64(time.Second)).String()
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

// advice says what a value must be.
func (o Option) advice() string {
	switch {
	case o.Wrong != "":
		return o.Wrong
	case o.Choices != nil:
		return "use " + usage.Or(o.Choices)
	case o.Max != nil:
		return "use " + o.Least() + " to " + o.Most()
	case o.Open:
		return "use more than " + o.Least()
	case o.Min != nil:
		return "use " + o.Least() + " or more"
	}
	return o.form()
}

// form says what the values of the option's kind look like.
func (o Option) form() string {
	switch o.Kind {
	case Day:
		return "that is no day; write YYYY-MM-DD"
	case Yes:
		return "write true or false"
	case Number, Decimal:
		return "write a number"
	case Pause:
		return "write a number with its unit, such as 500ms, 30s or 1m"
	}
	return "write a text"
}

// Decode returns a JSON value as text, and refuses one of another type.
func (o Option) Decode(raw json.RawMessage) (string, error) {
	var v any
	_ = json.Unmarshal(raw, &v) // a part of a valid document
	number := o.Kind == Number || o.Kind == Decimal
	switch v := v.(type) {
	case bool:
		if o.Kind == Yes {
			return strconv.FormatBool(v), nil
		}
	case float64: // in JSON 1, 1.0 and 1e0 are the same number
		if number {
			return strconv.FormatFloat(v, 'f', -1, 64), nil
		}
	case string:
		if !number && o.Kind != Yes {
			return v, nil
		}
	}
	return "", errors.New(o.advice())
}

// Schema describes the option's values as JSON Schema.
func (o Option) Schema() map[string]any {
	s := map[string]any{"description": o.Usage, "type": "string"}
	switch o.Kind {
	case Block:
		return map[string]any{"$ref": o.Name + ".schema.json"}
	case Day:
		s["format"] = "date"
	case Yes:
		s["type"] = "boolean"
	case Number:
		s["type"] = "integer"
	case Decimal:
		s["type"] = "number"
	}
	if o.Pattern != "" {
		s["pattern"] = "^(?:" + o.Pattern + ")$"
	}
	if o.Choices != nil {
		s["enum"] = o.Choices
	}
	least, most := "minimum", "maximum"
	if o.Kind == Text {
		least, most = "minLength", "maxLength"
	}
	if o.Min != nil {
		s[least] = *o.Min
	}
	if o.Max != nil {
		s[most] = *o.Max
	}
	return s
}
