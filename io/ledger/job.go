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
	// Options are the flags that a run of it may have and a report may show.
	Options []Option
	// Selects are the flags with which a run does a part of the job's work: lists of names, periods. A run without them
	// does all of it.
	Selects []string `json:",omitempty"`
	// Warnings has, by kind, the texts of the warnings that its runs count. {field} and
	// {n} are replaced by the warning's values.
	Warnings map[string]string
	// Source is what alerts call the source of a warning, such as site.
	Source string `json:",omitempty"`
	// Purpose says which of its complete runs count as failed.
	Purpose Purpose
	// Path is the API path of the request that starts a run; "" if only the command line
	// can start one.
	Path   string
	Fields []Field
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

// Field is one option of a request that starts a run.
type Field struct {
	Name, Label, Hint string
	About             string // in the API's description; "": the label
	Example           any    // of a value, there and where a request is refused; nil: none
	Flag              string // of the command line
	Kind              string // text, day, yes, number (from 1 to 1000000) or share (from 0 to 1)
	Pattern           string // of the whole of a text, as a regular expression; "": any
	Wrong             string // the error message for a bad value
}
