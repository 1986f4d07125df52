// Package zonename knows the offsets from UTC that the names of time zones mean in texts.
// No promise: see docs/library.md.
package zonename

// hours are the offsets of names that mean one offset; -5 of EST is that of RFC 822, which
// feeds follow.
var hours = map[string]int{"Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "CET": 1, "MEZ": 1, "CEST": 2, "MESZ": 2, "EET": 2, "EEST": 3, "MSK": 3,
	"SGT": 8, "HKT": 8, "KST": 9, "JST": 9, "EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}

// several are names that mean several offsets.
var several = map[string]bool{"BST": true, "CST": true, "IST": true, "AST": true, "WST": true}

// Seconds returns the offset of a name in seconds east of UTC. ok is false for a name that is
// not known, and for one that means several.
func Seconds(name string) (seconds int, ok bool) {
	h, ok := hours[name]
	return h * 3600, ok
}

// Several reports whether a name means several offsets.
func Several(name string) bool { return several[name] }
