package ledger

import "github.com/newsfork/seed-engine/io/explore"

// Job describes a job for programs that do not run it, such as the server. It is plain
// data, without the job's code.
type Job struct {
	Name, Title string
	// Counts names the counts that its report always has, even at 0, in the order in
	// which they are shown.
	Counts []string
	// Stages are the steps of its runs, in the order in which the data passes them.
	Stages []Stage
	// Warnings has, by kind, the texts of the warnings that its runs count. {field} and
	// {n} are replaced by the warning's values.
	Warnings map[string]string
	// Source is what alerts call the source of a warning, such as site.
	Source string `json:",omitempty"`
	// Purpose says which of its complete runs count as failed.
	Purpose Purpose
	// Path is the API path of the request that starts a run; "" if only the command line
	// can start one.
	Path string
	// Operation is the id of that request in the API's description; "" means "start" and
	// the job's name.
	Operation string
	// Done names the count of successful items, Failed that of failed ones; "" if only
	// requests fail.
	Done, Failed string
	// Alerts are the rules that judge its runs by default.
	Alerts []string
	// OwnAlerts says that its runs also judge themselves by these rules (--alerts).
	OwnAlerts bool
	// Finds are the kinds of things that it finds.
	Finds []explore.Kind `json:",omitempty"`
}

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
