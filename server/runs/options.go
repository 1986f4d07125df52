package runs

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
)

// Setting is an option of a run.
type Setting struct {
	Name, Value, Default string
	Differs              bool // from the default
}

// OptionsOf are the options of a run: those that were given, and then the job's others,
// each with its default. The options that differ come first.
func OptionsOf(j known.Job, run ledger.Run) (differ, others []Setting) {
	given := maps.Clone(run.Options)
	delete(given, "job") // the page has it
	add := func(o Setting) {
		if o.Differs {
			differ = append(differ, o)
		} else {
			others = append(others, o)
		}
	}
	byName := func(a, b option.Option) int { return strings.Compare(a.Name, b.Name) }
	for _, known := range slices.SortedFunc(slices.Values(j.Options), byName) {
		o := Setting{Name: known.Name, Value: known.Default, Default: known.Default}
		if v, ok := given[known.Name]; ok {
			o.Value = ledger.Redact(fmt.Sprint(v))
			o.Differs = o.Value != known.Default
			delete(given, known.Name)
		}
		add(o)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) { // of another version of the program
		add(Setting{Name: name, Value: ledger.Redact(fmt.Sprint(given[name])), Differs: true})
	}
	return differ, others
}

// Again is what starts a run with the options of another one.
type Again struct {
	Flags   []string  // of the request
	Left    []Setting // that a request cannot have
	Command string    // of the command line, with all options
	Form    string    // URL of the form with these options
}

// AgainOf is how to start a run like this one. A request can only have the job's
// fields. The server's own options are given to each run anyway.
func (r *Runner) AgainOf(e *Entry, own []string) *Again {
	if e.Job.Path == "" || e.Broken {
		return nil
	}
	a := &Again{Command: "pipeline --job=" + e.Run.Job}
	fields := url.Values{"job": {e.Run.Job}}
	differ, _ := OptionsOf(e.Job, e.Run)
	for _, o := range differ {
		if e.Job.Outward(o.Name) {
			continue
		}
		flag := "--" + o.Name + "=" + o.Value
		a.Command += " " + quoted(flag)
		known, _ := e.Job.Option(o.Name)
		switch {
		case known.Label != "" && known.Check(o.Value) == nil:
			a.Flags = append(a.Flags, flag)
			fields.Set(known.Field(), o.Value)
		case !slices.Contains(r.Environ, option.Variable(o.Name)+"="+o.Value) && !slices.Contains(own, flag):
			a.Left = append(a.Left, o)
		}
	}
	a.Form = "/start?" + fields.Encode()
	return a
}

// quoted writes a word for a POSIX shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
