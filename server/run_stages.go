package server

import (
	"maps"
	"slices"

	"github.com/newsfork/seed-engine/io/ledger"
)

// stageView is a step of a run.
type stageView struct {
	Name, Unit string
	N          int64
	Of         int64  // how many came through the last stage before it that counts the same; 0: none does
	Apart      []bar  // counts that are not 0
	Class      string // wait, or ""
}

func stagesOf(j job, r ledger.Report) (all []stageView) {
	before := map[string]int64{}
	for _, s := range j.Stages {
		v := stageView{Name: s.Name, Unit: s.Unit, N: r.Through(s), Of: before[s.Unit]}
		for _, name := range s.Apart {
			if n := r.Count(name); n != 0 {
				v.Apart = append(v.Apart, bar{Name: name, N: n})
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

// countsOf are all counts of a run, its job's first.
func countsOf(j job, r ledger.Report) (all []bar) {
	named := slices.Clone(j.Counts)
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		if !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	for _, name := range named {
		all = append(all, bar{Name: name, N: r.Counts[name]})
	}
	return all
}
