// Package yamltext reads YAML, and writes files of YAML with comments. An error is one line of text that starts with the
// line number; a panic of the library is returned as an error. No promise: see docs/library.md.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ErrMalformed is the error for text on which the library panics, such as a
// sequence's key with the tag !00 before a plain word (goccy/go-yaml 1.19.2 and
// earlier).
var ErrMalformed = errors.New("malformed YAML; look for stray tags (!), anchors (&) and aliases (*)")

// Files are the names of the YAML files at the root of a directory, sorted.
func Files(dir fs.FS) (names []string, err error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, fmt.Errorf("listing YAML files: %w", err)
	}
	for _, e := range entries { // sorted by name
		if ext := path.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Strict reads a text into v, a pointer to a struct with yaml tags. Unknown and
// repeated keys are errors, and so is a second document. An empty text leaves v
// unchanged.
func Strict(text []byte, v any) error { return decode(text, v, yaml.Strict()) }

// Decode reads a text of one document into v. Where v has nodes (ast.Node), the values
// are as written.
func Decode(text []byte, v any) error { return decode(text, v) }

func decode(text []byte, v any, options ...yaml.DecodeOption) error {
	text = bytes.TrimPrefix(text, byteOrderMark)
	return guarded(func() error {
		file, err := parser.ParseBytes(text, 0)
		if err != nil {
			return err
		}
		file.Docs = slices.DeleteFunc(file.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil || d.Body.Type() == ast.CommentType })
		switch len(file.Docs) {
		case 0:
			return nil // the library would set v to its zero value
		case 1:
			return yaml.UnmarshalWithOptions(text, v, options...)
		}
		// The library would read the first alone.
		return fmt.Errorf("line %d: a second document begins here; write one in a file", file.Docs[1].Body.GetToken().Position.Line)
	})
}

// Parse reads a text into its nodes, which have their positions.
func Parse(text []byte) (file *ast.File, err error) {
	err = guarded(func() (err error) {
		file, err = parser.ParseBytes(bytes.TrimPrefix(text, byteOrderMark), 0)
		return err
	})
	return file, err
}

// byteOrderMark begins the texts that some editors save. The library takes it for a part
// of the first key.
var byteOrderMark = []byte("\ufeff")

// guarded runs the library, and returns its error as "line 3: …" without the quoted
// source.
func guarded(read func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w (%v)", ErrMalformed, v)
		}
	}()
	if err := read(); err != nil {
		says, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
		if m := position.FindStringSubmatch(says); m != nil {
			says = "line " + m[1] + ": " + m[2]
		}
		return errors.New(says)
	}
	return nil
}

var position = regexp.MustCompile(`^\[(\d+):\d+\] (.*)$`)

// Line returns the number of the line in which a key stands, for example
// Line(text, "fields", "price", "type"). Of keys that the text lacks, the line is that
// of the nearest key around them; 0 if the text has none of them.
func Line(text []byte, keys ...string) int {
	file, err := Parse(text)
	if err != nil || len(file.Docs) == 0 {
		return 0
	}
	line, at := 0, file.Docs[0].Body
	for _, key := range keys {
		found := member(at, key)
		if found == nil {
			break
		}
		line, at = found.Key.GetToken().Position.Line, found.Value
	}
	return line
}

func member(n ast.Node, key string) *ast.MappingValueNode {
	var all []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		all = n.Values
	case *ast.MappingValueNode:
		all = []*ast.MappingValueNode{n}
	}
	for _, m := range all {
		if m.Key.GetToken().Value == key {
			return m
		}
	}
	return nil
}
