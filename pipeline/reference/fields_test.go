package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// field is a field of a struct that is written as YAML or JSON.
type field struct {
	key, doc string
	required bool
	of       kind
	rules    rules
}

// kind is the type of a field.
type kind struct {
	name   string  // string, integer, number, boolean, time, object, list or map
	fields []field // of an object
	item   *kind   // of a list or map
}

// rules are the tags jsonschema and pattern of a field. Those of a list and of the keys of
// a map are about its items and keys, except the minimum of their number.
type rules struct {
	words   map[string]string
	enum    []string
	pattern string
}

// structs reads the types of the package in dir.
type structs struct {
	t     *testing.T
	tag   string // yaml or json
	types map[string]*ast.TypeSpec
}

func read(t *testing.T, dir, tag string) structs {
	t.Helper()
	s := structs{t, tag, map[string]*ast.TypeSpec{}}
	for _, file := range sources(t, dir) {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				s.types[spec.Name.Name] = spec
			}
			return true
		})
	}
	return s
}

// sources parses the files of one folder, without its tests.
func sources(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	require.NotEmpty(t, files, dir)
	return files
}

var words = map[string]string{"string": "string", "int": "integer", "int64": "integer", "float64": "number", "bool": "boolean"}

func (s structs) kind(e ast.Expr) kind {
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.kind(e.X)
	case *ast.ArrayType:
		item := s.kind(e.Elt)
		return kind{name: "list", item: &item}
	case *ast.MapType:
		item := s.kind(e.Value)
		return kind{name: "map", item: &item}
	case *ast.StructType:
		return kind{name: "object", fields: s.fields(e)}
	case *ast.SelectorExpr:
		if e.Sel.Name != "Time" { // of another package, which describes it
			return kind{name: "object"}
		}
		return kind{name: "time"}
	case *ast.Ident:
		if word := words[e.Name]; word != "" {
			return kind{name: word}
		}
		require.NotNil(s.t, s.types[e.Name], e.Name)
		return s.kind(s.types[e.Name].Type)
	}
	require.Fail(s.t, "a type that is not known", "%T", e)
	return kind{}
}

func (s structs) fields(of *ast.StructType) (out []field) {
	for _, f := range of.Fields.List {
		require.NotNil(s.t, f.Tag, "%v has no tag", f.Names)
		text, err := strconv.Unquote(f.Tag.Value)
		require.NoError(s.t, err)
		tag := reflect.StructTag(text)
		if len(f.Names) == 0 { // yaml:",inline"
			out = append(out, s.kind(f.Type).fields...)
			continue
		}
		name, options, _ := strings.Cut(tag.Get(s.tag), ",")
		one := field{key: name, doc: strings.TrimSpace(f.Doc.Text()), of: s.kind(f.Type), rules: rules{words: map[string]string{}, pattern: tag.Get("pattern")}}
		for rule := range strings.SplitSeq(tag.Get("jsonschema"), ",") {
			switch word, value, _ := strings.Cut(rule, "="); word {
			case "":
			case "enum":
				one.rules.enum = append(one.rules.enum, value)
			case "required", "minimum", "maximum", "minItems", "minLength", "minProperties", "format", "default":
				one.rules.words[word] = value
			default:
				require.Fail(s.t, "a rule that is not known", "%s: %s", name, rule)
			}
		}
		_, one.required = one.rules.words["required"]
		if s.tag == "json" {
			one.required = options == ""
		}
		out = append(out, one)
	}
	return out
}

// object returns the struct of that name.
func (s structs) object(name string) kind {
	require.NotNil(s.t, s.types[name], name)
	return s.kind(s.types[name].Type)
}

func (k kind) String() string {
	switch k.name {
	case "list":
		return "list of " + strings.TrimSuffix(k.item.String(), "s") + "s"
	case "map":
		return "map of objects"
	}
	return k.name
}

// walk calls do for each field and the fields below it, with the path of keys. A list's
// fields are called KEY[].…, a map's KEY.*.….
func (k kind) walk(path string, do func(path string, f field)) {
	switch k.name {
	case "list":
		k.item.walk(strings.TrimSuffix(path, ".")+"[].", do)
	case "map":
		k.item.walk(path+"*.", do)
	}
	for _, f := range k.fields {
		do(path+f.key, f)
		f.of.walk(path+f.key+".", do)
	}
}

// limits says the rules of a field for a person.
func (f field) limits() string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	least, hasLeast := f.rules.words["minimum"]
	most, hasMost := f.rules.words["maximum"]
	if f.required {
		add("required")
	}
	switch {
	case hasLeast && hasMost:
		add("%s to %s", least, most)
	case hasLeast:
		add("at least %s", least)
	}
	if f.rules.words["minItems"] != "" || f.rules.words["minProperties"] != "" {
		add("at least one")
	}
	if len(f.rules.enum) > 0 {
		add("`%s`", strings.Join(f.rules.enum, "`, `"))
	}
	if f.rules.pattern != "" {
		add("`%s`", f.rules.pattern)
	}
	return strings.Join(out, ", ")
}
