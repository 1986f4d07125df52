package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
)

// option is an option of a run.
type option struct {
	Name, Value, Default string
	Differs              bool // from the default
}

// optionsOf are the options of a run: those that were given, and then the job's others,
// each with its default. The options that differ come first.
func optionsOf(j job, run ledger.Run) (differ, others []option) {
	given := maps.Clone(run.Options)
	delete(given, "job") // the page has it
	add := func(o option) {
		if o.Differs {
			differ = append(differ, o)
		} else {
			others = append(others, o)
		}
	}
	for _, known := range j.Options {
		o := option{Name: known.Name, Value: known.Default, Default: known.Default}
		if v, ok := given[known.Name]; ok {
			o.Value = ledger.Redact(fmt.Sprint(v))
			o.Differs = o.Value != known.Default
			delete(given, known.Name)
		}
		add(o)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) { // of another version of the program
		add(option{Name: name, Value: ledger.Redact(fmt.Sprint(given[name])), Differs: true})
	}
	return differ, others
}

// outwardOptions say how a run tells of itself. They change nothing of what it does.
var outwardOptions = []string{"job", "log-format", "log-level", "progress", "strict"}

// sameOptions reports whether two runs do the same.
func sameOptions(j job, a, b ledger.Run) bool { return len(differing(j, a, b)) == 0 }

// again is what starts a run with the options of another one.
type again struct {
	Flags   []string // of the request
	Left    []option // that a request cannot have
	Command string   // of the command line, with all options
}

// againOf is how to start a run like this one. A request can only have the job's
// fields. The server's own options are given to each run anyway.
func (s *Server) againOf(e *entry) *again {
	if e.job.Path == "" || e.Broken {
		return nil
	}
	a := &again{Command: "pipeline --job=" + e.Run.Job}
	differ, _ := optionsOf(e.job, e.Run)
	for _, o := range differ {
		if slices.Contains(outwardOptions, o.Name) {
			continue
		}
		flag := "--" + o.Name + "=" + o.Value
		a.Command += " " + quoted(flag)
		i := slices.IndexFunc(e.job.Fields, func(f ledger.Field) bool { return f.Flag == o.Name })
		switch {
		case i >= 0 && field(e.job.Fields[i]).check(o.Value) == nil:
			a.Flags = append(a.Flags, flag)
		case !slices.Contains(s.runner.environ, variableOf(o.Name)+"="+o.Value) && !slices.Contains(s.config.runFlags[e.Run.Job], flag):
			a.Left = append(a.Left, o)
		}
	}
	return a
}

// variableOf is the environment variable of a flag.
func variableOf(flag string) string {
	return "SEED_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// quoted writes a word for a POSIX shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// runAgain starts a run with the options of another one.
func (p *pages) runAgain(w http.ResponseWriter, r *http.Request) {
	e, err := p.server.run(r)
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	a := p.server.againOf(e)
	if a == nil {
		p.server.fail(w, r, refuse("only the command line starts a run of this job"))
		return
	}
	id, err := p.server.startNow(context.WithoutCancel(r.Context()), e.Run.Job, a.Flags, "dashboard")
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/runs/"+id, http.StatusSeeOther)
}
