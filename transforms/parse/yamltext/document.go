package yamltext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Mapping is a mapping in the order of the text. A repeated key has two members.
type Mapping []Member

// Member is a key of a mapping and its value: a Mapping, []any, string, Number, bool or nil.
type Member struct {
	Key   string
	Value any
}

// The bounds of an untrusted document.
const (
	maxDepth      = 200
	maxNodes      = 2 << 20 // aliases count with all that they repeat
	maxDirectives = 16      // the library's time grows with their square
)

// Number is a number as written, in a form that JSON allows too. Other forms, such
// as 0x10, are text.
type Number string

// Document reads untrusted YAML, one document, with aliases resolved and numbers and
// dates as written. Unlike Strict, which reads the project's own files, it accepts
// repeated keys.
func Document(text []byte) (any, error) {
	if n := bytes.Count(text, []byte("\n%")); n > maxDirectives && directives(text) > maxDirectives {
		return nil, fmt.Errorf("the YAML has more than %d directives", maxDirectives)
	}
	var n yaml.Node
	if err := parse(version.ReplaceAll(text, []byte("#")), &n); err != nil {
		return nil, err
	}
	d := document{}
	return d.value(&n, 0)
}

// version is the %YAML directive: the library accepts only version 1.1.
var version = regexp.MustCompile(`\A\x{feff}?%YAML\b`)

// directives counts the directives (lines that begin with %) at the head of a text.
func directives(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
		case line[0] == '%':
			n++
		default:
			return n
		}
	}
	return n
}

func parse(text []byte, n *yaml.Node) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w (%v)", ErrMalformed, v)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(text))
	err = d.Decode(n)
	if err != nil && (strings.Contains(err.Error(), "invalid Unicode character escape code") || strings.Contains(err.Error(), "unknown escape character")) {
		*n = yaml.Node{}
		d = yaml.NewDecoder(bytes.NewReader(jsonEscapes.ReplaceAllFunc(text, unescaped)))
		err = d.Decode(n)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		message, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
		return errors.New(message)
	}
	var more yaml.Node
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("the YAML has more than one document")
	}
	return nil
}

// jsonEscapes matches the escapes of JSON that the library does not know: a pair for
// a character above U+FFFF, and an escaped slash. It matches an escaped backslash
// too, so that the text after one is not mistaken for an escape.
var jsonEscapes = regexp.MustCompile(`\\\\|\\/|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

func unescaped(found []byte) []byte {
	switch string(found) {
	case `\\`:
		return found
	case `\/`:
		return found[1:]
	}
	high, _ := strconv.ParseUint(string(found[2:6]), 16, 16) // the pattern matches only numbers
	low, _ := strconv.ParseUint(string(found[8:12]), 16, 16)
	return utf8.AppendRune(nil, utf16.DecodeRune(rune(high), rune(low)))
}

type document struct{ nodes int }

func (d *document) value(n *yaml.Node, depth int) (any, error) {
	if d.nodes++; d.nodes > maxNodes {
		return nil, fmt.Errorf("the YAML has too many values (over %d), its aliases resolved", maxNodes)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: the YAML is nested too deep (over %d levels)", n.Line, maxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return d.value(n.Content[0], depth)
	case yaml.AliasNode:
		return d.value(n.Alias, depth+1) // deeper, so that an alias within itself ends
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if list[i], err = d.value(c, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return d.mapping(n, depth)
	case yaml.ScalarNode:
		return scalar(n), nil
	}
	return nil, nil // the text is empty
}

func (d *document) mapping(n *yaml.Node, depth int) (Mapping, error) {
	m := make(Mapping, 0, len(n.Content)/2)
	var merged Mapping
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		v, err := d.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("line %d: a key of the YAML is not plain text", key.Line)
		case key.ShortTag() == "!!merge":
			merged = append(merged, flat(v)...)
		default:
			m = append(m, Member{key.Value, v})
		}
	}
	if len(merged) == 0 {
		return m, nil
	}
	own := make(map[string]bool, len(m))
	for _, member := range m {
		own[member.Key] = true
	}
	for _, member := range merged {
		if d.nodes++; d.nodes > maxNodes {
			return nil, fmt.Errorf("the YAML has too many values (over %d), its aliases resolved", maxNodes)
		}
		if !own[member.Key] {
			own[member.Key] = true
			m = append(m, member)
		}
	}
	return m, nil
}

// flat is what a merge key (<<) merges: a mapping, or a list of them.
func flat(v any) (out Mapping) {
	switch v := v.(type) {
	case Mapping:
		return v
	case []any:
		for _, one := range v {
			if m, ok := one.(Mapping); ok {
				out = append(out, m...)
			}
		}
	}
	return out
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	}
	if tag := n.ShortTag(); (tag == "!!int" || tag == "!!float") && json.Valid([]byte(n.Value)) {
		return Number(n.Value)
	}
	return n.Value
}
