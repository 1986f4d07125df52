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
