package cli

import (
	"cmp"
	"flag"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
)

// Descriptions describes the jobs, with their flags, for those that do not run them,
// such as servers.
func Descriptions() []ledger.Job {
	var o Options
	flags := newFlags(&o)
	all := pipeline.Descriptions()
	never := []string{"job", "estimate"} // the page has the one, and no run has the other
	for i, j := range pipeline.All() {
		foreign := j.Foreign()
		flags.VisitAll(func(f *flag.Flag) {
			if launch.Shown(f) && !slices.Contains(never, f.Name) && !slices.Contains(foreign, f.Name) {
				all[i].Options = append(all[i].Options, ledger.Option{Name: f.Name, Default: cmp.Or(j.Defaults[f.Name], f.DefValue)})
			}
		})
	}
	return all
}
