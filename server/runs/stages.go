package runs

import (
	"maps"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/server/known"
)

// StageView is a step of a run.
type StageView struct {
	Name, Unit string
	N          int64
	Of         int64  // how many came through the last stage before it that counts the same; 0: none does
	Apart      []Bar  // counts that are not 0
	Class      string // wait, or ""
}

// StagesOf are the stages of a job's run.
func StagesOf(j known.Job, r ledger.Report) (all []StageView) {
	before := map[string]int64{}
	for _, s := range j.Stages {
		v := StageView{Name: s.Name, Unit: s.Unit, N: r.Through(s), Of: before[s.Unit]}
		for _, name := range s.Apart {
			if n := r.Count(name); n != 0 {
				v.Apart = append(v.Apart, Bar{Name: name, N: n})
			}
		}
		if v.N == 0 {
			v.Class = "wait"
		}
		before[s.Unit] = v.N
		all = append(all, v)
	}
	return all
}

// CountsOf are all counts of a run, its job's first.
func CountsOf(j known.Job, r ledger.Report) (all []Bar) {
	named := slices.Clone(j.Counts)
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		if !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	for _, name := range named {
		all = append(all, Bar{Name: name, N: r.Counts[name]})
	}
	return all
}
