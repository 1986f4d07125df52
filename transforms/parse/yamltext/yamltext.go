// Package yamltext reads YAML: an error is one line that begins with that of
// the text, and a panic of the library is an error like another.
package yamltext

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ErrMalformed is what text is that the library breaks on, such as a sequence's
// key with the tag !00 before a plain word (goccy/go-yaml issue 735, mended
// upstream after 1.19.2).
var ErrMalformed = errors.New("malformed YAML; look for stray tags (!), anchors (&) and aliases (*)")

// Files are the names of the YAML files at the root of a directory, sorted.
func Files(dir fs.FS) ([]string, error) {
	var names []string
	for _, ending := range []string{"*.yaml", "*.yml"} {
		found, err := fs.Glob(dir, ending)
		if err != nil {
			return nil, fmt.Errorf("listing YAML files: %w", err)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return names, nil
}

// Strict reads a text into v, a pointer to a struct with yaml tags. Keys that it
// does not have, and keys that are there twice, are refused. An empty text leaves
// v as it is.
func Strict(text []byte, v any) error {
	return guarded(func() error {
		file, err := parser.ParseBytes(text, 0)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(file.Docs, func(d *ast.DocumentNode) bool { return d.Body != nil && d.Body.Type() != ast.CommentType }) {
			return nil // the library would set v to its zero value
		}
		return yaml.UnmarshalWithOptions(text, v, yaml.Strict())
	})
}

// Parse reads a text into its nodes, which know where they stand.
func Parse(text []byte) (file *ast.File, err error) {
	err = guarded(func() (err error) {
		file, err = parser.ParseBytes(text, 0)
		return err
	})
	return file, err
}

// Decode reads a text into v with values as they are written where v holds
// nodes (ast.Node).
func Decode(text []byte, v any) error {
	return guarded(func() error { return yaml.Unmarshal(text, v) })
}

// Ordered reads a node as a mapping in its own order.
func Ordered(n ast.Node) (v yaml.MapSlice, err error) {
	err = guarded(func() error { return yaml.NodeToValue(n, &v, yaml.UseOrderedMap()) })
	return v, err
}

// guarded runs the library, and gives its error as "line 3: …" without the
// source that it shows below.
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
