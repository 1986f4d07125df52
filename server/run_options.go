package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// setting is an option of a run.
type setting struct {
	Name, Value, Default string
	Differs              bool // from the default
}

// optionsOf are the options of a run: those that were given, and then the job's others,
// each with its default. The options that differ come first.
func optionsOf(j job, run ledger.Run) (differ, others []setting) {
	given := maps.Clone(run.Options)
	delete(given, "job") // the page has it
	add := func(o setting) {
		if o.Differs {
			differ = append(differ, o)
		} else {
			others = append(others, o)
		}
	}
	byName := func(a, b option.Option) int { return strings.Compare(a.Name, b.Name) }
	for _, known := range slices.SortedFunc(slices.Values(j.Options), byName) {
		o := setting{Name: known.Name, Value: known.Default, Default: known.Default}
		if v, ok := given[known.Name]; ok {
			o.Value = ledger.Redact(fmt.Sprint(v))
			o.Differs = o.Value != known.Default
			delete(given, known.Name)
		}
		add(o)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) { // of another version of the program
		add(setting{Name: name, Value: ledger.Redact(fmt.Sprint(given[name])), Differs: true})
	}
	return differ, others
}

// sameOptions reports whether two runs do the same.
func sameOptions(j job, a, b ledger.Run) bool { return len(differing(j, a, b)) == 0 }

// again is what starts a run with the options of another one.
type again struct {
	Flags   []string  // of the request
	Left    []setting // that a request cannot have
	Command string    // of the command line, with all options
}

// againOf is how to start a run like this one. A request can only have the job's
// fields. The server's own options are given to each run anyway.
func (r *runner) againOf(e *entry, own []string) *again {
	if e.job.Path == "" || e.Broken {
		return nil
	}
	a := &again{Command: "pipeline --job=" + e.Run.Job}
	differ, _ := optionsOf(e.job, e.Run)
	for _, o := range differ {
		if e.job.outward(o.Name) {
			continue
		}
		flag := "--" + o.Name + "=" + o.Value
		a.Command += " " + quoted(flag)
		known, _ := e.job.option(o.Name)
		switch {
		case known.Label != "" && known.Check(o.Value) == nil:
			a.Flags = append(a.Flags, flag)
		case !slices.Contains(r.environ, option.Variable(o.Name)+"="+o.Value) && !slices.Contains(own, flag):
			a.Left = append(a.Left, o)
		}
	}
	return a
}

// quoted writes a word for a POSIX shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
