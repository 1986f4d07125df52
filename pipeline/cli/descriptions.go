package cli

import (
	"slices"

	"github.com/newsfork/seed-engine/pipeline/option"
)

// Descriptions describes the jobs, with their options, for those that do not run them,
// such as servers.
func Descriptions() (all []option.Job) {
	var o Options
	newFlags(&o)
	for _, j := range o.Jobs {
		of := slices.DeleteFunc(o.Flags.Of(j.Name), func(p option.Option) bool { return p.Name == "job" }) // the page has it
		all = append(all, option.Job{Job: j.Job, Options: of, Removal: j.Removal, Policies: j.Policies})
	}
	return all
}
