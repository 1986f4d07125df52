package ledger

// Job is what those must know of a job who do not run it, such as a server:
// plain data, without the job's code.
type Job struct {
	Name, Title string
	// Counts names what its report always counts, even at 0, in the order in which a
	// person reads them.
	Counts []string
	// Warnings are the kinds of warnings that its runs count, each in the words of an
	// alert: {source}, {field} and {n} stand for what the warning says.
	Warnings map[string]string
	// Purpose says which of its complete runs have failed all the same.
	Purpose Purpose
	// Path is the API's of the request that starts a run; "" where only the command
	// line starts one.
	Path   string
	Fields []Field
	// Operation is the id of that request in the API's description; "": start and the
	// job's name.
	Operation string
	// Done is the count of what came out well, Failed of what did not; "" where only
	// requests fail.
	Done, Failed string
	// Alerts are the rules that judge its runs unless the configuration says otherwise.
	Alerts []string
	// OwnAlerts says that its runs judge themselves by the same rules (--alerts).
	OwnAlerts bool
}

// Field is one thing that a request for a run may say.
type Field struct {
	Name, Label, Hint string
	About             string // in the API's description; "": the label
	Example           any    // of a value, there and where a request is refused; nil: none
	Flag              string // of the command line
	Kind              string // text, day, yes, number (from 1 to 1000000) or share (from 0 to 1)
	Pattern           string // of the whole of a text, as a regular expression; "": any
	Wrong             string // what is said of a bad value
}
