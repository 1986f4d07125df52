package yamltext

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/newsfork/seed-engine/io/untrusted"
)

// Lines are the lines of a YAML file that is made for a person to check.
type Lines []string

// maxComment is the largest comment in bytes.
const maxComment = 1000

// Say adds a comment of one line. It may contain untrusted text.
func (l *Lines) Say(format string, args ...any) {
	*l = append(*l, "# "+untrusted.Line(fmt.Sprintf(format, args...), maxComment))
}

// Put adds YAML. Quote its untrusted text.
func (l *Lines) Put(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

// String returns the file.
func (l Lines) String() string { return strings.Join(l, "\n") + "\n" }

// Quote returns a text as YAML: a string of JSON is one of YAML.
func Quote(s string) string {
	b, _ := json.Marshal(s) // a text always can be
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b))
}

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// Name joins what is a-z and 0-9 in a text, to name something by it.
func Name(s, between string) string {
	return strings.Trim(notPlain.ReplaceAllString(s, between), between)
}
