package ledger

// Stage is one step of a job's runs, for people who watch them.
type Stage struct {
	Name string // "read"
	Unit string // what it counts: "files"
	// Counts are the counts whose sum says how many have come through. LaneHosts and
	// LaneHostsDone are among the names.
	Counts []string
	// Apart are counts that explain the number, such as files that could not be read.
	Apart []string
}

// Names of two counts that are in the progress of the lanes and not in the tally.
const (
	LaneHosts     = "lane_hosts"      // of the lanes that have begun
	LaneHostsDone = "lane_hosts_done" // finished, with success or without
)

// Count is one of the run's counts, or of those of its lanes.
func (r *Report) Count(name string) (n int64) {
	switch name {
	case LaneHosts:
		for _, l := range r.Lanes {
			n += l.Hosts
		}
	case LaneHostsDone:
		for _, l := range r.Lanes {
			n += l.HostsDone
		}
	default:
		n = r.Counts[name]
	}
	return n
}

// Through is how many have come through a stage.
func (r *Report) Through(s Stage) (n int64) {
	for _, name := range s.Counts {
		n += r.Count(name)
	}
	return n
}
